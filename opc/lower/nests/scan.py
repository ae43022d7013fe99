"""Running reductions: `y[i] = sum[k:i + 1](x[k])` and its kin are one pass along i.

At each i the terms counted are those of the i before, and more: the extent grows along i, or grows as i falls, or the terms are
counted from i on. So the reduction is carried along and only takes in what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.analysis.bounds.inside import ReadsInside, parts
from opc.analysis.bounds.knowledge import Conditions, knowledge_of
from opc.ir.affine import Affine, Index
from opc.ir.expr import EXTREMES, SEARCHES, Axis, Expr, Read, Reduce, Select, free_indices, reductions, walk
from opc.ir.identity import IDENTITY
from opc.ir.op import Op
from opc.lower.guards import replace_node
from opc.lower.nest_plans import Flat, ScanPlan
from opc.lower.rows.flatten import maybe_empty
from opc.records import replace
from opc.transform.indices import substitute


def flat_scan(op: Op, flat: Flat, searches: bool = False) -> ScanPlan | None:
    """Return how a flat statement with a running reduction is run, else None: with `searches` an argmax or argmin too."""
    found = reductions(flat.value)
    kinds = (*IDENTITY, *SEARCHES) if searches else IDENTITY
    if len(found) != 1 or found[0].kind not in kinds or len(found[0].axes) != 1:
        return None
    (e,) = found
    (axis,) = e.axes
    nonempty = _has_terms(op, flat, e)
    if not isinstance(axis, Axis) or (_is_chosen(flat.value, e) and not (nonempty and _is_read_anywhere(op, flat, e))):
        return None
    for index in flat.indices:
        if index not in axis.extent.indices():
            continue
        step = axis.extent.coefficient(index)
        if step is None or step.constant not in (1, -1):
            continue
        others = [i for i in flat.indices if i != index]
        vector_axis = others[-1] if others else None
        if step.constant == -1 and index in free_indices(e.body):
            return _from_here_on(flat, e, axis, index, vector_axis, nonempty)
        if index not in free_indices(e.body):
            return ScanPlan(flat, e, index, vector_axis, descending=step.constant == -1, from_here=False, nonempty=nonempty)
    return None


def _is_read_anywhere(op: Op, flat: Flat, e: Reduce) -> bool:
    """Whether the terms of a reduction may be read at every point: none is refused there, and none lies elsewhere."""
    proofs = ReadsInside(op)

    def holds(x: Expr, ranges: Mapping[str, Affine], under: Conditions) -> bool:
        if isinstance(x, Read) and (x.checked or proofs.axes_outside(x, ranges, under)):
            return False
        return all(holds(*part) for part in parts(x, ranges, under))

    return holds(e, dict(zip(flat.indices, flat.extents, strict=True)), ())


def _has_terms(op: Op, flat: Flat, e: Reduce) -> bool:
    """Whether a reduction need not be refused where it is asked for: it is no maximum or minimum, or has terms."""
    if e.kind not in EXTREMES:
        return True
    knowledge = knowledge_of(op)

    def asked(x: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Iterator[bool]:
        if x is e:
            yield not maybe_empty(knowledge, e, ranges, under)
        for part in parts(x, ranges, under):
            yield from asked(*part)

    return all(asked(flat.value, dict(zip(flat.indices, flat.extents, strict=True)), ()))


def _is_chosen(value: Expr, e: Reduce) -> bool:
    """Whether a condition decides at each point if a reduction is asked for; a pass takes in the terms of all points."""
    return any(isinstance(s, Select) and any(n is e for side in (s.then, s.other) for n in walk(side)) for s in walk(value))


def _from_here_on(flat: Flat, e: Reduce, axis: Axis, index: str, vector_axis: str | None, nonempty: bool) -> ScanPlan | None:
    """Return the scan of terms that depend on `index + axis` alone, which are counted from the index on."""
    if e.kind in SEARCHES:
        return None  # its result counts from the index, and the first of equal ones is another as the index falls
    shifted = substitute(e.body, {axis.index: Affine.of(Index(axis.index)) - Index(index)})
    if index in free_indices(shifted):
        return None
    extent = axis.extent + Index(index)
    if index in extent.indices():
        return None
    moved = replace(e, axes=(Axis(axis.index, extent),), body=shifted)
    value = _replaced(flat, e, moved)
    return ScanPlan(value, moved, index, vector_axis, descending=True, from_here=True, nonempty=nonempty)


def _replaced(flat: Flat, old: Reduce, new: Reduce) -> Flat:
    return replace(flat, value=replace_node(flat.value, old, new))
