"""The form in which a statement by itself runs on a device, decided once: its kernel is made in it, and the host starts it so."""

from __future__ import annotations

from typing import TypeAlias

from opc.ir.op import Assign, Op
from opc.lower.alone import of_statement
from opc.lower.build.context import Nest
from opc.lower.cuda.moves import moved_axis
from opc.lower.cuda.packed import packed_entry
from opc.lower.cuda.products import Products, products_of
from opc.lower.cuda.rematerialised import Rematerialised, rematerialised_of
from opc.lower.cuda.summed import summed_entry
from opc.lower.cuda.weigh import Weighed, weighed_of
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import ScanPlan, ScatterPlan
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of an input whose axis `axis` is the last one of the copy: tiles of it are transposed."""

    axis: int


@dataclass(frozen=True, slots=True)
class Packs:
    """Points without reductions, of which a thread has a pack along an entry of the target."""

    entry: int


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a target whose reductions are made by a team of threads, or by one. Sums may be made for packs of points, along
    the entry `packed` of the target."""

    packed: int | None = None


Tiled: TypeAlias = Products | Weighed | Rematerialised
"""What is made in tiles, in shared memory."""

NestForm: TypeAlias = ScanPlan | ScatterPlan | Tiled | Move | Packs | Points


def form_of(op: Op, stage: NestStage) -> NestForm:
    """Return the form of a stage of `opc.lower.cuda.stages.device_programs`."""
    return _form(op, stage.assign, replace(stage, name=""))


@of_statement
def _form(op: Op, assign: Assign, stage: NestStage) -> NestForm:
    plan = stage.plans[0] if stage.plans else None
    if isinstance(plan, ScanPlan | ScatterPlan):
        return plan
    if (weighed := weighed_of(op, stage)) is not None:
        return weighed
    if (rematerialised := rematerialised_of(op, stage)) is not None:
        return rematerialised
    if (axis := moved_axis(op, stage)) is not None:
        return Move(axis)
    if (products := products_of(op, stage)) is not None:
        return products
    if (entry := packed_entry(Nest(op, stage))) is not None:
        return Packs(entry)
    return Points(summed_entry(op, stage))
