"""Lowering for CUDA: the plain loops of point and row stages, bound to blocks and threads.

What other stages would need, sums over points, row buffers, windows, is not lowered yet, and the reason is given.
"""

from __future__ import annotations

from opc.ir.op import Op
from opc.loops.bind import bind
from opc.loops.names import PARAMETERS, named
from opc.loops.nodes import Kernel
from opc.loops.schedule import Schedule, Transformation
from opc.loops.verify import verify_kernel
from opc.lower.build.context import UnsupportedForm
from opc.lower.build.kernel import spec_names
from opc.lower.build.row_stage import RowLoops, type_variables, wanted
from opc.lower.loop_ir import RowStage, Stage
from opc.records import replace

SCHEDULE = Schedule((Transformation("bind", ("rows to blocks", "points to threads")),))
"""What every stage goes through."""


def cuda_kernel(op: Op, stage: Stage) -> Kernel:
    """Return the function of a stage on a device.

    Raises:
        Unsupported: when the stage has none yet; the message says why.
    """
    if not isinstance(stage, RowStage):
        raise UnsupportedForm("it is no stage of points or rows")
    if any(o.reduction is not None for o in stage.operands):
        raise UnsupportedForm("it adds up over points")
    if stage.buffers:
        raise UnsupportedForm("it keeps values in buffers of rows")
    plain = replace(stage, once=None, schedule=Schedule(), passes=tuple(replace(p, peeled=None) for p in stage.passes))
    rows = RowLoops(op, plain, vectors=False)
    flags = tuple(map(wanted, stage.optional))
    names = tuple(o.name for o in stage.operands)
    kernel = Kernel("cuda", names, type_variables(op, plain), (bind(rows.loop()),), flags=flags, schedule=SCHEDULE)
    kernel = named(kernel, {*spec_names(op), *flags})
    verify_kernel(kernel, PARAMETERS)
    return kernel
