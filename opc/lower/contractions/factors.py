"""The factors of a contraction: reads whose indices fall apart into a sum of what each loop adds.

That lets the runtime keep the places of a factor's elements in tables, one for rows or columns and one for what is summed over,
whatever strides, windows and divisions its indices have.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.affine import Affine, Dim, FloorDiv, GroupSize, Index, Mod
from opc.ir.comparisons import told
from opc.ir.expr import Call, Const, Expr, GroupRef, Read, affine_value, free_groups, free_indices, reads, rewrite
from opc.ir.op import DimSpec, Op
from opc.records import dataclass, replace
from opc.transform.indices import Namer, bare

NOTHING: frozenset[int] = frozenset()

MOST_PARTS = 6
MOST_GUARDS = 6
"""What the runtime has room for; see opc/contraction/contraction.h."""


@dataclass(frozen=True, slots=True)
class Part:
    """`times * ((scale * index + shift) // divisor)`: what one loop adds to an index."""

    index: str
    times: Affine
    scale: Affine
    shift: Affine
    divisor: Affine

    @property
    def moves(self) -> bool:
        """Whether it changes with the loop, and not only every so many points, as `o // (O // groups)` and `h*G // H` do.

        `(m*down) // up`, of numbers and attributes, changes as often as not: blocks of so few points take longer than the
        products in them.
        """
        one = Affine.of(1)
        if self.divisor == one:
            return True
        return self.scale not in (one, -one) and not any(isinstance(a, Dim | GroupSize) for a in self.divisor.atoms())


@dataclass(frozen=True, slots=True)
class AxisIndex:
    """`(sum of parts + offset) / divisor`, the index of one axis.

    Where a `guarded` one is outside `0..size`, or the division leaves a remainder, its factor is 0; with `skips` the product does
    not count there, whatever the other factor is. `size` None is the size of the axis, or no bound.
    """

    parts: tuple[Part, ...]
    offset: Affine
    divisor: Affine
    guarded: bool
    skips: bool = False
    size: Affine | None = None


@dataclass(frozen=True, slots=True)
class GroupNumber:
    """The index of an axis that has a matrix for each group of points: the group of the point."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor: a read, an `AxisIndex`, a group of axes or the group of the point for each entry of its indices, and conditions
    where it is not 0."""

    read: Read
    axes: tuple[AxisIndex | GroupRef | GroupNumber, ...]
    guards: tuple[AxisIndex, ...]

    @property
    def indices(self) -> frozenset[str]:
        """The index variables the factor varies with; steps of several points, such as `o // (O // groups)`, don't count."""
        axes = (*(a for a in self.axes if isinstance(a, AxisIndex)), *self.guards)
        return frozenset(p.index for a in axes for p in a.parts if p.moves)

    @property
    def groups(self) -> frozenset[str]:
        """The groups of axes the factor varies with."""
        return frozenset(a.name for a in self.axes if isinstance(a, GroupRef))


def factor(
    read: Read,
    dims: tuple[DimSpec, ...],
    extents: Mapping[str, Affine],
    conditions: list[Expr],
    numbered: frozenset[int] = NOTHING,
) -> Factor | None:
    """Return a read as a factor; None when its indices are not of that form.

    `dims` are the operand's, `extents` the range of each index variable, the axes `numbered` those with a point for each group.
    The comparisons of `conditions` that say that the read is inside are taken from the list: a guarded factor needs no more of
    them.
    """
    if not numbered.issuperset(read.checked) or not (read.pad is None or is_zero(read.pad)):
        return None
    guarded = read.pad is not None or bool(conditions)
    axes: list[AxisIndex | GroupRef | GroupNumber] = []
    covered: list[Expr] = []
    for n, (index, dim) in enumerate(zip(read.indices, dims, strict=True)):
        if n in numbered:
            axes.append(GroupNumber())
            continue
        if isinstance(index, GroupRef):
            axes.append(index)
            continue
        if not isinstance(index, Affine) or not isinstance(dim, Affine):
            return None
        plain = index.index is not None and extents[index.index] == dim
        bounded = any(_says_inside(c, index, dim) for c in conditions)
        axis = _axis(index, guarded and not plain, read.pad is None or bounded)
        if axis is None:
            return None
        if axis.guarded:
            inside = [c for c in conditions if _says_inside(c, index, dim) or _says_whole(c, index)]
            if axis.divisor != Affine.of(1) and not any(_says_whole(c, index) for c in conditions):
                return None
            covered += inside
        axes.append(axis)
    conditions[:] = [c for c in conditions if c not in covered]
    found = Factor(read, tuple(axes), ())
    return found if _fits(found) else None


@dataclass(frozen=True, slots=True)
class Window:
    """A value that depends on the loops by the elements it reads alone, all in one place of operands of one shape.

    It is `value` at the element of these `names`, along `dims`; the loops read it at `indices`.
    """

    names: tuple[str, ...]
    dims: tuple[Affine, ...]
    value: Expr
    indices: tuple[Affine, ...]


