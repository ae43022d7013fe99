"""Scatters to indices in windows: where a search over a window finds an element, a term goes to where that element lies.

The gradient of max pooling is one. What the search reads lies inside, so an index that it found is inside of the target too, and
is a fixed distance from the row of windows: that distance is all the search has to keep.
"""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.value_types import affine_of, integer_of
from opc.ir.affine import Affine, Index
from opc.ir.expr import Axis, Call, Expr, IndexValue, Read, Reduce, free_indices, reads, rewrite, walk
from opc.ir.op import Op
from opc.lower.nest_plans import ScatterPlan, WindowSearch
from opc.lower.nests.flat import is_positive
from opc.lower.nests.gather_indices import bounds_of
from opc.lower.nests.search import searches
from opc.lower.nests.windowed import Facts, row_window


def with_window(op: Op, plan: ScatterPlan) -> ScatterPlan:
    """Return a scatter whose indices are expressed by the one search they need, where they lie inside of what it reads."""
    found = searches(p for _, p in plan.scatter_indices)
    if plan.reduction.kind != "sum" or len(found) != 1 or plan.vector_axis is not None or plan.guards:
        return plan
    (search,) = found
    body, vector_axis = search.body, plan.reduction.axes[-1]
    if (
        not isinstance(body, Read)
        or not isinstance(vector_axis, Axis)
        or not _is_plain(op, plan, search, body, vector_axis.index)
    ):
        return plan
    scatter_indices = [_place(p, search) for _, p in plan.scatter_indices]
    names = [index for index, _ in plan.scatter_indices]
    entries = [plan.statement.indices.index(n) for n in names]
    last = len(plan.statement.indices)
    if entries != list(range(last - len(names), last)) or any(n in free_indices(plan.body) for n in names):
        return plan
    sizes = op.operand(body.operand).dims
    known: list[Affine] = []
    for position, entry in zip(scatter_indices, entries):
        if position is None or (position, plan.statement.extents[entry]) not in list(zip(body.indices, sizes, strict=True)):
            return plan
        known.append(position)
    return replace(plan, window=WindowSearch(search, tuple(known)))


def _is_plain(op: Op, plan: ScatterPlan, search: Reduce, body: Read, vector_axis: str) -> bool:
    """Whether the search is one over the windows of a row of an input, all of whose other indices the target has too."""
    bounded = bounds_of(plan.statement)
    found = row_window(
        op, search, vector_axis, Facts(lambda name: op.operand(name).sizes, bounded, lambda size: is_positive(op, size))
    )
    if found is None or not all(is_positive(op, a.axis.extent) for a in found.axes):
        return False
    others = (r for r in reads(plan.statement.value) if r.operand == body.operand)
    if any(not isinstance(i, Affine) for r in others for i in r.indices):
        return False
    moving = {vector_axis, *(a.axis.index for a in found.axes)}
    scatter_indices = zip(body.indices, op.operand(body.operand).sizes, strict=True)
    alike = all(isinstance(i, Affine) and (i.indices() & moving or bounded.get(i) == size) for i, size in scatter_indices)
    return alike and not any(i.optional and i.name == body.operand for i in op.inputs)


def _place(position: Expr, search: Reduce) -> Affine | None:
    """Return an index as an expression of the axes of the search, None when it isn't affine in them."""
    axes = [a for a in search.axes if isinstance(a, Axis)]
    last = axes[-1]
    parts: dict[Expr, Affine] = {}
    if len(axes) == 1:
        parts[search] = Affine.of(Index(last.index))
    for n in walk(position):
        whole = isinstance(n, Call) and n.fn in ("floordiv", "mod") and n.args[0] == search
        if len(axes) == 2 and isinstance(n, Call) and whole and affine_of(n.args[1]) == last.extent:
            parts[n] = Affine.of(Index((axes[0] if n.fn == "floordiv" else last).index))
    return integer_of(rewrite(position, lambda n: IndexValue(parts[n]) if n in parts else n))
