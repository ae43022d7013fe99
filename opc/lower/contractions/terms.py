"""The terms of a contraction: the products that a sum adds up, with the loops and conditions of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, is_floating
from opc.ir.expr import (
    INDEX,
    POSITION,
    READ,
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    conjuncts,
    free_groups,
    free_indices,
    reads,
    rewrite,
    traits,
)
from opc.ir.op import Assign, DimSpec, Group, Op
from opc.lower.contractions.factors import AxisIndex, Factor, GroupNumber, factor, guard, moving_indices, with_guard
from opc.lower.contractions.narrow import as_stored, fit, narrow
from opc.lower.loop_ir import PointGroups, Term
from opc.records import replace

MOST_TERMS = 8
"""What the runtime has room for; see opc/contraction/contraction.h."""


class Shape:
    """The loops of a sum inside a statement: those of the target and those it sums over."""

    def __init__(self, op: Op, assign: Assign, axes: tuple[ReduceAxis, ...]) -> None:
        self.op, self.assign, self.axes = op, assign, axes
        self.target = tuple(zip(assign.indices, op.operand(assign.target).dims, strict=True))
        inner: list[tuple[str | GroupRef, DimSpec]] = []
        for a in axes:
            match a:
                case Axis():
                    inner.append((a.index, a.extent))
                case GroupAxis():
                    inner.append((GroupRef(a.name), Group(a.name)))
        self.loops = (*self.target, *inner)
        self.extents = {i: d for i, d in self.loops if isinstance(i, str) and isinstance(d, Affine)}

    def varies(self, e: Expr) -> frozenset[str | GroupRef]:
        """Return the loops of the target that `e` varies with, but for those whose points only say which group they are in."""
        e = without_numbers(self.op, e)
        indices, groups = free_indices(e), free_groups(e)
        return frozenset(i for i, _ in self.target if (i.name in groups if isinstance(i, GroupRef) else i in indices))


def terms_of(op: Op, assign: Assign, e: Reduce, invariant: tuple[Expr, ...]) -> tuple[Term, ...] | None:
    """Return the terms of a sum, None when it is no contraction."""
    if not (is_floating(e.type) or e.type is DType.INT64) or sum(isinstance(a, BroadcastAxis) for a in e.axes) > 1:
        return None
    found: list[Term] = []
    for conditions, axes, body in _products(e.body, invariant, e.axes):
        if any(isinstance(a, Axis) and a.extent.indices() for a in axes):
            return None
        term = _term(Shape(op, assign, axes), conditions, axes, body)
        if term is None:
            return None
        found.append(term)
    grouped = {t.groups for t in found}
    if len(grouped) > 1 or (len(found) > 1 and any(g is not None and g.batch is not None for g in grouped)):
        return None
    return tuple(found) if 0 < len(found) <= MOST_TERMS else None


def _products(
    e: Expr, conditions: tuple[Expr, ...], axes: tuple[ReduceAxis, ...]
) -> Iterator[tuple[tuple[Expr, ...], tuple[ReduceAxis, ...], Expr]]:
    match e:
        case Const(value=0):
            pass
        case Call(fn="add", args=(a, b)):
            yield from _products(a, conditions, axes)
            yield from _products(b, conditions, axes)
        case Select(other=Const(value=0)):
            yield from _products(e.then, (*conditions, *conjuncts(e.cond)), axes)
        case Reduce(kind="sum") if not any(isinstance(a, BroadcastAxis) for a in e.axes):
            yield from _products(e.body, conditions, (*axes, *e.axes))
        case _:
            yield conditions, axes, e


def _term(shape: Shape, conditions: tuple[Expr, ...], axes: tuple[ReduceAxis, ...], e: Expr) -> Term | None:
    factors = list(multiplicands(e))
    if len(factors) != 2:
        return None
    invariant = tuple(dict.fromkeys(c for c in conditions if is_invariant(c)))
    guards = [c for c in dict.fromkeys(conditions) if not is_invariant(c)]
    read = [as_stored(f) if is_floating(e.type) else narrow(shape.op, f) for f in factors]
    groups = _groups(shape, guards, read)
    if groups is not None and groups.batch is not None:
        guards.pop()
    if groups is not None and guards:
        return None
    guarded = list(guards)
    made: list[Factor] = []
    for f in read:
        if not isinstance(f, Read):
            return None
        # Each factor sees every condition: what the first needs, the second may need too.
        mine = list(guarded)
        new = factor(f, shape.op.operand(f.operand).dims, shape.extents, mine, numbered_axes(shape.op, f))
        if new is None or (groups is not None and not _is_plain(new)):
            return None
        guards = [g for g in guards if g in mine]
        made.append(new)
    if not is_floating(e.type) and not fit(shape.op, made[0].read, made[1].read):
        return None
    for g in guards:
        extra = guard(g)
        if extra is None:
            return None
        names = {p.index for p in extra.parts}
        side = next((k for k, f in enumerate(made) if names <= f.indices), None)
        held = None if side is None else with_guard(made[side], extra)
        if side is None or held is None:
            return None
        made[side] = held
    loops = [{*f.indices, *(GroupRef(g) for g in f.groups)} for f in made]
    target = {i for i, _ in shape.target}
    if groups is not None and groups.batch is None:
        # Points of a group are rows of the factor that has no matrix for each.
        loops[1 if GroupNumber() in made[0].axes else 0] |= set(groups.loops)
    elif groups is not None:
        target -= {groups.batch}
    rows, columns = (loops[0] - loops[1]) & target, (loops[1] - loops[0]) & target
    if not rows or not columns or target - loops[0] - loops[1]:
        return None
    return Term(invariant, axes, (made[0], made[1]), groups)


def numbered_axes(op: Op, e: Expr) -> frozenset[int]:
    """Return the axes of a read along which there is a matrix for each group of points."""
    if not isinstance(e, Read):
        return frozenset()
    return frozenset(n for n, i in enumerate(e.indices) if isinstance(i, Read) and op.operand(i.operand).numbers)


def without_numbers(op: Op, e: Expr) -> Expr:
    """Return `e` with the first group in place of that of a point."""

    def first(n: Expr) -> Expr:
        axes = numbered_axes(op, n)
        if not isinstance(n, Read) or not axes:
            return n
        return replace(n, indices=tuple(Affine.of(0) if k in axes else i for k, i in enumerate(n.indices)))

    return rewrite(e, first) if any(o.numbers for o in op.temporaries) else e


def _is_plain(f: Factor) -> bool:
    """Whether nothing steps or is guarded in a factor."""
    axes = [a for a in f.axes if isinstance(a, AxisIndex)]
    return not f.guards and not any(a.guarded or any(p.divisor != Affine.of(1) for p in a.parts) for a in axes)


def _groups(shape: Shape, guards: list[Expr], factors: Sequence[Expr | None]) -> PointGroups | None:
    """Return the groups of the points of a product, None where there are none.

    A factor has a matrix for each; or the only condition says that a point is in the group of a loop of the target.
    """
    op, target = shape.op, {i for i, _ in shape.target}
    for f in factors:
        axes = numbered_axes(op, f) if f is not None else ()
        for axis in axes:
            assert isinstance(f, Read), "what has axes is read"
            numbers, count = f.indices[axis], op.operand(f.operand).dims[axis]
            if isinstance(numbers, Read) and isinstance(count, Affine) and len(axes) == 1 and set(entries(numbers)) <= target:
                return PointGroups(numbers.operand, entries(numbers), count, (f.operand, axis), None)
    match guards:
        case [Call(fn="eq", args=(IndexValue(value=place), Read() as numbers))] if op.operand(numbers.operand).numbers:
            inner = {i for i, _ in shape.loops} - target
            extent = None if place.index is None else shape.extents.get(place.index)
            if extent is not None and set(entries(numbers)) <= inner:
                return PointGroups(numbers.operand, entries(numbers), extent, None, place.index)
    return None


def entries(e: Read) -> tuple[str | GroupRef, ...]:
    """Return the loops of a read at bare indices."""
    return tuple(i if isinstance(i, GroupRef) else str(i) for i in e.indices)


def two_groups(atoms: list[Expr], shape: Shape) -> tuple[list[Expr], list[Expr]] | None:
    """Return the factors of a product in two groups, of which each has loops of the target that the other lacks.

    Loops that a factor only takes a step in every few points with, as with the group of a channel, count where it must be so.
    """
    return _groups_by(atoms, [shape.varies(a) for a in atoms]) or _groups_by(atoms, [_moves(a, shape) for a in atoms])


def _moves(e: Expr, shape: Shape) -> frozenset[str | GroupRef]:
    """Return the loops of the target that a value varies with, without those that its reads take steps in alone."""
    moving = frozenset[str]()
    for read in reads(e):
        moving |= moving_indices(read)
    return frozenset(i for i in shape.varies(e) if isinstance(i, GroupRef) or i in moving)


def _groups_by(atoms: list[Expr], loops: list[frozenset[str | GroupRef]]) -> tuple[list[Expr], list[Expr]] | None:
    for k, first in enumerate(loops):
        groups: tuple[list[Expr], list[Expr]] = ([], [])
        seen = [first, frozenset[str | GroupRef]()]
        for n, (atom, own) in enumerate(zip(atoms, loops, strict=True)):
            side = 0 if n == k or own <= first else 1
            groups[side].append(atom)
            seen[side] |= own
        if seen[0] - seen[1] and seen[1] - seen[0]:
            return groups
    return None


def is_invariant(e: Expr) -> bool:
    """Whether a condition is the same at all points of a call: it asks for sizes, attributes and what is present alone."""
    return not traits(e) & (READ | INDEX | POSITION)


def multiplicands(e: Expr) -> Iterator[Expr]:
    """Yield the factors of a product, `e` itself when it is none."""
    if isinstance(e, Call) and e.fn == "mul":
        for a in e.args:
            yield from multiplicands(a)
    else:
        yield e
