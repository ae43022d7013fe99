"""Transposition of reads: where in an operand's gradient an adjoint goes.

A read `x[f(i)]` at every point i of some loops, with adjoint A(i), adds to the gradient of x

    d_x[j] = sum over i of (A(i) if f(i) == j else 0)

The equations f(i) == j are solved for loop variables, so that the sum over a solved loop vanishes and the gradient gathers
instead of scattering: a bare index is renamed, a shift moves the range, a stride asks for divisibility, an unused loop stays as a
sum, and what cannot be solved (a data-dependent index, a constant, a diagonal) stays as an equality condition. The longest loop
is solved for first and then a unit coefficient preferred: otherwise the gradient of a window would sum over all output positions.
Conditions go outermost. See Li et al., "Differentiable programming for image processing and deep learning in Halide" (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from opc.ir.affine import Affine, AttrInt, Dim, FloorDiv, Index, Mod, Symbol
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Read,
    ReduceAxis,
    Select,
    map_affine,
    rewrite,
)
from opc.ir.op import Assign, DimSpec, Group, Operand
from opc.transform import scalar
from opc.transform.indices import INDEX_NAMES, Namer, bound_indices, substitute
from opc.transform.scalar import ZERO
from opc.transform.sums import sum_over, varies


@dataclass(frozen=True, slots=True)
class Domain:
    """The loops an expression stands in: index variables with their extents, outermost first, and groups of axes.

    A group maps to the operand whose own group it is; None is the shape all operands broadcast to (and any group of an op without
    broadcast).
    """

    axes: tuple[Axis, ...]
    groups: tuple[tuple[str, str | None], ...]

    @staticmethod
    def of(statement: Assign, target: Operand) -> Domain:
        """Return the loops over the points of a statement's target."""
        axes, groups = [], []
        for i, d in zip(statement.indices, target.dims, strict=True):
            if isinstance(d, Group):
                groups.append((d.name, d.of))
            elif isinstance(i, str):
                axes.append(Axis(i, d))
        return Domain(tuple(axes), tuple(groups))

    def inside(self, loops: tuple[ReduceAxis, ...]) -> Domain:
        """Return the loops inside a reduction over `loops`."""
        axes = self.axes + tuple(a for a in loops if isinstance(a, Axis))
        groups = dict(self.groups)
        groups.update({a.name: None for a in loops if not isinstance(a, Axis)})
        return Domain(axes, tuple(groups.items()))


def transpose(
    read: Read,
    domain: Domain,
    value: Expr,
    target: Sequence[str | GroupRef],
    dims: Sequence[DimSpec],
    derived: Mapping[str, Affine] = MappingProxyType({}),
) -> Expr:
    """Return what the adjoint `value` of `read`, at every point of `domain`, adds to the gradient of the operand read.

    Args:
        read: the access; its indices use the domain's index variables and groups.
        domain: every loop around the access.
        value: the adjoint, an expression over the domain.
        target: the index names and groups of the gradient's statement, one for each entry of the operand's shape.
        dims: the shape of the operand.
        derived: what derived dimensions are in terms of others; a loop over a size derived from the operand's is a long one.
    """
    names = {a.index for a in domain.axes} | bound_indices(value) | {t for t in target if isinstance(t, str)}
    system = _System(Namer(names), list(domain.axes), value, derived)
    groups: list[ReduceAxis] = []
    used = {}
    for entry, name, dim in zip(read.indices, target, dims, strict=True):
        if isinstance(dim, Group):
            used[dim.name] = dim.of
        elif isinstance(name, str) and not isinstance(entry, GroupRef):
            system.equate(name, dim, entry)
    for group, own in domain.groups:
        if group not in used:
            groups.append(GroupAxis(group))
        elif own is None and used[group] is not None:
            groups.append(BroadcastAxis(group, str(used[group])))
    return system.solve(tuple(groups))


@dataclass(slots=True)
class _Equation:
    """`left == right`, where `left` is a position in the gradient and `right` an index of the read."""

    left: Affine
    right: Affine | Expr
    dim: Affine


