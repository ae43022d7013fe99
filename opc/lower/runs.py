"""Sums into runs of places, as scatters: a CPU goes through the runs, where other targets ask of each place which it is in."""

from __future__ import annotations

from opc.ir.op import Op
from opc.lower.loop_ir import NestStage, Stage
from opc.lower.lower import SpecialisedProgram
from opc.lower.nest_plans import VectorPlan
from opc.lower.nests.conditions import with_simplified_conditions
from opc.lower.nests.flat import flat_statement, without_trailing
from opc.lower.nests.runs import flat_runs
from opc.records import replace


def with_runs(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program whose sums into runs are scatters, but those in a step of a recurrence."""
    op, program = variant.case.op, variant.program
    inside = [n for loop in program.steps for n in range(loop.first, loop.end)]
    stages = tuple(s if n in inside else _scattered(op, s) for n, s in enumerate(program.stages))
    if all(new is old for new, old in zip(stages, program.stages, strict=True)):
        return variant
    return replace(variant, program=replace(program, stages=stages))


def _scattered(op: Op, stage: Stage) -> Stage:
    """Return the stage that adds to runs what one sums up place by place; itself where it is none."""
    if not isinstance(stage, NestStage) or stage.sum is not None or not all(isinstance(p, VectorPlan) for p in stage.plans):
        return stage
    flat = flat_statement(op, with_simplified_conditions(op, stage.assign)) if stage.plans else None
    if flat is None:
        return stage
    forms = (flat,) if flat.trailing is None else (flat, without_trailing(flat))
    plans = tuple(plan for form in forms if (plan := flat_runs(op, form)) is not None)
    return replace(stage, plans=plans) if len(plans) == len(forms) else stage