def window_of(op: Op, e: Expr, namer: Namer) -> Window | None:
    """Return a value as one at each element that it reads, where that is read by windows; None for any other value."""
    varying = [r for r in reads(e) if free_indices(r) or free_groups(r)]
    if not varying or free_groups(e) or any(r.pad is not None or r.checked for r in varying):
        return None
    first = varying[0]
    dims = op.operand(first.operand).dims
    indices = tuple(i for i in first.indices if isinstance(i, Affine))
    same = all(r.indices == indices and op.operand(r.operand).dims == dims for r in varying)
    if not same or all(i.index is not None for i in indices):
        return None
    names = tuple(namer.fresh("i") for _ in indices)
    value = rewrite(e, lambda n: replace(n, indices=bare(names)) if isinstance(n, Read) and n in varying else n)
    if not free_indices(value) <= set(names):
        return None
    return Window(names, tuple(d for d in dims if isinstance(d, Affine)), value, indices)


def guard(condition: Expr) -> AxisIndex | None:
    """Return a comparison of indices as an index that must be in its range; None when it is none."""
    if not (isinstance(condition, Call) and condition.fn in ("lt", "le", "gt", "ge", "eq")):
        return None
    a, b = (affine_value(e) for e in condition.args)
    if a is None or b is None:
        return None
    parts = _parts(told(condition.fn, a, b)[0])
    if parts is None or len(parts[0]) > MOST_PARTS:
        return None
    return AxisIndex(parts[0], parts[1], Affine.of(1), True, True, Affine.of(1) if condition.fn == "eq" else None)


def with_guard(f: Factor, extra: AxisIndex) -> Factor | None:
    """Return the factor with one more guard; None when there is no room for it."""
    found = Factor(f.read, f.axes, (*f.guards, extra))
    return found if _fits(found) else None


def _fits(f: Factor) -> bool:
    axes = [*(a for a in f.axes if isinstance(a, AxisIndex)), *f.guards]
    return sum(a.guarded for a in axes) <= MOST_GUARDS and all(len(a.parts) <= MOST_PARTS for a in axes)


def moving_indices(read: Read) -> frozenset[str]:
    """Return the index variables of a read but those that it only takes a step with every few points, as `o // (O // groups)`."""
    found: set[str] = set()
    for index in read.indices:
        if not isinstance(index, Affine):
            continue
        axis = _axis(index, True, False)
        found |= index.indices() if axis is None else {p.index for p in axis.parts if p.moves}
    return frozenset(found)


def is_zero(e: Expr) -> bool:
    """Whether a value is the constant 0."""
    return isinstance(e, Const) and e.value == 0


def _says_inside(condition: Expr, index: Affine, size: Affine) -> bool:
    """Whether a comparison is one of `index >= 0` and `index < size`."""
    match condition:
        case Call(fn="ge", args=(a, b)):
            return affine_value(a) == index and affine_value(b) == Affine.of(0)
        case Call(fn="lt", args=(a, b)):
            return affine_value(a) == index and affine_value(b) == size
        case _:
            return False


def _says_whole(condition: Expr, index: Affine) -> bool:
    """Whether a comparison says that the division that `index` is has no remainder."""
    division = index.single
    match condition:
        case Call(fn="eq", args=(a, b)) if isinstance(division, FloorDiv):
            return affine_value(b) == Affine.of(0) and affine_value(a) == division.numerator % division.denominator
        case _:
            return False


def _axis(index: Affine, guarded: bool, skips: bool) -> AxisIndex | None:
    """Return the index of an axis, one division of everything allowed where a guard sees to remainders."""
    divisor = Affine.of(1)
    division = index.single
    if guarded and isinstance(division, FloorDiv) and len(division.numerator.indices()) > 1:
        index, divisor = division.numerator, division.denominator
    parts = _parts(index)
    return None if parts is None else AxisIndex(parts[0], parts[1], divisor, guarded, guarded and skips)


def _parts(e: Affine) -> tuple[tuple[Part, ...], Affine] | None:
    """Return what each loop adds to an expression, and the rest; None when it does not fall apart."""
    one, zero = Affine.of(1), Affine.of(0)
    offset = zero
    parts: dict[tuple[str, Affine, Affine, Affine], Affine] = {}
    for monomial, coefficient in e.terms:
        moving = [a for a in monomial if Affine.of(a).indices()]
        times = Affine.of(coefficient)
        for atom in monomial:
            if atom not in moving:
                times = times * atom
        if not moving:
            offset = offset + times
            continue
        if len(moving) > 1:
            return None
        atom = moving[0]
        if isinstance(atom, Index):
            pieces = [((atom.name, one, zero, one), times)]
        elif isinstance(atom, FloorDiv | Mod):
            line = _line(atom.numerator)
            if line is None or atom.denominator.indices():
                return None
            name, scale, shift = line
            floor = (name, scale, shift, atom.denominator)
            if isinstance(atom, FloorDiv):
                pieces = [(floor, times)]
            else:
                pieces = [((name, scale, shift, one), times), (floor, -(times * atom.denominator))]
        else:
            return None
        for key, value in pieces:
            parts[key] = parts.get(key, zero) + value
    return tuple(Part(k[0], times, *k[1:]) for k, times in parts.items() if times != zero), offset


def _line(e: Affine) -> tuple[str, Affine, Affine] | None:
    """Return an expression as `scale * index + shift` over its only index variable, None when it is not."""
    names = e.indices()
    if len(names) != 1:
        return None
    (name,) = names
    scale = e.coefficient(name)
    if scale is None:
        return None
    return name, scale, e - scale * Affine.of(Index(name))
