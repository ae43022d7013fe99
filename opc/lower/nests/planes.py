"""Sums over windows of planes: products of elements of two operands that keep an index of the target, the channel, apart.

A convolution that keeps channels apart is one, and so are its gradients. Rows of small planes don't fill a vector, but there are
as many planes as channels: the lanes then go across these. What of a window counts at a row, and at a column, of the target is
the same for all channels, so it is looked up in tables, and strides, dilation and padding cost nothing inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, Call, Const, Expr, Read, Reduce, Select, children, free_indices, reads, walk
from opc.ir.op import Op
from opc.lower.guards import Guard, guard_indices, inside, peel
from opc.lower.loop_ir import Flat


@dataclass(frozen=True, slots=True)
class PlaneAxis:
    """An index of the target, and the axis of the sum with which it moves along one axis of the element: to `place`, where all
    `guards` hold."""

    index: str
    axis: Axis
    entry: int
    place: Affine
    guards: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class Planes:
    """A sum of `element * factor` over the windows of `axes`, and over `term`, that keeps `channel` apart.

    Where it is `padded`, places outside hold zeros, which count.
    """

    sum: Reduce
    channel: str
    axes: tuple[PlaneAxis, ...]
    term: Axis | None
    element: Read
    factor: Read
    padded: bool


def planes_of(
    op: Op,
    flat: Flat,
    sizes: Callable[[str], tuple[Affine, ...]],
    bounded: dict[Affine, Affine],
    positive: Callable[[Affine], bool],
) -> Planes | None:
    """Return the one sum of a statement as one over windows of planes, None when it is none.

    `bounded` tells indices that are within an extent, `positive` whether a divisor is.
    """
    sums = [e for e in walk(flat.value) if isinstance(e, Reduce)]
    if len(sums) != 1 or not _always(flat.value, sums[0]):
        return None
    (e,) = sums
    axes = [a for a in e.axes if isinstance(a, Axis)]
    if e.kind != "sum" or len(axes) != len(e.axes) or any(a.extent.indices() for a in axes) or not is_floating(e.type):
        return None
    if op.operand(flat.target).type != e.type:
        return None
    bounded = bounded | {Affine.of(Index(a.index)): a.extent for a in axes}
    found, body = peel("sum", e.body, sizes, bounded, positive)
    if not isinstance(body, Call) or body.fn != "mul":
        return None
    for element, factor in (body.args, body.args[::-1]):
        if not isinstance(element, Read) or not isinstance(factor, Read) or not _are_plain(op, e, (element, factor)):
            continue
        conditions = (*found, *(inside(element, sizes(element.operand), bounded) if element.pad is not None else ()))
        for rank in (2, 1):
            planes = _with_rank(flat, e, axes, element, factor, conditions, rank)
            if planes is not None:
                return planes
    return None


def _always(value: Expr, e: Reduce) -> bool:
    """Whether a value takes in a sum under no condition."""
    if value is e:
        return True
    chosen = (value.cond,) if isinstance(value, Select) else ()
    if any(isinstance(n, Reduce) for c in chosen for n in walk(c)):
        return False
    if isinstance(value, Select) or (isinstance(value, Call) and value.fn in ("and", "or")):
        return False
    return any(_always(c, e) for c in children(value))


def _are_plain(op: Op, e: Reduce, found: tuple[Read, Read]) -> bool:
    """Whether reads are of operands that are there and hold what is summed; only the first may reach beyond its operand."""
    optional = {i.name for i in op.inputs if i.optional}
    element, factor = found
    zero = element.pad is None or (isinstance(element.pad, Const) and element.pad.value == 0)
    plain = all(
        r.type == e.type
        and r.operand not in optional
        and not r.checked
        and r.indices
        and all(isinstance(i, Affine) for i in r.indices)
        for r in found
    )
    return plain and zero and factor.pad is None


def _with_rank(
    flat: Flat, e: Reduce, axes: list[Axis], element: Read, factor: Read, conditions: Sequence[Guard], rank: int
) -> Planes | None:
    """Return a sum as one over windows of planes with so many axes, which the target ends in."""
    if len(flat.indices) <= rank:
        return None
    plane, channel = flat.indices[-rank:], flat.indices[-rank - 1]
    indices = [i for i in element.indices if isinstance(i, Affine)]
    by = [i for i in factor.indices if isinstance(i, Affine)]
    found: list[PlaneAxis] = []
    for index in plane:
        entries = [n for n, i in enumerate(indices) if index in i.indices()]
        moving = [a for n in entries for a in axes if a.index in indices[n].indices()]
        if len(entries) != 1 or len(moving) != 1 or indices[entries[0]].indices() != {index, moving[0].index}:
            return None
        names = {index, moving[0].index}
        own = tuple(g for g in conditions if guard_indices(g) & names)
        if any(guard_indices(g) - names or _reads(g) for g in own):
            return None
        found.append(PlaneAxis(index, moving[0], entries[0], indices[entries[0]], own))
    windows = [a.axis for a in found]
    if len({a.index for a in windows}) != rank or any(not any(g in a.guards for a in found) for g in conditions):
        return None
    terms = [a for a in axes if a not in windows]
    if len(terms) > 1 or found[-1].entry != len(indices) - 1 or by[-1] != Affine.of(Index(windows[-1].index)):
        return None
    kept = [i for n, i in enumerate(indices) if n not in {a.entry for a in found}]
    bare = [Index(channel), *(Index(a.index) for a in terms)]
    moves = {*plane, channel, *(a.index for a in axes)}
    if not _stands_bare(kept, bare, moves) or not _stands_bare(by, [*bare, *(Index(a.index) for a in windows)], moves):
        return None
    if any(free_indices(r) & set(plane) for r in _others(flat.value, e)):
        return None
    padded = element.pad is not None
    return Planes(e, channel, tuple(found), terms[0] if terms else None, replace(element, pad=None), factor, padded)


def _reads(g: Guard) -> bool:
    return not isinstance(g, Affine) and any(True for _ in reads(g))


def _stands_bare(indices: Sequence[Affine], bare: Sequence[Index], moves: set[str]) -> bool:
    """Whether each of some indices is alone in one entry, and no other entry depends on what moves within planes."""
    alone = [Affine.of(i) for i in bare]
    rest = [i for i in indices if i not in alone]
    return all(indices.count(i) == 1 for i in alone) and not any(i.indices() & moves for i in rest)


def _others(value: Expr, e: Reduce) -> list[Expr]:
    """Return the parts of a value beside its sum."""
    if value is e:
        return []
    parts = [p for c in children(value) for p in _others(c, e)]
    return parts if any(n is e for n in walk(value)) else [value]
