"""From an op to its program for Poplar.

The stages are those of `opc.lower.lower`. What they do row by row is done to whole tensors here, so that the passes of a stage
are its steps one after the other; sums of products of two operands become matrix products, and all else codelets.
"""

from __future__ import annotations

from collections.abc import Iterable

from opc.ir.node import cached_by_identity
from opc.ir.op import Assign, Op
from opc.loops.schedule import Override, active
from opc.lower.build.context import UnsupportedForm
from opc.lower.loop_ir import ContractionStage, NestStage, RowStage, Stage, Temporary
from opc.lower.lower import SpecialisedProgram, lower
from opc.lower.poplar.contractions import contraction_steps
from opc.lower.poplar.needs import Needs
from opc.lower.poplar.nests import nest_steps
from opc.lower.poplar.nodes import Case, Codelet, PoplarProgram, PoplarStage, Tensor
from opc.lower.poplar.rows import row_steps
from opc.lower.poplar.verify import verify_program
from opc.lower.poplar.views import element_type
from opc.records import replace


def poplar_program(op: Op) -> PoplarProgram:
    """Return the program of an op.

    Raises:
        UnsupportedForm: when a statement is neither steps on tensors nor a codelet; the message says why.
    """
    return _program(op, active())


# Several backends ask for the programs of an op, each to know whether there is one and to print it.
@cached_by_identity(64)
def _program(op: Op, overrides: tuple[Override, ...]) -> PoplarProgram:
    program = PoplarProgram(op.name, tuple(_case(op, variant) for variant in lower(op)))
    verify_program(op, program)
    return program


def _case(op: Op, variant: SpecialisedProgram) -> Case:
    """Return a case: stage by stage, or statement by statement where a stage of rows asks for what tensors can't do."""
    try:
        stages = [s for stage in variant.program.stages for s in _stages(variant, stage)]
    except UnsupportedForm:
        return _by_statements(variant)
    temporaries = [Tensor(t.name, element_type(t.type), False) for t in variant.program.temporaries]
    return Case(variant.case, (*_outputs(op), *temporaries), tuple(stages))


def _outputs(op: Op) -> tuple[Tensor, ...]:
    return tuple(Tensor(o.name, o.type, True) for o in op.outputs)


def _stages(variant: SpecialisedProgram, stage: Stage) -> Iterable[PoplarStage]:
    op, needs = variant.case.op, Needs(variant.case.op, variant.program.temporaries)
    match stage:
        case RowStage():
            return (row_steps(op, stage, needs),)
        case ContractionStage():
            try:
                return (contraction_steps(op, stage, needs),)
            except UnsupportedForm:
                return (_codelet(op, stage.assign, stage.name, needs),)
        case NestStage():
            try:
                return (nest_steps(op, stage, needs),)
            except UnsupportedForm:
                return (_codelet(op, stage.assign, stage.name, needs, stage.sum),)


def _codelet(op: Op, assign: Assign, name: str, needs: Needs, total: str | None = None) -> Codelet:
    from opc.lower.poplar.codelets import codelet_stage

    written = (assign.target,) if total is None else (assign.target, total)
    return Codelet(codelet_stage(op, assign, name), total, needs.of(written))


def _by_statements(variant: SpecialisedProgram) -> Case:
    """Return a case whose statements are codelets, one each."""
    case = variant.case
    op = case.op
    alive = [s for s in op.body if _is_needed(op, s)]
    outputs = {o.name for o in op.outputs}
    temporaries = tuple(
        Temporary(s.target, op.operand(s.target).type, (), Needs.outputs_behind(op, s.target))
        for s in alive
        if s.target not in outputs
    )
    needs = Needs(op, temporaries)
    stages = tuple(_codelet(op, s, f"{op.name}_{s.target}{case.suffix}", needs) for s in alive)
    return Case(
        replace(case, op=op), (*_outputs(op), *(Tensor(t.name, element_type(t.type), False) for t in temporaries)), stages
    )


def _is_needed(op: Op, s: Assign) -> bool:
    return bool(Needs.outputs_behind(op, s.target))
