"""Solves the equations of an access: which points of the loops reach a given position of the operand.

Each equation says that a position in the gradient is an index of the read. A loop that an equation tells is put in everywhere and
no longer summed over. The longest loop is solved for first and then a unit coefficient preferred: otherwise the gradient of a
window would sum over all output positions. What is left of the equations becomes conditions, and conditions narrow the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from opc.analysis.bounds import Knowledge
from opc.ir.affine import Affine, AttrInt, Dim, FloorDiv, Index, Mod, Symbol
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    ReduceAxis,
    Select,
    free_indices,
    map_affine,
    rewrite,
)
from opc.transform import algebra, scalar
from opc.transform.indices import INDEX_NAMES, Namer, substitute
from opc.transform.scalar import ZERO
from opc.transform.sums import sum_over, varies


@dataclass(slots=True)
class Equation:
    """`left == right`, where `left` is a position in the gradient and `right` an index of the read."""

    left: Affine
    right: Affine | Expr
    dim: Affine


@dataclass(slots=True)
class System:
    """The equations of one access, the loops still free, and the adjoint; solving substitutes in all of them."""

    namer: Namer
    loops: list[Axis]
    value: Expr
    knowledge: Knowledge
    equations: list[Equation] = field(default_factory=list)
    ranges: dict[str, Affine] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    finals: dict[str, str] = field(default_factory=dict)
    """The gradient's index names, put in at the end: until then they stand under names that no loop has."""
    windows: set[str] = field(default_factory=set)
    """The loops that stand in an equation: those that are not solved for are windows."""
    exact: list[Mod] = field(default_factory=list)
    """The remainders that conditions say are 0."""
    sloped: list[Expr] = field(default_factory=list)
    """The guards that come from an extent that depends on another index: they narrow the loops left."""

    def equate(self, name: str, dim: Affine, entry: Affine | Expr) -> None:
        """Ask that position `name` of an axis of size `dim` be the access's index `entry`."""
        position = self.namer.fresh(f"{name}_", f"{name}__")
        self.ranges[position] = dim
        self.equations.append(Equation(Affine.of(Index(position)), entry, dim))
        self.finals[position] = name

    def solve(self, groups: tuple[ReduceAxis, ...]) -> Expr:
        """Return the sum over the loops that no equation could remove."""
        self._split()
        self._digits()
        self._divide()
        self.windows = set().union(*(e.right.indices() for e in self.equations if isinstance(e.right, Affine)))
        for index in [a.index for a in sorted(self.loops, key=self._length)]:
            equation = self._best(index)
            if equation is not None:
                self._eliminate(next(a for a in self.loops if a.index == index), equation)
        for equation in self.equations:
            right = equation.right
            if isinstance(right, Affine):
                self.guards.append(scalar.compare("eq", IndexValue(equation.left), IndexValue(right)))
            else:
                self.guards = [_known(g, right, equation.left) for g in self.guards]
                self.value = _known(self.value, right, equation.left)
                self.guards.append(scalar.compare("eq", IndexValue(equation.left), right))
        self._peel()
        self._settle()
        self._stride()
        self._narrow()
        return self._sum(groups)

    def _sum(self, groups: tuple[ReduceAxis, ...]) -> Expr:
        final = {old: Affine.of(Index(new)) for old, new in self.finals.items()}
        # A loop left over must not have the name of one of the gradient's indices.
        taken = Namer(self.namer.taken)
        renamed: dict[str, str] = {}
        for axis in self.loops:
            if axis.index in self.finals.values():
                renamed[axis.index] = taken.fresh(*INDEX_NAMES)
                final[axis.index] = Affine.of(Index(renamed[axis.index]))
        loops: tuple[ReduceAxis, ...] = tuple(
            Axis(renamed.get(a.index, a.index), a.extent.substitute(_lookup(final))) for a in self.loops
        )
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

    # before solving: loops in quotients and remainders

    def _split(self) -> None:
        """Write a loop v of which an index holds v // s or v % s beside something else as s*q + r, with loops q and r."""
        waiting = list(self.loops)
        while waiting:
            axis = waiting.pop(0)
            rights = [e.right for e in self.equations if isinstance(e.right, Affine)]
            found = [(a, right) for right in rights for a in _divisions(right) if a.numerator.index == axis.index]
            if not found or all(len(found) == 1 and right.single == atom for atom, right in found):
                continue
            s = found[0][0].denominator
            if s.indices() or axis.extent.indices():
                continue
            q, r = self.namer.fresh(*INDEX_NAMES), self.namer.fresh(*INDEX_NAMES)
            quotient = self._exact_quotient(axis.extent, s)
            whole = s * Index(q) + Index(r)
            if quotient is None:
                quotient = (axis.extent + s - 1) // s
                self.guards.append(scalar.compare("lt", scalar.index_value(whole), scalar.index_value(axis.extent)))
            at = self.loops.index(axis)
            self.loops[at : at + 1] = [Axis(q, quotient), Axis(r, s)]
            waiting.append(self.loops[at])
            self._put({axis.index: whole})
            for equation in self.equations:
                if isinstance(equation.right, Affine):
                    equation.right = self._cancelled(equation.right)

    def _exact_quotient(self, size: Affine, s: Affine) -> Affine | None:
        """Return size / s where s is known to divide the size, else None."""
        expand, plain = self.knowledge.expand, self.knowledge.plain
        if (plain(size) % plain(s)).constant != 0:
            return None
        direct = expand(size) // expand(s)
        return size // s if _divisions(direct) else direct

    def _digits(self) -> None:
        """Solve `left == a*e + c`, where c is a loop over a, for both: c is left % a, and e == left // a."""
        again = True
        while again:
            again = False
            for equation in self.equations:
                for axis in list(self.loops):
                    rest = self._high_digits(equation, axis)
                    if rest is not None:
                        self.loops.remove(axis)
                        left = equation.left - _fixed(equation.right)
                        equation.left, equation.right = left // axis.extent, rest
                        self._put({axis.index: left % axis.extent})
                        again = True

    def _high_digits(self, equation: Equation, axis: Axis) -> Affine | None:
        """Return e of `a*e + c + b`, where c is the loop `axis` over a and b has no loop; None for an index of another form."""
        if not isinstance(equation.right, Affine) or axis.extent.indices() or axis.extent.constant == 1:
            return None
        right = equation.right - _fixed(equation.right)
        if right.index is not None:
            return None
        if right.coefficient(axis.index) != Affine.of(1) or any(axis.index in a.extent.indices() for a in self.loops):
            return None
        rest = right - Index(axis.index)
        high = rest // axis.extent if axis.extent.constant != 0 else rest
        return high if high.indices() and high * axis.extent == rest else None

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
        for equation in list(self.equations):
            self._isolate(equation)
            atom = equation.right.single if isinstance(equation.right, Affine) else None
            divides = None if not isinstance(atom, FloorDiv) else _divides(atom)
            if isinstance(atom, FloorDiv) and not self._solvable(atom.numerator):
                continue
            if isinstance(atom, FloorDiv) and divides in conditions:
                exact.append(scalar.TRUE if divides is None else divides)
                equation.left = equation.left * atom.denominator
                equation.right = atom.numerator
            elif isinstance(atom, FloorDiv) and (axis := self._stretched(atom)) is not None:
                self._between(axis, equation, atom)
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
                    exactly = self._exact_quotient(extent, atom.denominator)
                    count = (extent + atom.denominator - 1) // atom.denominator if exactly is None else exactly
                    self.loops.append(Axis(quotient, count))
                    equation.left = atom.denominator * Index(quotient) + equation.left
                    equation.right = atom.numerator
        if exact:
            self.value = inner
            for c in reversed([c for c in conditions if c not in exact]):
                self.value = scalar.select(c, self.value, ZERO)

    def _solvable(self, e: Affine) -> bool:
        """Whether an equation with `e` on a side can be solved for a loop."""
        return any((c := e.coefficient(a.index)) is not None and not c.indices() and self._nonzero(c) for a in self.loops)

    def _nonzero(self, c: Affine) -> bool:
        """Whether a coefficient is known not to be zero, so that it may be divided by."""
        if c.constant is not None:
            return c.constant != 0
        return self._nonnegative(c - 1) or self._nonnegative(-c - 1)

    def _isolate(self, equation: Equation) -> None:
        """Write `left == e // s + b` as `left - b == e // s`, where e holds a loop at least as long as those of b."""
        right = equation.right
        if not isinstance(right, Affine) or right.single is not None:
            return
        quotients = [atom for atom in _divisions(right) if isinstance(atom, FloorDiv) and atom.numerator.indices()]
        if len(quotients) != 1:
            return
        rest = right - quotients[0]
        if not self._solvable(quotients[0].numerator):
            return
        lengths = {a.index: self._length(a) for a in self.loops}
        inside = [lengths[i] for i in quotients[0].numerator.indices() if i in lengths]
        beside = [lengths[i] for i in rest.indices() if i in lengths]
        if quotients[0] in list(_divisions(rest)) or not inside or (beside and min(beside) < min(inside)):
            return
        equation.left, equation.right = equation.left - rest, Affine.of(quotients[0])

    def _stretched(self, atom: FloorDiv) -> Axis | None:
        """Return the loop i of a quotient `(a*i + b) // d` of a positive a other than 1 and no other loop."""
        used = [a for a in self.loops if a.index in atom.numerator.indices()]
        if len(used) != 1 or any(used[0].index in a.extent.indices() for a in self.loops):
            return None
        c = atom.numerator.coefficient(used[0].index)
        if c is None or c.indices() or c.constant == 1 or not self._nonnegative(c - 1):
            return None
        return used[0]

    def _between(self, axis: Axis, equation: Equation, atom: FloorDiv) -> None:
        """Solve `left == (a*i + b) // d`: i runs from the least i with a*i + b >= left*d to before that of left + 1."""
        a = atom.numerator.coefficient(axis.index)
        if a is None:
            raise AssertionError("only a quotient affine in the loop is solved")
        b, d = atom.numerator - a * Index(axis.index), atom.denominator
        first, end = (-((b - left * d) // a) for left in (equation.left, equation.left + 1))
        step = self.namer.fresh(*INDEX_NAMES)
        self.equations.remove(equation)
        self.loops[self.loops.index(axis)] = Axis(step, end - first)
        self._within(first + Index(step), axis.extent, [] if self._nonnegative(first) else [first + Index(step)], end)
        self._put({axis.index: first + Index(step)})

    def _within(self, i: Affine, extent: Affine, below: list[Affine], end: Affine) -> None:
        """Ask that 0 <= i < extent, where `below` may be negative and i is less than `end`."""
        for low in below:
            self.guards.append(scalar.compare("ge", scalar.index_value(low), ZERO))
        if not self._nonnegative(extent - end):
            self.guards.append(scalar.compare("lt", scalar.index_value(i), scalar.index_value(extent)))

    def _extent(self, numerator: Affine) -> Affine | None:
        """Return the extent of the loop that a bare numerator runs over."""
        return next((a.extent for a in self.loops if a.index == numerator.index), None)

    # solving

    def _length(self, axis: Axis) -> tuple[int, int]:
        """Sort key, longest first: loops over a size that an operand's axis determines, over another size, over a window.

        Among equals, sizes of the operands declared first: data stands before weights.
        """
        sizes = self._sizes(axis.extent)
        own = (e.dim for e in self.equations if isinstance(e.right, Affine) and axis.index in e.right.indices())
        kind = 0 if any(sizes & self._sizes(dim) for dim in own) else 1 if sizes else 2
        shapes = self.knowledge.shapes.values()
        owners = (n for n, dims in enumerate(shapes) for d in dims if isinstance(d, Affine) and d.atoms() & axis.extent.atoms())
        return kind, next(owners, len(self.knowledge.shapes))

    def _sizes(self, extent: Affine) -> set[str]:
        """Return the dimensions an extent is computed from."""
        found: set[str] = set()
        rules = self.knowledge.rules
        for atom in extent.atoms():
            if isinstance(atom, Dim):
                found |= {atom.name} | (self._sizes(rules[atom.name]) if atom.name in rules else set())
        return found

    def _best(self, index: str) -> Equation | None:
        """Return the equation to solve for a loop: a bare index first, then a unit coefficient, then any other."""
        found: list[tuple[int, int, Equation]] = []
        for n, equation in enumerate(self.equations):
            coefficient = _coefficient(equation, index)
            if coefficient is None or not self._nonzero(coefficient) or self._circular(index, equation):
                continue
            if self._holds_longer(index, equation):
                continue
            bare = isinstance(equation.right, Affine) and equation.right.index == index
            found.append((0 if bare else 1 if coefficient.constant in (1, -1) else 2, n, equation))
        return min(found, key=lambda f: f[:2])[2] if found else None

    def _holds_longer(self, index: str, equation: Equation) -> bool:
        """Whether an equation holds a longer loop that could not be solved for.

        Solving for the short one would leave a sum over the long one at every position; as a condition that names the position,
        the equation makes a scatter, in which each point of the loops is visited once.
        """
        lengths = {a.index: self._length(a)[0] for a in self.loops}
        held = equation.right.indices() if isinstance(equation.right, Affine) else set()
        return any(lengths[i] < lengths[index] for i in held if i in lengths)

    def _circular(self, index: str, equation: Equation) -> bool:
        """Whether a loop in the solution has an extent that depends on the index solved for."""
        right = equation.right
        others = (equation.left.indices() | right.indices()) - {index} if isinstance(right, Affine) else set()
        extents = {a.index: a.extent.indices() for a in self.loops}
        waiting, seen = list(others), set(others)
        while waiting:
            for name in extents.get(waiting.pop(), set()):
                if name == index:
                    return True
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        return False

    def _eliminate(self, axis: Axis, equation: Equation) -> None:
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
        guards: list[Expr] = []
        if not self._nonnegative(solution):
            guards.append(scalar.compare("ge", scalar.index_value(solution), ZERO))
        if not self._nonnegative(axis.extent - 1 - solution):
            guards.append(scalar.compare("lt", scalar.index_value(solution), scalar.index_value(axis.extent)))
        self.guards += guards
        if axis.extent.indices():
            self.sloped += guards
        self._put({axis.index: solution})

    def _put(self, values: dict[str, Affine]) -> None:
        """Put solutions in everywhere."""
        self.value = substitute(self.value, values)
        self.guards = [substitute(g, values) for g in self.guards]
        self.sloped = [substitute(g, values) for g in self.sloped]
        loops = [Axis(a.index, a.extent.substitute(_lookup(values))) for a in self.loops]
        self.loops = _ordered(loops)
        for equation in self.equations:
            equation.left = equation.left.substitute(_lookup(values))
            if isinstance(equation.right, Affine):
                equation.right = equation.right.substitute(_lookup(values))
            else:
                equation.right = substitute(equation.right, values)

    # after solving: what the conditions say of the loops that are left

    def _peel(self) -> None:
        """Take the conditions on indices alone out of the adjoint."""
        kept: list[Expr] = []
        inner = self.value
        while isinstance(inner, Select) and scalar.is_zero(inner.other):
            for c in scalar.conjuncts(inner.cond):
                (self.guards if _is_affine(c) else kept).append(c)
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
            remainder = _divided(condition)
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
            self.value = _exchanged(self.value, factor, replace(factor, pad=None))

    def _narrow(self) -> None:
        """Narrow a loop by the conditions that a sloped extent left: `n <= i` lets i run from n on."""
        for condition in list(self.sloped):
            gap = _gap(condition)
            if gap is None or condition not in self.guards:
                continue
            for axis in reversed(self.loops):
                c = gap.coefficient(axis.index)
                if c is None or c.constant not in (1, -1) or any(axis.index in a.extent.indices() for a in self.loops):
                    continue
                bound = gap - c * Index(axis.index)
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
                    self.loops = _ordered(self.loops)
                else:
                    continue
                break

    def _settle(self) -> None:
        """Carry out divisions that come out even, and decide the comparisons that the ranges tell."""
        self.exact = [m for g in self.guards if (m := _divided(g)) is not None]
        settled = [self._settled(g) for g in self.guards]
        self.sloped = [new for old, new in zip(self.guards, settled) if old in self.sloped]
        self.guards = [g for g in settled if g != scalar.TRUE]
        self.value = self._settled(self.value)

    def _settled(self, e: Expr) -> Expr:
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
        """Return `a` with (s*q + r) // s as q and (s*q + r) % s as r, where 0 <= r < s at every point; else q + r // s, r % s.

        A quotient and a remainder that make up their numerator, `s*(n // s) + n % s`, are n.
        """
        total = Affine.of(0)
        for monomial, coefficient in a.terms:
            product = Affine.of(coefficient)
            for atom in monomial:
                if not isinstance(atom, FloorDiv | Mod):
                    product = product * atom
                    continue
                s = self._cancelled(atom.denominator)
                numerator = self._cancelled(atom.numerator)
                quotient = numerator // s
                rest = numerator % s
                # The normal form has taken multiples of s out of the division; a rest within [0, s) is no division at all.
                inner = next((d for d in _divisions(rest) if isinstance(d, Mod) and Affine.of(d) == rest), None)
                if inner is not None and self._nonnegative(inner.numerator) and self._nonnegative(s - 1 - inner.numerator):
                    rest, quotient = inner.numerator, quotient - inner.numerator // s
                product = product * (rest if isinstance(atom, Mod) else quotient)
            total = total + product
        for atom in _divisions(total):
            n, s = atom.numerator, atom.denominator
            rest = n % s if isinstance(atom, Mod) else Affine.of(0)
            if isinstance(atom, FloorDiv) and Mod(n, s) not in self.exact:
                continue
            for sign in (1, -1):
                joined = total + (n - rest - s * (n // s)) * sign
                if len(joined.terms) < len(total.terms):
                    total = joined
        return total

    def _nonnegative(self, a: Affine) -> bool:
        """Whether `a` >= 0 at every point."""
        ranges = {**self.ranges, **{axis.index: axis.extent for axis in self.loops}}
        return _quickly(a, ranges) or self.knowledge.nonnegative(a, ranges, _fixed_conditions(self.value))


def _known(e: Expr, data: Expr, position: Affine) -> Expr:
    """Return `e` where an index that is data is known to be a position: reads stand at the position, and comparisons ask it."""

    def rule(node: Expr) -> Expr:
        match node:
            case Read():
                return replace(node, indices=tuple(position if i == data else i for i in node.indices))
            case Call() if node.fn in scalar.COMPARES:
                return replace(node, args=tuple(IndexValue(position) if a == data else a for a in node.args))
            case _:
                return node

    return rewrite(e, rule)


def _exchanged(e: Expr, old: Expr, new: Expr) -> Expr:
    return rewrite(e, lambda node: new if node == old else node)


def _fixed_conditions(e: Expr) -> Iterator[tuple[Expr, bool]]:
    """Yield the conditions on attributes and sizes without which `e` is zero, with the value each must have."""
    while isinstance(e, Select) and (scalar.is_zero(e.other) or scalar.is_zero(e.then)):
        holds = scalar.is_zero(e.other)
        if not scalar.any_reads(e.cond) and not free_indices(e.cond):
            yield e.cond, holds
        e = e.then if holds else e.other


def _quickly(a: Affine, ranges: dict[str, Affine]) -> bool:
    """Whether `a` >= 0 is seen by putting in the end of each index range where `a` is least."""
    for index in sorted(a.indices()):
        c = a.coefficient(index)
        if c is None or index not in ranges or ranges[index].indices():
            return False
        if _sign(c) is None:
            return False
        end = Affine.of(0) if _sign(c) else ranges[index] - 1
        a = a.substitute(_lookup({index: end}))
    return _sign(a) is True


def _gap(condition: Expr) -> Affine | None:
    """Return f of a condition that says f >= 0 and nothing else."""
    match condition:
        case Call(fn="ge" | "lt" as fn, args=(IndexValue() | Const() as a, IndexValue() | Const() as b)):
            left, right = (Affine.of(v.value if isinstance(v, IndexValue) else int(v.value)) for v in (a, b))
            return left - right if fn == "ge" else right - left - 1
        case _:
            return None


def _is_affine(condition: Expr) -> bool:
    """Whether a condition compares index expressions and nothing else."""
    return (
        isinstance(condition, Call)
        and condition.fn in scalar.COMPARES
        and all(isinstance(a, IndexValue | Const) for a in condition.args)
        and bool(free_indices(condition))
    )


def _ordered(loops: list[Axis]) -> list[Axis]:
    """Return the loops in an order in which every extent uses loops before it only."""
    names, done = {a.index for a in loops}, []
    waiting = list(loops)
    placed: set[str] = set()
    while waiting:
        ready = next((a for a in waiting if a.extent.indices() & names <= placed), None)
        if ready is None:
            raise AssertionError("the extents of loops depend on each other in a circle")
        waiting.remove(ready)
        placed.add(ready.index)
        done.append(ready)
    return done


def _divisions(a: Affine) -> Iterator[FloorDiv | Mod]:
    """Yield the quotients and remainders that are factors of `a`."""
    return (atom for monomial, _ in a.terms for atom in monomial if isinstance(atom, FloorDiv | Mod))


def _divided(condition: Expr) -> Mod | None:
    """Return the remainder that a condition says is 0, when it says that and no more."""
    match condition:
        case Call(fn="eq", args=(IndexValue(value=value), Const(value=0))):
            return value.single if isinstance(value.single, Mod) else None
        case _:
            return None


def _divides(quotient: FloorDiv) -> Expr:
    """Return the condition that a division leaves no rest, as eliminating a loop writes it."""
    return scalar.compare("eq", scalar.index_value(quotient.numerator % quotient.denominator), ZERO)


def _fixed(e: Affine | Expr) -> Affine:
    """Return the terms of an index that hold no index variable."""
    terms = e.terms if isinstance(e, Affine) else ()
    return Affine(tuple(t for t in terms if not Affine((t,)).indices()))


def _coefficient(equation: Equation, index: str) -> Affine | None:
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
