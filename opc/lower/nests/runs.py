"""Sums whose terms each go to a run of places: a condition says by data where in the target it begins and ends.

`y[n, d] = sum[b](g[b, d] if begins[b] <= n and n < ends[b] else 0)` is the transpose of sums over runs. It adds g[b, d] at each
place of the run of b, one b after the other, in time that grows with the length of the runs and not with `N*B`.
"""

from __future__ import annotations

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.patterns import conjunction
from opc.analysis.runs import Bound, bound_on
from opc.ir.affine import Affine
from opc.ir.expr import Axis, free_indices, has_reduction, may_refuse, reads
from opc.ir.op import Assign, Op
from opc.lower.alone import of_statement
from opc.lower.guards import Guard, guards
from opc.lower.nest_plans import Flat, Run, ScatterPlan
from opc.lower.nests.flat import flat_statement, is_positive
from opc.lower.nests.terms import conditions_of, whole_reduction


@of_statement
def is_scatter_of_runs(op: Op, assign: Assign) -> bool:
    """Whether the whole value of a statement is such a sum."""
    flat = flat_statement(op, assign) if has_reduction(assign.value) else None
    return flat is not None and flat_runs(op, flat) is not None


def flat_runs(op: Op, flat: Flat) -> ScatterPlan | None:
    """Return how a flat statement whose whole value is such a sum is run, else None."""
    whole = whole_reduction(op, flat)
    if whole is None or whole[1].kind != "sum":
        return None
    given, value = whole
    conditions, body = conditions_of(value.body)
    axes = [a for a in value.axes if isinstance(a, Axis)]
    if has_reduction(body) or any(map(has_reduction, conditions)) or len(axes) < len(value.axes):
        return None
    # What may refuse the call is asked before whatever follows it.
    first = next((n for n, c in enumerate(conditions) if may_refuse(c)), len(conditions))
    late = [conjunction(conditions[first:])] if first < len(conditions) else []
    found = [g for c in (*conditions[:first], *late) for g in guards(c, lambda size: is_positive(op, size))]
    ranges = {**dict(zip(flat.indices, flat.extents, strict=True)), **{a.index: a.extent for a in axes}}
    for index in flat.indices:
        if any(index in a.extent.indices() for a in axes):
            continue
        run, rest = _run(op, index, found, ranges, {flat.indices[-1]} - {index})
        own = {a.index for a in axes}
        varies = any(free_indices(b.value) & own for b in run.bounds)
        if varies and {b.below for b in run.bounds} == {True, False}:
            last = flat.indices[-1]
            return ScatterPlan(flat, value, (), rest, body, None if last == index else last, given, run=run)
    return None


def _run(op: Op, index: str, found: list[Guard], ranges: dict[str, Affine], lanes: set[str]) -> tuple[Run, tuple[Guard, ...]]:
    """Return what data says of where a run along an index begins and ends, the same at all lanes, and the conditions that say
    something else."""
    proofs = ReadsInside(op)
    bounds: list[Bound] = []
    rest: list[Guard] = []
    for g in found:
        bound = bound_on(g, index)
        varies = bound is not None and (bound.rest.indices() | free_indices(bound.value)) & lanes
        if bound is None or varies or any(proofs.axes_outside(r, ranges, ()) for r in reads(bound.value)):
            rest.append(g)
        else:
            bounds.append(bound)
    return Run(index, tuple(bounds)), tuple(rest)