@dataclass(slots=True)
class _System:
    """The equations of one access, the loops still free, and the adjoint; solving substitutes in all of them."""

    namer: Namer
    loops: list[Axis]
    value: Expr
    derived: Mapping[str, Affine]
    equations: list[_Equation] = field(default_factory=list)
    ranges: dict[str, Affine] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    finals: dict[str, str] = field(default_factory=dict)
    """The gradient's index names, put in at the end: until then they stand under names that no loop has."""

    def equate(self, name: str, dim: Affine, entry: Affine | Expr) -> None:
        """Ask that position `name` of an axis of size `dim` be the access's index `entry`."""
        position = self.namer.fresh(f"{name}_", f"{name}__")
        self.ranges[position] = dim
        self.equations.append(_Equation(Affine.of(Index(position)), entry, dim))
        self.finals[position] = name

    def solve(self, groups: tuple[ReduceAxis, ...]) -> Expr:
        """Return the sum over the loops that no equation could remove."""
        self._divide()
        for index in [a.index for a in sorted(self.loops, key=self._length)]:
            equation = self._best(index)
            if equation is not None:
                self._eliminate(next(a for a in self.loops if a.index == index), equation)
        for equation in self.equations:
            right = equation.right
            wanted = IndexValue(right) if isinstance(right, Affine) else right
            self.guards.append(scalar.compare("eq", IndexValue(equation.left), wanted))
        self.guards = [self._settled(g) for g in self.guards]
        self.value = self._settled(self.value)
        final = {old: Affine.of(Index(new)) for old, new in self.finals.items()}
        # A loop left over must not have the name of one of the gradient's indices.
        taken = Namer(self.namer.taken)
        for n, axis in enumerate(self.loops):
            if axis.index in self.finals.values():
                fresh = taken.fresh(*INDEX_NAMES)
                final[axis.index] = Affine.of(Index(fresh))
                self.loops[n] = Axis(fresh, axis.extent)
        loops: tuple[ReduceAxis, ...] = tuple(Axis(a.index, a.extent.substitute(_lookup(final))) for a in self.loops)
        loops = (*groups, *loops)
        outer: list[Expr] = []
        guard: Expr = scalar.TRUE
        for g in (substitute(g, final) for g in self.guards):
            if varies(g, loops):
                guard = scalar.conjunction(guard, g)
            else:
                outer.append(g)
        inner = scalar.select(guard, substitute(self.value, final), ZERO)
        total = sum_over(loops, inner)
        condition: Expr = scalar.TRUE
        for g in outer:
            condition = scalar.conjunction(condition, g)
        return scalar.select(condition, total, ZERO)

    def _divide(self) -> None:
        """Replace `j == e // s` by `j*s + r == e` with a fresh loop r over s, and `j == e % s` by `q*s + j == e`.

        Where the adjoint vanishes unless s divides e, the rest r is 0 and needs no loop.
        """
        conditions: list[Expr] = []
        inner = self.value
        while isinstance(inner, Select) and scalar.is_zero(inner.other):
            conditions += scalar.conjuncts(inner.cond)
            inner = inner.then
        exact: list[Expr] = []
        for equation in self.equations:
            atom = equation.right.single if isinstance(equation.right, Affine) else None
            divides = None if not isinstance(atom, FloorDiv) else _divides(atom)
            if isinstance(atom, FloorDiv) and divides in conditions:
                exact.append(scalar.TRUE if divides is None else divides)
                equation.left = equation.left * atom.denominator
                equation.right = atom.numerator
            elif isinstance(atom, FloorDiv):
                rest = self.namer.fresh(*INDEX_NAMES)
                self.loops.append(Axis(rest, atom.denominator))
                equation.left = equation.left * atom.denominator + Index(rest)
                equation.right = atom.numerator
            elif isinstance(atom, Mod):
                extent = self._extent(atom.numerator)
                if extent is not None:
                    if not self._nonnegative(atom.denominator - 1 - equation.left):
                        remainder = scalar.index_value(equation.left)
                        self.guards.append(scalar.compare("lt", remainder, scalar.index_value(atom.denominator)))
                    quotient = self.namer.fresh(*INDEX_NAMES)
                    self.loops.append(Axis(quotient, (extent + atom.denominator - 1) // atom.denominator))
                    equation.left = atom.denominator * Index(quotient) + equation.left
                    equation.right = atom.numerator
        if exact:
            self.value = inner
            for c in reversed([c for c in conditions if c not in exact]):
                self.value = scalar.select(c, self.value, ZERO)

    def _extent(self, numerator: Affine) -> Affine | None:
        """Return the extent of the loop that a bare numerator runs over."""
        return next((a.extent for a in self.loops if a.index == numerator.index), None)

    def _length(self, axis: Axis) -> int:
        """Sort key, longest first: loops over a size that an operand's axis determines, over another size, over a window."""
        sizes = self._sizes(axis.extent)
        own = (e.dim for e in self.equations if isinstance(e.right, Affine) and axis.index in e.right.indices())
        if any(sizes & self._sizes(dim) for dim in own):
            return 0
        return 1 if sizes else 2

    def _sizes(self, extent: Affine) -> set[str]:
        """Return the dimensions an extent is computed from."""
        found: set[str] = set()
        for atom in extent.atoms():
            if isinstance(atom, Dim):
                found |= {atom.name} | (self._sizes(self.derived[atom.name]) if atom.name in self.derived else set())
        return found

    def _best(self, index: str) -> _Equation | None:
        """Return the equation to solve for a loop: a bare index first, then a unit coefficient, then any other."""
        found: list[tuple[int, int, _Equation]] = []
        for n, equation in enumerate(self.equations):
            coefficient = _coefficient(equation, index)
            if coefficient is None or coefficient.constant == 0:
                continue
            bare = isinstance(equation.right, Affine) and equation.right.index == index
            found.append((0 if bare else 1 if coefficient.constant in (1, -1) else 2, n, equation))
        return min(found, key=lambda f: f[:2])[2] if found else None

    def _eliminate(self, axis: Axis, equation: _Equation) -> None:
        """Solve `left == c * i + rest` for loop i, and put the solution in everywhere."""
        c = _coefficient(equation, axis.index)
        if c is None or not isinstance(equation.right, Affine):
            raise AssertionError("only an equation affine in the loop is solved")
        self.equations.remove(equation)
        self.loops.remove(axis)
        numerator = equation.left - (equation.right - c * Index(axis.index))
        if c.constant in (1, -1):
            solution = numerator * c
        else:
            self.guards.append(scalar.compare("eq", scalar.index_value(numerator % c), ZERO))
            solution = numerator // c
        if not self._nonnegative(solution):
            self.guards.append(scalar.compare("ge", scalar.index_value(solution), ZERO))
        if not self._nonnegative(axis.extent - 1 - solution):
            self.guards.append(scalar.compare("lt", scalar.index_value(solution), scalar.index_value(axis.extent)))
        values = {axis.index: solution}
        self.value = substitute(self.value, values)
        self.guards = [substitute(g, values) for g in self.guards]
        self.loops = [Axis(a.index, a.extent.substitute(_lookup(values))) for a in self.loops]
        for other in self.equations:
            other.left = other.left.substitute(_lookup(values))
            if isinstance(other.right, Affine):
                other.right = other.right.substitute(_lookup(values))
            else:
                other.right = substitute(other.right, values)

    def _settled(self, e: Expr) -> Expr:
        """Return `e` with divisions that come out even carried out, and comparisons decided that the ranges tell."""

        def rule(node: Expr) -> Expr:
            match node:
                case Call(fn="and"):
                    return scalar.conjunction(*node.args)
                case Call(fn="ge" | "lt" | "eq", args=(IndexValue() | Const() as a, IndexValue() | Const() as b)):
                    left, right = (Affine.of(v.value if isinstance(v, IndexValue) else int(v.value)) for v in (a, b))
                    if node.fn == "ge" and self._nonnegative(left - right):
                        return scalar.TRUE
                    if node.fn == "lt" and self._nonnegative(right - left - 1):
                        return scalar.TRUE
                    return scalar.compare(node.fn, scalar.index_value(left), scalar.index_value(right))
                case Select():
                    return scalar.select(node.cond, node.then, node.other)
                case _:
                    return node

        return rewrite(map_affine(e, self._cancelled), rule)

    def _cancelled(self, a: Affine) -> Affine:
        """Return `a` with (s*q + r) // s as q and (s*q + r) % s as r, where 0 <= r < s at every point; else q + r // s, r % s."""
        total = Affine.of(0)
        for monomial, coefficient in a.terms:
            product = Affine.of(coefficient)
            for atom in monomial:
                if not isinstance(atom, FloorDiv | Mod):
                    product = product * atom
                    continue
                s = self._cancelled(atom.denominator)
                quotient, rest = _split(self._cancelled(atom.numerator), s)
                within = rest.constant == 0 or (self._nonnegative(rest) and self._nonnegative(s - 1 - rest))
                if isinstance(atom, Mod):
                    product = product * (rest if within else rest % s)
                else:
                    product = product * (quotient if within else quotient + rest // s)
            total = total + product
        return total

    def _nonnegative(self, a: Affine) -> bool:
        """Whether `a` >= 0 at every point, by putting in the end of each index range where `a` is least."""
        ranges = {**self.ranges, **{axis.index: axis.extent for axis in self.loops}}
        for index in sorted(a.indices()):
            c = a.coefficient(index)
            if c is None or index not in ranges or ranges[index].indices():
                return False
            if _sign(c) is None:
                return False
            end = Affine.of(0) if _sign(c) else ranges[index] - 1
            a = a.substitute(_lookup({index: end}))
        return _sign(a) is True


def _split(a: Affine, s: Affine) -> tuple[Affine, Affine]:
    """Return q and r with a == s*q + r, where r has no multiple of the product of symbols `s`."""
    quotient = Affine.of(0)
    if len(s.terms) != 1 or s.constant is not None:
        return quotient, a
    (factors, scale), rest = s.terms[0], Affine.of(0)
    for monomial, coefficient in a.terms:
        left = list(monomial)
        whole = coefficient % scale == 0
        for atom in factors:
            if atom in left:
                left.remove(atom)
            else:
                whole = False
        term = Affine.of(coefficient // scale if whole else coefficient)
        for atom in left if whole else monomial:
            term = term * atom
        quotient, rest = (quotient + term, rest) if whole else (quotient, rest + term)
    return quotient, rest


def _divides(quotient: FloorDiv) -> Expr:
    """Return the condition that a division leaves no rest, as eliminating a loop writes it."""
    return scalar.compare("eq", scalar.index_value(quotient.numerator % quotient.denominator), ZERO)


def _coefficient(equation: _Equation, index: str) -> Affine | None:
    if not isinstance(equation.right, Affine) or index in equation.left.indices():
        return None
    c = equation.right.coefficient(index)
    # A coefficient that varies between points could be zero at some of them.
    return None if c is None or c.indices() else c


def _sign(a: Affine) -> bool | None:
    """Return True when `a` is known not to be negative, False when not positive, None when unknown. Sizes are not negative."""
    known = all(not isinstance(atom, AttrInt | Index | FloorDiv | Mod) for m, _ in a.terms for atom in m)
    if known and all(c > 0 for _, c in a.terms):
        return True
    return False if known and all(c < 0 for _, c in a.terms) else None


def _lookup(values: dict[str, Affine]) -> Callable[[Symbol], Affine | None]:
    def value(symbol: Symbol) -> Affine | None:
        return values.get(symbol.name) if isinstance(symbol, Index) else None

    return value
