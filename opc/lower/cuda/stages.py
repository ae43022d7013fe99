"""The stages of a device: those of `opc.lower.lower` that are bound to blocks and threads, and statements by themselves elsewhere.

What the CPU keeps in a row of a cache lies in memory between kernels there, in the type that it is computed in.
"""

from __future__ import annotations

from functools import lru_cache

from opc.analysis.needs import outputs_that_need
from opc.ir.affine import Affine
from opc.ir.op import Assign, Group, Op
from opc.loops.schedule import Override, active
from opc.lower.cuda.rows import is_bound
from opc.lower.loop_ir import ContractionStage, GroupLoop, IndexLoop, Loop, NestStage, Program, RowStage, Stage, Temporary
from opc.lower.lower import SpecialisedProgram, lower
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """An op by what it is, not by what it says, as `opc.lower.lower` tells them apart."""

    op: Op

    def __hash__(self) -> int:
        return id(self.op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.op is other.op


def device_programs(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return the programs of an op on a device, one for each case of its attributes, as `opc.lower.lower.lower` does."""
    return _programs(_Same(op), active())


@lru_cache(maxsize=256)
def _programs(same: _Same, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    return tuple(map(_on_device, lower(same.op)))


def _on_device(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program whose stages are bound to a device, with the temporaries that lie between them."""
    op, program = variant.case.op, variant.program
    stages = [s for stage in program.stages for s in _stages(variant, stage)]
    known = {t.name: replace(t, stored=True) for t in program.temporaries}
    written = dict.fromkeys(s.assign.target for s in stages if isinstance(s, NestStage))
    inner = [name for name in written if name not in known and all(o.name != name for o in op.outputs)]
    needs = outputs_that_need(op)
    for name in inner:
        order = tuple(o.name for o in op.outputs if o.name in needs[name])
        known[name] = Temporary(name, op.operand(name).type, tuple(map(_loop, op.operand(name).dims)), order)
    return replace(variant, program=Program(program.name, tuple(stages), tuple(known.values())))


def _stages(variant: SpecialisedProgram, stage: Stage) -> tuple[Stage, ...]:
    op = variant.case.op
    match stage:
        case RowStage() if is_bound(stage):
            return (replace(stage, once=None),)
        case RowStage():
            found = {a.source.target for p in stage.passes for a in (*p.prologue, *p.body)}
            return tuple(_alone(variant, s, stage.name) for s in op.body if s.target in found)
        case NestStage(sum=None):
            return (_alone(variant, stage.assign, ""),)
        case NestStage(sum=total):
            return tuple(_alone(variant, s, stage.name) for s in op.body if s.target in (stage.assign.target, total))
        case ContractionStage():
            return (_alone(variant, stage.assign, ""),)


def _alone(variant: SpecialisedProgram, assign: Assign, within: str) -> NestStage:
    """Return a statement as a stage, whose name tells which stage of several statements it is of."""
    name = f"{variant.program.name}_{assign.target}{variant.case.suffix}"
    return NestStage(name, assign)


def _loop(dim: Affine | Group) -> Loop:
    return GroupLoop(dim.name, dim.of) if isinstance(dim, Group) else IndexLoop(str(dim), dim)
