"""Reads whose place in their operand is found lane by lane, as in a sample of an image at the points of a grid.

The places of a row of lanes are found together, ahead of the loop over the lane, and so are the elements that lie there: what is
left in the loop is arithmetic on rows. Places that stay the same along some indices of the target, such as the channels of the
image, are found once for all of them: these indices run innermost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.expr import Axis, Const, Expr, GroupRef, Read, Reduce, Select, children, free_indices, reads, walk
from opc.ir.op import Op
from opc.lower.guards import is_known_inside
from opc.lower.loop_ir import Flat
from opc.lower.nests.flat import holds_reduction

MOST_PLACES = 8
"""A unit of work has rows for so many places."""


def is_looked_up(op: Op, e: Read, lane: str) -> bool:
    """Whether a read finds its place by data that change along the lane, and may do so ahead of where its value is used."""
    computed = [i for i in e.indices if not isinstance(i, Affine | GroupRef)]
    if not any(lane in free_indices(i) for i in computed) or not isinstance(e.pad, Const | None):
        return False
    if any(holds_reduction(i) for i in computed):
        return False  # the loops that find it come first; then it is one of what they have found
    return not any(i.optional for i in op.inputs if i.name in {e.operand, *(r.operand for x in computed for r in reads(x))})


def sizes_of(op: Op, operand: str) -> tuple[Affine, ...]:
    """Return the size of each entry of an operand's shape."""
    return tuple(d if isinstance(d, Affine) else Affine.of(GroupSize(d.name)) for d in op.operand(operand).dims)


def place_entries(op: Op, e: Read, lane: str, bounded: Mapping[Affine, Affine]) -> tuple[int, ...]:
    """Return the entries of a read that make its place in a row: all that change along the lane or must be tested."""
    sizes = sizes_of(op, e.operand)
    return tuple(n for n, i in enumerate(e.indices) if lane in indices_of(i) or is_tested(e, n, sizes, bounded))


def is_tested(e: Read, entry: int, sizes: tuple[Affine, ...], bounded: Mapping[Affine, Affine]) -> bool:
    """Whether an index of a read may lie outside, where it is padded or refused."""
    index = e.indices[entry]
    if not isinstance(index, Affine) or entry in e.checked:
        return True
    one = Read(e.operand, (index,), e.type)
    return e.pad is not None and not is_known_inside(one, sizes[entry : entry + 1], bounded)


def looked_up(op: Op, e: Expr, lane: str) -> Iterator[Read]:
    """Yield the reads of `e` that are looked up wherever a row is computed: those that no choice along the lane hangs on."""
    if isinstance(e, Select):
        yield from looked_up(op, e.cond, lane)
        if lane not in free_indices(e.cond):
            yield from looked_up(op, e.then, lane)
            yield from looked_up(op, e.other, lane)
        return
    if isinstance(e, Read):
        if is_looked_up(op, e, lane):
            yield e
        return
    for c in children(e):
        yield from looked_up(op, c, lane)


def bounds_of(flat: Flat) -> dict[Affine, Affine]:
    """Return the extents of a statement's indices and of its reductions'."""
    found = {Affine.of(Index(i)): x for i, x in zip(flat.indices, flat.extents, strict=True)}
    return found | axis_bounds(flat.value)


def axis_bounds(e: Expr) -> dict[Affine, Affine]:
    """Return the extents of the indices of the reductions in an expression."""
    axes = (a for r in walk(e) if isinstance(r, Reduce) for a in r.axes)
    return {Affine.of(Index(a.index)): a.extent for a in axes if isinstance(a, Axis)}


def place_indices(op: Op, flat: Flat, lane: str, e: Read) -> set[str]:
    """Return the indices that the place of a read changes with."""
    return {n for k in place_entries(op, e, lane, bounds_of(flat)) for n in indices_of(e.indices[k])}


def indices_of(index: Affine | GroupRef | Expr) -> set[str]:
    """Return the index variables in an index of a read."""
    if isinstance(index, GroupRef):
        return set()
    return set(index.indices()) if isinstance(index, Affine) else set(free_indices(index))


def inner_indices(op: Op, flat: Flat, lane: str) -> tuple[str, ...]:
    """Return the indices of the target along which all places of looked-up reads stay the same."""
    found = [place_indices(op, flat, lane, r) for r in looked_up(op, flat.value, lane)]
    if not any(names <= set(flat.indices) for names in found):
        return ()
    return tuple(i for i in flat.indices if i != lane and not any(i in names for names in found))
