"""The function of a stage, whatever kind it is of."""

from __future__ import annotations

from opc.ir.op import Op
from opc.loops.nodes import Kernel
from opc.loops.schedule import Schedule
from opc.lower.build.kernel import nest_kernel
from opc.lower.build.row_kernel import row_kernel
from opc.lower.loop_ir import ContractionStage, RowStage, Stage


def stage_kernel(op: Op, stage: Stage) -> Kernel:
    """Return the function of a stage; of a contraction, which is the runtime's, that of its epilogue."""
    match stage:
        case RowStage():
            return row_kernel(op, stage)
        case ContractionStage():
            return row_kernel(op, stage.epilogue)
        case _:
            return nest_kernel(op, stage)


def stage_schedule(op: Op, stage: Stage) -> Schedule:
    """Return what the loops of a stage went through; of a contraction, those of its epilogue."""
    match stage:
        case RowStage():
            return stage.schedule
        case ContractionStage():
            return stage.epilogue.schedule
        case _:
            return nest_kernel(op, stage).schedule
