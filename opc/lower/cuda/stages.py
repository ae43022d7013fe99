"""The stages of a device: those of `opc.lower.lower` that are bound to its threads, and statements by themselves elsewhere.

What the CPU keeps in a row of a cache lies in memory between kernels there, in the type that it is computed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opc.analysis.needs import outputs_that_need
from opc.ir.affine import Affine
from opc.ir.op import Assign, Group, Op
from opc.loops.schedule import Override, active
from opc.lower.cuda.rows import is_bound
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop, NestStage, Program, RowStage, Stage, Temporary
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
    alone = _alone(program)
    last = {name: n for n, stage in enumerate(program.stages) for name in _statements(stage)}
    stages: list[Stage] = []
    for n, stage in enumerate(program.stages):
        if isinstance(stage, RowStage) and not alone.intersection(_statements(stage)):
            stages.append(replace(stage, once=None))
        else:
            stages += (_nest(variant, s) for s in op.body if last.get(s.target) == n)
    return replace(variant, program=Program(program.name, tuple(stages), tuple(_temporaries(variant, stages))))


def _alone(program: Program) -> frozenset[str]:
    """Return the statements, by target, that run by themselves: those of stages that are not bound, and of stages that share
    one with these."""
    found = frozenset[str]().union(*(_statements(s) for s in program.stages if not (isinstance(s, RowStage) and is_bound(s))))
    while more := [own for s in program.stages if not (own := _statements(s)) <= found and own & found]:
        found = found.union(*more)
    return found


def _statements(stage: Stage) -> frozenset[str]:
    """Return the targets of the statements that a stage computes, or a part of them."""
    if isinstance(stage, RowStage):
        return frozenset(a.source.target for p in stage.passes for a in (*p.prologue, *p.body))
    total = stage.sum if isinstance(stage, NestStage) else None
    return frozenset((stage.assign.target,) if total is None else (stage.assign.target, total))


def _nest(variant: SpecialisedProgram, assign: Assign) -> NestStage:
    return NestStage(f"{variant.program.name}_{assign.target}{variant.case.suffix}", assign)


def _temporaries(variant: SpecialisedProgram, stages: list[Stage]) -> Iterator[Temporary]:
    """Yield the temporaries that stages write."""
    op = variant.case.op
    known, needs = {t.name: t for t in variant.program.temporaries}, outputs_that_need(op)
    outputs = {o.name for o in op.outputs}
    for name in dict.fromkeys(n for s in stages for n in written_by(s) if n not in outputs):
        if name in known:
            yield replace(known[name], stored=True)
        else:
            dims = tuple(map(_loop, op.operand(name).dims))
            yield Temporary(name, op.operand(name).type, dims, tuple(o.name for o in op.outputs if o.name in needs[name]))


def written_by(stage: Stage) -> tuple[str, ...]:
    """Return what a stage writes."""
    return tuple(o.name for o in stage.products) if isinstance(stage, RowStage) else (stage.assign.target,)


def _loop(dim: Affine | Group) -> Loop:
    return GroupLoop(dim.name, dim.of) if isinstance(dim, Group) else IndexLoop(str(dim), dim)
