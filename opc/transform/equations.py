"""Solves the equations of an access: which points of the loops reach a given position of the operand.

Each equation says that a position in the gradient is an index of the read. A loop that an equation tells is put in everywhere and
no longer summed over. The longest loop is solved for first and then a unit coefficient preferred: otherwise the gradient of a
window would sum over all output positions. What is left of the equations becomes conditions, and conditions narrow the loops.
"""

from __future__ import annotations

from dataclasses import field

from opc.ir.affine import Affine, Dim, FloorDiv, Index, Mod
from opc.ir.expr import Axis, Expr, IndexValue, ReduceAxis, Select, conjuncts
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.affine_rules import (
    Equation,
    at_position,
    coefficient_of,
    divides,
    divisions,
    fixed_terms,
    lookup,
)
from opc.transform.indices import INDEX_NAMES, Namer, substitute
from opc.transform.loops import Loops
from opc.transform.scalar import ZERO
from opc.transform.sums import sum_over, varies


@dataclass(slots=True)
class System(Loops):
    """The equations of one access, the loops still free, and the adjoint; solving substitutes in all of them."""

    finals: dict[str, str] = field(default_factory=dict)
    """The gradient's index names, put in at the end: until then they stand under names that no loop has."""

    def equate(self, name: str, dim: Affine, entry: Affine | Expr) -> None:
        """Ask that position `name` of an axis of size `dim` be the access's index `entry`."""
        position = self.namer.fresh(f"{name}_", f"{name}__")
        self.ranges[position] = dim
        self.equations.append(Equation(Affine.of(Index(position)), entry, dim))
        self.finals[position] = name

    def solve(self, groups: tuple[ReduceAxis, ...]) -> Expr:
        """Return the sum over the loops that no equation could remove."""
        self._join()
        self._split()
        self._digits()
        self._divide()
        self.windows = set().union(*(e.right.indices() for e in self.equations if isinstance(e.right, Affine)))
        solutions: dict[str, Affine] = {}
        for index in [a.index for a in sorted(self.loops, key=self._length)]:
            equation = self._best(index)
            if equation is not None:
                found = {index: self._eliminate(next(a for a in self.loops if a.index == index), equation)}
                solutions = {name: s.substitute(lookup(found)) for name, s in solutions.items()} | found
        self.value = substitute(self.value, solutions)
        self._turn()
        for equation in self.equations:
            right = equation.right
            if isinstance(right, Affine):
                self.guards.append(scalar.compare("eq", IndexValue(equation.left), IndexValue(right)))
            else:
                self.guards = [at_position(g, right, equation.left) for g in self.guards]
                self.value = at_position(self.value, right, equation.left)
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
            Axis(renamed.get(a.index, a.index), a.extent.substitute(lookup(final))) for a in self.loops
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

    def _join(self) -> None:
        """Put indices that are the digits of a position, the last with the size of its axis as base, together as that position:
        `l == e // d` and `r == e % d` say that `l*d + r == e`. So is `r == e % d` by itself, where e is less than d."""
        for last in list(self.equations):
            joined, used = replace(last), [last]
            while (atom := _remainder(joined)) is not None:
                e, d = atom.numerator, atom.denominator
                high = next((h for h in self.equations if h not in used and _is_above(h.right, e // d)), None)
                if high is not None and isinstance(high.right, Affine):
                    joined = Equation(high.left * d + joined.left, _raised(high.right, e, d), high.dim * d)
                    used.append(high)
                elif self._nonnegative(e) and self._nonnegative(d - 1 - e):
                    joined = Equation(joined.left, e, d)
                else:
                    break
            if _remainder(joined) is None and _remainder(last) is not None:
                self.equations = [e for e in self.equations if e not in used] + [joined]

    def _split(self) -> None:
        """Write a loop v of which an index holds v // s or v % s beside something else as s*q + r, with loops q and r."""
        waiting = list(self.loops)
        while waiting:
            axis = waiting.pop(0)
            rights = [e.right for e in self.equations if isinstance(e.right, Affine)]
            found = [(a, right) for right in rights for a in divisions(right) if a.numerator.index == axis.index]
            if not found or all(len(found) == 1 and right.single == atom for atom, right in found):
                continue
            s = found[0][0].denominator
            if s.indices() or axis.extent.indices():
                continue
            q, r = self.namer.fresh(*INDEX_NAMES), self.namer.fresh(*INDEX_NAMES)
            quotient = self.knowledge.exact_quotient(axis.extent, s)
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
                        left = equation.left - fixed_terms(equation.right)
                        equation.left, equation.right = left // axis.extent, rest
                        self._put({axis.index: left % axis.extent})
                        again = True

    def _high_digits(self, equation: Equation, axis: Axis) -> Affine | None:
        """Return e of `a*e + c + b`, where c is the loop `axis` over a and b has no loop; None for an index of another form."""
        if not isinstance(equation.right, Affine) or axis.extent.indices() or axis.extent.constant == 1:
            return None
        right = equation.right - fixed_terms(equation.right)
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
            conditions += conjuncts(inner.cond)
            inner = inner.then
        exact: list[Expr] = []
        for equation in list(self.equations):
            self._isolate(equation)
            atom = equation.right.single if isinstance(equation.right, Affine) else None
            even = None if not isinstance(atom, FloorDiv) else divides(atom)
            if isinstance(atom, FloorDiv) and not self._solvable(atom.numerator):
                continue
            if isinstance(atom, FloorDiv) and even in conditions:
                exact.append(scalar.TRUE if even is None else even)
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
                    exactly = self.knowledge.exact_quotient(extent, atom.denominator)
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
        quotients = [atom for atom in divisions(right) if isinstance(atom, FloorDiv) and atom.numerator.indices()]
        if len(quotients) != 1:
            return
        rest = right - quotients[0]
        if not self._solvable(quotients[0].numerator):
            return
        lengths = {a.index: self._length(a) for a in self.loops}
        inside = [lengths[i] for i in quotients[0].numerator.indices() if i in lengths]
        beside = [lengths[i] for i in rest.indices() if i in lengths]
        if quotients[0] in list(divisions(rest)) or not inside or (beside and min(beside) < min(inside)):
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
        first, end = (self._least(left * d - b, a) for left in (equation.left, equation.left + 1))
        step = self.namer.fresh(*INDEX_NAMES)
        self.equations.remove(equation)
        self.loops[self.loops.index(axis)] = Axis(step, end - first)
        self._within(first + Index(step), axis.extent, [] if self._nonnegative(first) else [first + Index(step)], end)
        self._put({axis.index: first + Index(step)})

    def _least(self, e: Affine, a: Affine) -> Affine:
        """Return the least i with a*i >= e; where a divides e, all loops that follow have extents without indices."""
        even = self.knowledge.quotient(e, a)
        return -(-e // a) if even is None else even

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
        shapes, atoms = self.knowledge.shapes.values(), axis.extent.atoms()
        owners = (n for n, dims in enumerate(shapes) if atoms for d in dims if isinstance(d, Affine) and d.atoms() & atoms)
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
            coefficient = coefficient_of(equation, index)
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
        the equation makes a scatter, in which each point of the loops is visited once. One that the long one's index bounds is
        as long: solving for it narrows the long one.
        """
        lengths = {a.index: self._length(a)[0] for a in self.loops}
        bounds = next(a.extent.indices() for a in self.loops if a.index == index)
        held = equation.right.indices() if isinstance(equation.right, Affine) else set()
        return any(lengths[i] < lengths[index] for i in held - bounds if i in lengths)

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

    def _eliminate(self, axis: Axis, equation: Equation) -> Affine:
        """Solve `left == c * i + rest` for loop i, and put the solution in everywhere but in the adjoint."""
        c = coefficient_of(equation, axis.index)
        if c is None or not isinstance(equation.right, Affine):
            raise AssertionError("only an equation affine in the loop is solved")
        self.equations.remove(equation)
        self.loops.remove(axis)
        numerator = equation.left - (equation.right - c * Index(axis.index))
        if all(factor < 0 for _, factor in c.terms):
            numerator, c = -numerator, -c
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
        self._put_beside({axis.index: solution})
        return solution


def _remainder(equation: Equation) -> Mod | None:
    """Return the remainder by the size of its axis that an index is; None for any other."""
    atom = equation.right.single if isinstance(equation.right, Affine) else None
    return atom if isinstance(atom, Mod) and atom.denominator == equation.dim and not equation.dim.indices() else None


def _is_above(right: Affine | Expr, quotient: Affine) -> bool:
    """Whether an index is a quotient, or a digit of it."""
    if right == quotient:
        return True
    atom = right.single if isinstance(right, Affine) else None
    return isinstance(atom, Mod) and atom.numerator == quotient


def _raised(right: Affine, e: Affine, d: Affine) -> Affine:
    """Return what an index that is `e // d`, or that modulo a size, becomes where the last digit of e is put behind it."""
    atom = right.single
    return e % (atom.denominator * d) if isinstance(atom, Mod) else e
