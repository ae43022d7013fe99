"""Statements that order an axis, sorted: a stage for each in place of the two that count ranks and search for them.

The ranks are the operand of nothing else (`opc.ir.ordering`), so they are not computed. Targets without a sort count them.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.affine import Affine
from opc.ir.expr import free_indices
from opc.ir.op import Op
from opc.ir.ordering import Ordering, ordering_of, orderings, readers, search_of, with_ranks
from opc.lower.loop_ir import NestStage, Stage
from opc.lower.lower import SpecialisedProgram
from opc.lower.nest_plans import OrderPlan
from opc.lower.nests.flat import flat_statement
from opc.records import replace


def with_orders(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program whose orders are sorted, as far as each is one of rows."""
    op, program = variant.case.op, variant.program
    found = orderings(op)
    made = {s.name: order for s in program.stages if (order := _order(op, s, found)) is not None}
    gone = {counts for s in made.values() if (counts := found[s.assign.target].counts) is not None}
    left = [n for n, s in enumerate(program.stages) if isinstance(s, NestStage) and s.assign.target in gone]
    changed = [*left, *(n for n, s in enumerate(program.stages) if s.name in made)]
    if not made or any(loop.first <= n < loop.end for loop in program.steps for n in changed):
        return variant
    stages = tuple(made.get(s.name, s) for n, s in enumerate(program.stages) if n not in left)
    temporaries = tuple(t for t in program.temporaries if t.name not in gone)
    steps = tuple(replace(x, first=x.first - _before(left, x.first), end=x.end - _before(left, x.end)) for x in program.steps)
    return replace(variant, program=replace(program, stages=stages, temporaries=temporaries, steps=steps))


def _before(places: list[int], place: int) -> int:
    return sum(n < place for n in places)


def _order(op: Op, stage: Stage, found: Mapping[str, Ordering]) -> NestStage | None:
    """Return the stage that sorts what one searches for, None where it is no search of an order, or not one of rows."""
    if not isinstance(stage, NestStage) or stage.assign.target not in found:
        return None
    counts = found[stage.assign.target].counts
    if counts is not None and readers(op, counts) != [stage.assign.target]:
        return None
    assign = with_ranks(op, stage.assign, counts)
    flat = flat_statement(op, assign)
    search = search_of(flat.value) if flat is not None else None
    ordering = None if search is None else ordering_of(search)
    if flat is None or ordering is None or not isinstance(ordering.descending, bool):
        return None
    key, rank = free_indices(ordering.key), ordering.rank
    index = next((i for i in flat.indices if i in rank.indices()), None)
    step = Affine.of(0) if index is None else rank.coefficient(index)
    steps = all(i.coefficient(ordering.along) is not None for i in ordering.key.indices if isinstance(i, Affine))
    if index in key or len(rank.indices()) > 1 or step is None or step.indices() or not steps:
        return None
    last = flat.indices[-1] if flat.indices else None
    across = all(i.coefficient(last) is not None for i in ordering.key.indices if isinstance(i, Affine)) if last else True
    vector_axis = last if last is not None and last != index and across else None
    return replace(stage, assign=assign, plans=(OrderPlan(flat, ordering, index, vector_axis),))
