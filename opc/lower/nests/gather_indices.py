"""Gathers: reads whose index is computed from data at each lane, as in sampling an image at the points of a grid.

The indices of a row of lanes are found together, ahead of the loop over the vector axis, and so are the elements that lie there:
what is left in the loop is arithmetic on rows. Gather indices that do not change along some indices of the target, such as the
channels of the image, are found once for all of them: those loops run innermost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.analysis.bounds.quotients import every_division
from opc.ir.affine import Affine, Index
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    has_reduction,
    reads,
    reductions,
    walk,
)
from opc.ir.op import Op
from opc.lower.guards import is_known_inside
from opc.lower.nest_plans import Flat

MAX_GATHERS = 16
"""A unit of work has rows for so many indices."""


def is_looked_up(op: Op, e: Read, vector_axis: str) -> bool:
    """Whether a read finds its index by data that change along the vector axis, and may do so ahead of where its value is
    used."""
    computed = [i for i in e.indices if not isinstance(i, Affine | GroupRef)]
    if not any(vector_axis in free_indices(i) for i in computed) or not isinstance(e.pad, Const | None):
        return False
    if any(has_reduction(i) for i in computed):
        return False  # the loops that find it come first; then it is one of what they have found
    return not any(i.optional for i in op.inputs if i.name in {e.operand, *(r.operand for x in computed for r in reads(x))})


def gathered_entries(op: Op, e: Read, vector_axis: str, bounded: Mapping[Affine, Affine]) -> tuple[int, ...]:
    """Return the entries of a read that make its index in a row: all that change along the vector axis or must be tested."""
    sizes = op.operand(e.operand).sizes
    return tuple(n for n, i in enumerate(e.indices) if vector_axis in indices_of(i) or is_tested(e, n, sizes, bounded))


def is_tested(e: Read, entry: int, sizes: tuple[Affine, ...], bounded: Mapping[Affine, Affine]) -> bool:
    """Whether an index of a read may lie outside, where it is padded or refused."""
    index = e.indices[entry]
    if not isinstance(index, Affine) or entry in e.checked:
        return True
    one = Read(e.operand, (index,), e.type)
    return e.pad is not None and not is_known_inside(one, sizes[entry : entry + 1], bounded)


def looked_up(op: Op, e: Expr, vector_axis: str, bounded: Mapping[Affine, Affine], certain: bool = True) -> Iterator[Read]:
    """Yield the reads of `e` that are looked up ahead of a row: those that no choice along the vector axis hangs on.

    What a condition or a sum of no terms may leave out is not `certain`: among them is that with an index found anyhow.
    """
    match e:
        case Read():
            if is_looked_up(op, e, vector_axis) and (certain or _is_found_anyhow(op, e, bounded)):
                yield e
        case Select():
            yield from looked_up(op, e.cond, vector_axis, bounded, certain)
            if vector_axis not in free_indices(e.cond):
                yield from looked_up(op, e.then, vector_axis, bounded, certain=False)
                yield from looked_up(op, e.other, vector_axis, bounded, certain=False)
        case Call(fn="and" | "or"):
            for n, c in enumerate(e.args):
                yield from looked_up(op, c, vector_axis, bounded, certain and n == 0)
        case _:
            for c in children(e):
                yield from looked_up(op, c, vector_axis, bounded, certain and not isinstance(e, Reduce))


def _is_found_anyhow(op: Op, e: Read, bounded: Mapping[Affine, Affine]) -> bool:
    """Whether the index of a read may be found at any point: that refuses nothing, divides by no size, reads nothing outside."""
    computed = [i for i in e.indices if not isinstance(i, Affine | GroupRef)]
    inner = [r for i in computed for r in reads(i)]
    affine = [i for r in (e, *inner) for i in r.indices if isinstance(i, Affine)]
    numbers = [n.value for i in computed for n in walk(i) if isinstance(n, IndexValue)]
    if any(r.checked for r in (e, *inner)) or any(
        d.denominator.constant is None for i in (*affine, *numbers) for d in every_division(i)
    ):
        return False
    return all(r.pad is not None or is_known_inside(r, op.operand(r.operand).sizes, bounded) for r in inner)


def bounds_of(flat: Flat) -> dict[Affine, Affine]:
    """Return the extents of a statement's indices and of its reductions'."""
    found = {Affine.of(Index(i)): x for i, x in zip(flat.indices, flat.extents, strict=True)}
    return found | axis_bounds(flat.value)


def axis_bounds(e: Expr) -> dict[Affine, Affine]:
    """Return the extents of the indices of the reductions in an expression."""
    axes = (a for r in reductions(e) for a in r.axes)
    return {Affine.of(Index(a.index)): a.extent for a in axes if isinstance(a, Axis)}


def gather_indices(op: Op, flat: Flat, vector_axis: str, e: Read) -> set[str]:
    """Return the loop indices that the computed index of a read depends on."""
    return {n for k in gathered_entries(op, e, vector_axis, bounds_of(flat)) for n in indices_of(e.indices[k])}


def indices_of(index: Affine | GroupRef | Expr) -> set[str]:
    """Return the index variables in an index of a read."""
    if isinstance(index, GroupRef):
        return set()
    return set(index.indices()) if isinstance(index, Affine) else set(free_indices(index))


def inner_indices(op: Op, flat: Flat, vector_axis: str) -> tuple[str, ...]:
    """Return the indices of the target that no gather index depends on."""
    found = [gather_indices(op, flat, vector_axis, r) for r in looked_up(op, flat.value, vector_axis, bounds_of(flat))]
    if not any(names <= set(flat.indices) for names in found):
        return ()
    return tuple(i for i in flat.indices if i != vector_axis and not any(i in names for names in found))
