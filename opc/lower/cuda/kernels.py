"""The kernel of a stage on a device: its loops under the schedule of the target, with names and verified."""

from __future__ import annotations

from opc.ir.op import Assign, Op
from opc.loops.conditions import propagate
from opc.loops.names import DEVICE_PARAMETERS, PARAMETERS, named
from opc.loops.nodes import Kernel
from opc.loops.verify import verify_kernel
from opc.lower.alone import known_at, of_statement
from opc.lower.build.context import Nest
from opc.lower.build.kernel import spec_names
from opc.lower.cuda.dense import with_dense_versions
from opc.lower.cuda.forms import Move, Packs, Points, form_of
from opc.lower.cuda.moves import move_kernel
from opc.lower.cuda.offsets import with_offsets_once
from opc.lower.cuda.packed import packed_kernel
from opc.lower.cuda.points import point_kernel
from opc.lower.cuda.product_kernels import product_kernel
from opc.lower.cuda.products import Products
from opc.lower.cuda.rematerialised import Rematerialised
from opc.lower.cuda.rematerialised_values import rematerialised_kernel
from opc.lower.cuda.rows import row_kernel
from opc.lower.cuda.scans import scan_kernel
from opc.lower.cuda.scatters import scatter_kernel
from opc.lower.cuda.summed import summed_kernel
from opc.lower.cuda.weigh import Weighed
from opc.lower.cuda.weighed_sums import weighed_kernel
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage, RowStage, Stage
from opc.lower.nest_plans import ScanPlan, ScatterPlan
from opc.records import replace


def cuda_kernel(op: Op, stage: Stage) -> Kernel:
    """Return the function of a stage of `opc.lower.cuda.stages.device_programs` on a device.

    Of statements alike but for the names of their stages it is the same.
    """
    match stage:
        case NestStage():
            return _of_nest(known_at(op, stage.assign), stage.assign, replace(stage, name=""))
        case RowStage():
            return _finished(op, row_kernel(op, stage))
        case _:
            raise TypeError(f"{type(stage).__name__} is no stage of a device")


@of_statement
def _of_nest(op: Op, assign: Assign, stage: NestStage) -> Kernel:
    return _finished(op, _statement(op, stage))


def _finished(op: Op, plain: Kernel) -> Kernel:
    parameters = DEVICE_PARAMETERS.union(f"{t.name}_stored" for t in op.types)
    kernel = named(replace(plain, body=propagate(plain.body)), spec_names(op), parameters)
    verify_kernel(kernel, PARAMETERS)
    return kernel


def _statement(op: Op, stage: NestStage) -> Kernel:
    match form_of(op, stage):
        case ScanPlan() as scan:
            return scan_kernel(Nest(op, stage), scan)
        case ScatterPlan() as scatter:
            return _with_offsets_once(scatter_kernel(Nest(op, stage), scatter))
        case Weighed() as weighed:
            return weighed_kernel(Nest(op, stage), weighed)
        case Rematerialised() as found:
            return rematerialised_kernel(Nest(op, stage), found)
        case Move(axis):
            return move_kernel(Nest(op, stage), axis)
        case Products() as products:
            return product_kernel(Nest(op, stage), products)
        case Packs(entry):
            return _with_offsets_once(packed_kernel(op, stage, entry))
        case Points(entry):
            kernel = point_kernel(op, stage) if entry is None else summed_kernel(op, stage, entry)
            return _with_offsets_once(replace(kernel, body=with_dense_versions(kernel.body)) if runs_often(op) else kernel)


def _with_offsets_once(kernel: Kernel) -> Kernel:
    return replace(kernel, body=with_offsets_once(kernel.body))
