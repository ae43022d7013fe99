"""The kernel of a stage on a device: its loops under the schedule of the target, with names and verified."""

from __future__ import annotations

from opc.ir.op import Op
from opc.loops.conditions import propagate
from opc.loops.names import PARAMETERS, named
from opc.loops.nodes import Kernel
from opc.loops.schedule import Schedule, Transformation
from opc.loops.verify import verify_kernel
from opc.lower.build.context import Nest
from opc.lower.build.kernel import spec_names
from opc.lower.cuda.points import point_kernel
from opc.lower.loop_ir import NestStage, Stage
from opc.records import replace

POINTS = Schedule((Transformation("bind", ("points to all threads",)),))
"""What a statement by itself goes through."""


def cuda_kernel(op: Op, stage: Stage) -> Kernel:
    """Return the function of a stage of `opc.lower.cuda.stages.device_programs` on a device."""
    assert isinstance(stage, NestStage), "a device has such stages"
    kernel = point_kernel(Nest(op, stage))
    kernel = named(replace(kernel, body=propagate(kernel.body)), {*spec_names(op), "status"})
    verify_kernel(kernel, PARAMETERS)
    return replace(kernel, schedule=POINTS)
