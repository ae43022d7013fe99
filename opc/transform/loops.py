"""The loops of an access while it is solved: substitution, and what conditions say of the loops that are left."""

from __future__ import annotations

from dataclasses import field

from opc.analysis.bounds.knowledge import Knowledge
from opc.analysis.bounds.largest import largest
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Atom, FloorDiv, Index, Mod
from opc.ir.expr import Axis, Call, Const, Expr, GroupRef, IndexValue, Read, Select, conjuncts, free_indices, map_affine
from opc.records import dataclass, replace
from opc.transform import algebra, scalar
from opc.transform.affine_rules import (
    Conditions,
    Equation,
    divided,
    divisions,
    exchanged,
    fixed_condition,
    fixed_conditions,
    gap,
    is_affine,
    lookup,
    ordered,
    quickly_nonnegative,
)
from opc.transform.indices import INDEX_NAMES, Namer, substitute
from opc.transform.scalar import ZERO


@dataclass(slots=True)
class Loops:
    """Loops, the conditions on them, the adjoint at each of their points, and the equations not yet solved."""

    namer: Namer
    loops: list[Axis]
    value: Expr
    knowledge: Knowledge
    equations: list[Equation] = field(default_factory=list)
    ranges: dict[str, Affine] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    windows: set[str] = field(default_factory=set)
    """The loops that stand in an equation: those that are not solved for are windows."""
    exact: list[Mod] = field(default_factory=list)
    """The remainders that conditions say are 0."""
    sloped: list[Expr] = field(default_factory=list)
    """The guards that come from an extent that depends on another index: they narrow the loops left."""

    def _put(self, values: dict[str, Affine]) -> None:
        """Put solutions in everywhere."""
        self.value = substitute(self.value, values)
        self._put_beside(values)

    def _put_beside(self, values: dict[str, Affine]) -> None:
        """Put solutions in everywhere but in the adjoint, which is large."""
        self.guards = [substitute(g, values) for g in self.guards]
        self.sloped = [substitute(g, values) for g in self.sloped]
        loops = [Axis(a.index, a.extent.substitute(lookup(values))) for a in self.loops]
        self.loops = ordered(loops)
        for equation in self.equations:
            equation.left = equation.left.substitute(lookup(values))
            if isinstance(equation.right, Affine):
                equation.right = equation.right.substitute(lookup(values))
            else:
                equation.right = substitute(equation.right, values)

    # after solving: loops that data names, and what the conditions say of the loops that are left

    def _turn(self) -> None:
        """Put a loop that data names around one that bounds it: of `w[p[j]]` with j below i + 1, what i from j on sum up to is
        the same wherever p[j] is.

        Where data names both, the longest range takes the place of one that varies: they stand in one sum.
        """
        data = [e.right for e in self.equations if not isinstance(e.right, Affine)]
        named = {i for right in data for i in free_indices(right)}
        for axis in [a for a in self.loops if a.index in named]:
            bounding = [a for a in self.loops if a.index in axis.extent.indices()]
            if len(bounding) != 1 or bounding[0].extent.indices():
                continue
            other, j = bounding[0], Index(axis.index)
            longest = largest(self.knowledge, axis.extent, {other.index: other.extent})
            if longest is None or any({axis.index, other.index} & a.extent.indices() for a in self.loops if a is not axis):
                continue
            at, slope = self.loops.index(axis), axis.extent.coefficient(other.index)
            if other.index in named:
                self.loops[at] = Axis(axis.index, longest)
                self.guards.insert(0, scalar.compare("lt", IndexValue(Affine.of(j)), IndexValue(axis.extent)))
                continue
            if slope is None or slope.constant not in (1, -1):
                continue
            # j < i + b says that i >= j + 1 - b, and j < b - i that i < b - j.
            first = Affine.of(j) + 1 - (axis.extent - Index(other.index)) if slope.constant == 1 else Affine.of(0)
            last = other.extent if slope.constant == 1 else axis.extent + Index(other.index) - j
            self.loops[at] = Axis(axis.index, longest)
            if not self._nonnegative(first) or not self._nonnegative(other.extent - last):
                self.loops[at] = axis
                continue
            step = self.namer.fresh(*INDEX_NAMES)
            self.loops[self.loops.index(other)] = Axis(step, last - first)
            self.loops = ordered(self.loops)
            self._put({other.index: first + Index(step)})

    def _peel(self) -> None:
        """Take the conditions on indices alone out of the adjoint."""
        kept: list[Expr] = []
        inner = self.value
        while isinstance(inner, Select) and scalar.is_zero(inner.other):
            for c in conjuncts(inner.cond):
                (self.guards if is_affine(c) else kept).append(c)
            inner = inner.then
        for c in reversed(kept):
            inner = scalar.select(c, inner, ZERO)
        self.value = inner

    def _stride(self) -> None:
        """Run over the multiples of a stride alone where a condition asks for them.

        Of a loop v with the conditions `(v + b) % s == 0`, `(v + b) // s >= 0` and `(v + b) // s < n`, what is left is a loop
        q over n with v = s*q - b.
        """
        for condition in list(self.guards):
            remainder = divided(condition)
            if remainder is None:
                continue
            numerator, s = remainder.numerator, remainder.denominator
            for axis in [a for a in self.loops if a.index not in self.windows]:
                c = numerator.coefficient(axis.index)
                if c is None or c.constant not in (1, -1) or any(axis.index in a.extent.indices() for a in self.loops):
                    continue
                quotient = numerator // s
                self._unpad(quotient)
                low = scalar.compare("ge", IndexValue(quotient), ZERO)
                high = [g for g in self.guards if isinstance(g, Call) and g.fn == "lt" and g.args[0] == IndexValue(quotient)]
                if low not in self.guards or not high or axis.extent.indices():
                    continue
                count = high[0].args[1]
                size = Affine.of(count.value if isinstance(count, IndexValue) else int(getattr(count, "value", 0)))
                if size.indices():
                    continue
                step = self.namer.fresh(*INDEX_NAMES)
                solution = (s * Index(step) - (numerator - c * Index(axis.index))) * c
                self.guards = [g for g in self.guards if g not in (condition, low, high[0])]
                self.loops[self.loops.index(axis)] = Axis(step, size)
                if not self._nonnegative(solution):
                    self.guards.append(scalar.compare("ge", scalar.index_value(solution), ZERO))
                if not self._nonnegative(axis.extent - 1 - solution):
                    self.guards.append(scalar.compare("lt", scalar.index_value(solution), scalar.index_value(axis.extent)))
                self._put({axis.index: solution})
                self._settle()
                break

    def _unpad(self, index: Affine) -> None:
        """Say by conditions what a factor `pad(x[index], 0)` of the adjoint says: that the read stands inside."""
        for factor in algebra.product_factors(self.value):
            if not isinstance(factor, Read) or factor.pad != ZERO or index not in factor.indices:
                continue
            dims = self.knowledge.shapes.get(factor.operand)
            if dims is None or any(not isinstance(i, Affine | GroupRef) for i in factor.indices):
                continue
            for i, dim in zip(factor.indices, dims, strict=True):
                if isinstance(i, Affine) and isinstance(dim, Affine):
                    if not self._nonnegative(i):
                        self.guards.append(scalar.compare("ge", scalar.index_value(i), ZERO))
                    if not self._nonnegative(dim - 1 - i):
                        self.guards.append(scalar.compare("lt", scalar.index_value(i), scalar.index_value(dim)))
            self.value = exchanged(self.value, factor, replace(factor, pad=None))

    def _narrow(self) -> None:
        """Narrow a loop by the conditions that a sloped extent left: `n <= i` lets i run from n on."""
        for condition in list(self.sloped):
            slack = gap(condition)
            if slack is None or condition not in self.guards:
                continue
            for axis in reversed(self.loops):
                c = slack.coefficient(axis.index)
                if c is None or c.constant not in (1, -1) or any(axis.index in a.extent.indices() for a in self.loops):
                    continue
                bound = slack - c * Index(axis.index)
                if c.constant == 1:  # i >= -bound
                    if not (self._nonnegative(-bound) and self._nonnegative(axis.extent + bound)):
                        continue
                    step = self.namer.fresh(*INDEX_NAMES)
                    self.loops[self.loops.index(axis)] = Axis(step, axis.extent + bound)
                    self.guards.remove(condition)
                    self._put({axis.index: Affine.of(Index(step)) - bound})
                elif self._nonnegative(bound + 1) and self._nonnegative(axis.extent - bound - 1):  # i <= bound
                    self.guards.remove(condition)
                    self.loops[self.loops.index(axis)] = Axis(axis.index, bound + 1)
                    self.loops = ordered(self.loops)
                else:
                    continue
                break

    def _settle(self) -> None:
        """Carry out divisions that come out even, and decide the comparisons that the ranges tell."""
        self.exact = [m for g in self.guards if (m := divided(g)) is not None]
        settled = [self._settled(g) for g in self.guards]
        self.sloped = [new for old, new in zip(self.guards, settled) if old in self.sloped]
        self.guards = [g for g in settled if g != scalar.TRUE]
        self.value = self._settled_adjoint(self.value, ())

    def _settled_adjoint(self, e: Expr, around: Conditions) -> Expr:
        """Settle the adjoint, which stands under conditions on sizes and attributes: none of its own decides itself."""
        if not isinstance(e, Select) or not (scalar.is_zero(e.other) or scalar.is_zero(e.then)):
            return self._settled(e, around)
        cond, inside = self._settled(e.cond, around), (*around, *fixed_condition(e))
        if scalar.is_zero(e.other):
            return scalar.select(cond, self._settled_adjoint(e.then, inside), e.other)
        return scalar.select(cond, e.then, self._settled_adjoint(e.other, inside))

    def _settled(self, e: Expr, around: Conditions | None = None) -> Expr:
        def rule(node: Expr) -> Expr:
            match node:
                case Call(fn="and"):
                    return scalar.conjunction(*node.args)
                case Call(fn="ge" | "lt" | "eq", args=(IndexValue() | Const() as a, IndexValue() | Const() as b)):
                    left, right = affine_of(a), affine_of(b)
                    if left is None or right is None:
                        return node
                    if node.fn == "ge" and self._nonnegative(left - right, around):
                        return scalar.TRUE
                    if node.fn == "lt" and self._nonnegative(right - left - 1, around):
                        return scalar.TRUE
                    return scalar.compare(node.fn, scalar.index_value(left), scalar.index_value(right))
                case Select():
                    return scalar.select(node.cond, node.then, node.other)
                case _:
                    return node

        return scalar.rewritten(map_affine(e, lambda a: self._cancelled(a, around)), rule)

    def _cancelled(self, a: Affine, around: Conditions | None = None) -> Affine:
        """Return `a` with (s*q + r) // s as q and (s*q + r) % s as r, where 0 <= r < s at every point; else q + r // s, r % s.

        A quotient and a remainder that make up their numerator, `s*(n // s) + n % s`, are n.
        """

        def change(atom: Atom) -> Affine:
            if not isinstance(atom, FloorDiv | Mod):
                return Affine.of(atom)
            s = self._cancelled(atom.denominator, around)
            numerator = self._cancelled(atom.numerator, around)
            quotient, rest = numerator // s, numerator % s
            # The normal form has taken multiples of s out of the division; a rest within [0, s) is no division at all.
            inner = rest.single
            if isinstance(inner, Mod) and all(self._nonnegative(f, around) for f in (inner.numerator, s - 1 - inner.numerator)):
                rest, quotient = inner.numerator, quotient - inner.numerator // s
            return rest if isinstance(atom, Mod) else quotient

        total = a.map_atoms(change)
        for atom in divisions(total):
            n, s = atom.numerator, atom.denominator
            rest = n % s if isinstance(atom, Mod) else Affine.of(0)
            if isinstance(atom, FloorDiv) and Mod(n, s) not in self.exact:
                continue
            for sign in (1, -1):
                joined = total + (n - rest - s * (n // s)) * sign
                if len(joined.terms) < len(total.terms):
                    total = joined
        return total

    def _nonnegative(self, a: Affine, around: Conditions | None = None) -> bool:
        """Whether `a` >= 0 at every point where conditions hold: without `around`, all those that the adjoint stands under."""
        ranges = {**self.ranges, **{axis.index: axis.extent for axis in self.loops}}
        conditions = fixed_conditions(self.value) if around is None else around
        return quickly_nonnegative(a, ranges) or self.knowledge.nonnegative(a, ranges, conditions)
