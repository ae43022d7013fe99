"""Matrix products whose rows or matrices data names, for the calls in which they pay.

Statements with such products are rewritten so that `opc.lower.contractions` finds them: `opc.lower.grouped` and
`opc.lower.gathered` say which. Sizes tell whether they pay, so such a program stands before the one that goes point by point.
"""

from __future__ import annotations

from opc.ir.expr import has_reduction
from opc.loops.schedule import Decisions, active
from opc.lower.contractions.contraction import extract
from opc.lower.gathered import gathered
from opc.lower.grouped import grouped, grouped_sizes
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import ContractionStage, NestStage, RowStage, Stage
from opc.lower.lower import SpecialisedProgram, staged
from opc.lower.specialise import RowSizes
from opc.records import replace


def with_named_products(variant: SpecialisedProgram) -> SpecialisedProgram | None:
    """Return the program for calls in which matrix products pay whose rows or matrices data names; None where there are none, or
    where blocks of rows or steps go through all stages."""
    program = variant.program
    if program.fused is not None or program.steps or not runs_often(variant.case.op):
        return None
    op = variant.case.op
    decisions = Decisions(op.name, active())
    rows: list[RowSizes] = []
    for stage in program.stages:
        if not isinstance(stage, NestStage) or stage.sum is not None or not has_reduction(stage.assign.value):
            continue
        found = grouped(op, stage.assign.target)
        if found is not None and decisions.take("group"):
            op = found
            continue
        products = gathered(op, stage.assign.target)
        if products is not None and decisions.take("gather"):
            op = products[0]
            rows += products[1]
    if op is variant.case.op:
        return None
    new = staged(variant, extract(op))
    groups = [grouped_sizes(new.case.op, s) for s in new.program.stages if isinstance(s, ContractionStage) and s.groups]
    case = replace(new.case, pays=tuple(dict.fromkeys((*groups, *rows))))
    suffix = case.suffix.removeprefix(new.case.suffix)
    stages = tuple(_renamed(s, f"{s.name}{suffix}") for s in new.program.stages)
    return replace(new, case=case, program=replace(new.program, stages=stages, schedule=decisions.schedule))


def _renamed(stage: Stage, name: str) -> Stage:
    if isinstance(stage, ContractionStage):
        return replace(stage, name=name, epilogue=replace(stage.epilogue, name=name))
    if isinstance(stage, RowStage) and stage.once is not None:
        return replace(stage, name=name, once=replace(stage.once, name=f"{name}_once"))
    return replace(stage, name=name)
