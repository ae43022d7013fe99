"""Scatters whose indices are computed: the indices of a row of terms are found together, and so are the terms.

The gradient of a sample of an image at the points of a grid is one: each point of a row adds to four pixels, by what floors and
products find. What is left to do one by one is the adding.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.expr import Axis, Call, Expr, free_indices, has_reduction, reads, walk
from opc.ir.op import Op
from opc.lower.guards import is_known_inside
from opc.lower.nest_plans import ScatterPlan
from opc.lower.nests.flat import is_short
from opc.lower.nests.gather_indices import bounds_of
from opc.records import replace


def with_rows(op: Op, plan: ScatterPlan) -> ScatterPlan:
    """Return a scatter with the axis along which its terms are taken in rows, if there is one."""
    if plan.reduction.kind != "sum" or plan.vector_axis is not None or plan.window is not None or plan.shared or plan.guards:
        return plan
    axes = [a for a in plan.reduction.axes if isinstance(a, Axis)]
    if len(axes) != len(plan.reduction.axes) or any(a.extent.indices() for a in axes):
        return plan
    scatter_indices = [p for _, p in plan.scatter_indices]
    if len(scatter_indices) == 1 and not any(isinstance(n, Call) for n in walk(scatter_indices[0])):
        return plan  # one index that is only looked up is found as quickly where its term is added
    if not all(_is_safe(op, plan, e) for e in (*scatter_indices, plan.body)) or free_indices(plan.body) & {
        i for i, _ in plan.scatter_indices
    }:
        return plan
    rows = [a.index for a in axes if not is_short(op, a.extent) and any(a.index in free_indices(p) for p in scatter_indices)]
    return replace(plan, row=rows[-1]) if rows else plan


def _is_safe(op: Op, plan: ScatterPlan, e: Expr) -> bool:
    """Whether a value can be computed for terms that don't count too."""
    if has_reduction(e):
        return False
    bounded = bounds_of(plan.statement)
    optional = {i.name for i in op.inputs if i.optional}
    found = list(reads(e))
    plain = all(isinstance(i, Affine) for r in found for i in r.indices)
    return plain and all(
        r.operand not in optional and not r.checked and is_known_inside(r, op.operand(r.operand).sizes, bounded) for r in found
    )
