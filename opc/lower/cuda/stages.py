"""The stages of a device: row stages of `opc.lower.lower` whose loops are bound to threads, and single statements for the rest.

Values that the CPU keeps in a cached row between passes are in global memory between kernels here, in the type that they are
computed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opc.analysis.needs import outputs_that_need
from opc.ir.expr import SEARCHES, Expr, Read, has_reduction, reads, rewrite, size
from opc.ir.node import cached_by_identity
from opc.ir.op import Assign, Op
from opc.ir.recurrence import recurrences
from opc.ir.verify import VerifyError
from opc.loops.schedule import Override, active
from opc.lower.cuda.ahead import with_given
from opc.lower.cuda.moves import with_moved_axes
from opc.lower.cuda.places import with_places_in_memory
from opc.lower.cuda.products import products_of
from opc.lower.cuda.rematerialise import with_rematerialised
from opc.lower.cuda.rfactor import with_sums_of_rows
from opc.lower.cuda.rows import bound_part
from opc.lower.cuda.scatters import plan_of, scatters_atomically
from opc.lower.cuda.weigh import with_weighed_sums
from opc.lower.loop_ir import (
    NestStage,
    Program,
    RowStage,
    RowStore,
    Stage,
    Temporary,
    loop_of,
    read_by,
    written_by,
)
from opc.lower.lower import SpecialisedProgram, lower, lower_segment, lower_steps, relowered, with_own_memory
from opc.lower.nest_plans import ScanPlan
from opc.records import replace
from opc.transform import scalar
from opc.transform.normalize import placed, put

_BRIEF, _LONG = 32, 128
"""The most nodes of a temporary's value that is recomputed where it is read, and of a statement with such values put into it."""


def device_programs(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return the programs of an op on a device, one for each case of its attributes, as `opc.lower.lower.lower` does."""
    return _programs(op, active())


@cached_by_identity(256)
def _programs(op: Op, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    if recurrences(op):
        return lower_steps(op, lambda *segment: _bound(lower_segment(*segment)))
    return tuple(map(_bound, lower(op)))


def _bound(variant: SpecialisedProgram) -> SpecialisedProgram:
    return _on_device(_for_device(variant))


def _for_device(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program whose sums over rows and along them are split into a sum along each row and a sum of those, and whose
    stages read what is reduced over points from memory."""
    op = with_sums_of_rows(variant.case.op, _alone(variant.case.op, variant.program)[0])
    found = variant if op is variant.case.op else relowered(variant, op)
    rows = (s for s in found.program.stages if isinstance(s, RowStage))
    return with_given(found, frozenset().union(*map(_reduced, rows)))


def _on_device(variant: SpecialisedProgram) -> SpecialisedProgram:
    """Return a program whose stages are bound to a device, with the temporaries that lie between them."""
    program = variant.program
    before = {t.name for t in variant.case.op.temporaries}
    op, made = with_rematerialised(variant.case.op)
    brief = {s.target: s for s in op.body if s.target in before and s.target not in made and _is_brief(s)}
    alone, bound_stages = _alone(op, program, made, frozenset(brief))
    op, copies = _with_own_memory(with_moved_axes(with_places_in_memory(op, alone), alone), alone)
    variant = replace(variant, case=replace(variant.case, op=op))
    last = {name: n for n, stage in enumerate(program.stages) for name in _statements(stage)}
    body = {s.target: s for s in op.body}
    stages: list[Stage] = []
    memory: set[str] = set()

    def run(stage: Stage) -> None:
        stages.append(stage)
        memory.update(written_by(stage))

    def run_alone(assign: Assign, stage: Stage) -> None:
        """Run a statement behind those that it reads and that no stage has left in memory; brief ones are made in it instead."""
        if products_of(op, nest := _nest(variant, assign, stage)) is None and not nest.plans:
            found = _with_values(assign, {name: s for name, s in brief.items() if name not in memory})
            nest = _nest(variant, found, stage) if found is not assign else nest
        bring(read_by(nest), stage)
        run(nest)

    def bring(names: Iterable[str], stage: Stage) -> None:
        for name in dict.fromkeys(names):
            if name in body and name not in memory:
                run_alone(body[name], stage)

    for n, stage in enumerate(program.stages):
        part = bound_part(stage) if isinstance(stage, RowStage) else None
        bound = stage.name in bound_stages
        if part is not None and bound:
            bring(read_by(part), stage)
            run(replace(part, once=None))
        for s in op.body:
            own = copies.get(s.target, s.target)
            if last.get(own) == n and s.target not in memory and s.target not in brief and (own in alone or not bound):
                run_alone(s, stage)
    found = with_weighed_sums(op, Program(program.name, tuple(stages), ()))
    stages = list(found.stages)
    _verify(op, stages)
    return replace(variant, program=replace(found, temporaries=tuple(_temporaries(variant, stages))))


def _verify(op: Op, stages: list[Stage]) -> None:
    """Check that each stage reads what is in memory, and that no other has written what it writes.

    Raises:
        VerifyError: with the stage and what it reads or writes.
    """
    memory = {i.name for i in op.inputs}
    for stage in stages:
        assert isinstance(stage, RowStage | NestStage), "a device has no other stages"
        read = set(read_by(stage))
        if read - memory:
            raise VerifyError(f"{stage.name} reads {', '.join(sorted(read - memory))}, which no stage has written")
        if again := memory.intersection(written_by(stage)) - {i.name for i in op.inputs}:
            raise VerifyError(f"{stage.name} writes {', '.join(sorted(again))} again")
        memory.update(written_by(stage))


def _alone(
    op: Op, program: Program, made: frozenset[str] = frozenset(), brief: frozenset[str] = frozenset()
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the statements, by target, that run by themselves, and the stages that are bound: all others, whose statements are
    `made` otherwise than the program has them, write what the op has no more, share one with these, or read a part of one.

    What is brief is made anew wherever it is read, so that any number of stages share it, if none leaves it in memory.
    """
    rows = [s for s in program.stages if isinstance(s, RowStage)]
    parts = {s.name: bound_part(s) for s in rows}
    found, whole = made, {s.target for s in op.body} | {i.name for i in op.inputs}
    for s in program.stages:
        part = parts[s.name] if isinstance(s, RowStage) else None
        gone = made and not whole.issuperset(written_by(s) if isinstance(s, RowStage) else ())
        found |= _statements(s) if part is None or gone or not isinstance(s, RowStage) else _reduced(s)
    while True:
        bound = [p for p in parts.values() if p is not None and not found & (_statements(p) - brief.difference(written_by(p)))]
        memory = whole.union(*(written_by(p) for p in bound))
        kept = {p.name for p in bound if memory.issuperset(read_by(p))}
        more = [s for s in rows if s.name not in kept and not _statements(s) <= found]
        if not more:
            return found, frozenset(kept)
        found = found.union(*map(_statements, more))


def _reduced(stage: RowStage) -> frozenset[str]:
    """Return the targets of the statements that a stage reduces over its points."""
    names = {o.name for o in stage.operands if o.reduction is not None}
    actions = (a for p in stage.passes for a in (*p.prologue, *p.body))
    return frozenset(a.source.target for a in actions if isinstance(a, RowStore) and a.name in names)


def _is_brief(s: Assign) -> bool:
    """Whether the value of a temporary is recomputed where it is read, which is cheaper on a device than reading it."""
    return not has_reduction(s.value) and size(s.value) <= _BRIEF and all(map(placed, reads(s.value)))


def _with_values(assign: Assign, brief: Mapping[str, Assign]) -> Assign:
    """Return a statement with the values of brief temporaries in place of reads, as long as it does not become long."""

    def rule(e: Expr) -> Expr:
        found = brief.get(e.operand) if isinstance(e, Read) else None
        if found is None or not isinstance(e, Read) or e.pad is not None or not placed(e):
            return e
        return rewrite(put(found, e), rule)

    if not any(r.operand in brief for r in reads(assign.value)):
        return assign
    value = scalar.rewritten(assign.value, rule)
    return assign if size(value) > _LONG else assign.with_value(value)


def _with_own_memory(op: Op, alone: frozenset[str]) -> tuple[Op, Mapping[str, str]]:
    """Return the op with a temporary for each output that is read by other statements of `alone`, or that is added to atomically,
    and the outputs by their temporaries.

    An output may be absent, and it holds values rounded to its element type.
    """
    read = {r.operand for s in op.body if s.target in alone for r in reads(s.value)}
    read |= {s.target for s in op.body if scatters_atomically(op, s)}
    return with_own_memory(op, read & alone, alone)


def _statements(stage: Stage) -> frozenset[str]:
    """Return the targets of the statements that a stage computes, or a part of them."""
    if isinstance(stage, RowStage):
        return frozenset(a.source.target for p in stage.passes for a in (*p.prologue, *p.body))
    total = stage.sum if isinstance(stage, NestStage) else None
    return frozenset((stage.assign.target,) if total is None else (stage.assign.target, total))


def _nest(variant: SpecialisedProgram, assign: Assign, stage: Stage) -> NestStage:
    """Return a statement as a stage of its own, which carries a reduction along where the CPU's stage does."""
    same = isinstance(stage, NestStage) and stage.assign == assign
    scans = [p for p in stage.plans if isinstance(p, ScanPlan)] if same and isinstance(stage, NestStage) else []
    plans = tuple(p for p in scans if p.reduction.kind not in SEARCHES)
    scatter = plan_of(variant.case.op, assign)
    own = plans if scatter is None else (scatter,)
    return NestStage(f"{variant.program.name}_{assign.target}{variant.case.suffix}", assign, own)


def _temporaries(variant: SpecialisedProgram, stages: list[Stage]) -> Iterator[Temporary]:
    """Yield the temporaries that stages write."""
    op = variant.case.op
    known, needs = {t.name: t for t in variant.program.temporaries}, outputs_that_need(op)
    outputs = {o.name for o in op.outputs}
    for name in dict.fromkeys(n for s in stages for n in written_by(s) if n not in outputs):
        if name in known:
            needed = tuple(o.name for o in op.outputs if o.name in needs.get(name, known[name].needed_by))
            yield replace(known[name], stored=True, needed_by=needed)
        else:
            dims = tuple(map(loop_of, op.operand(name).dims))
            declared, needed = op.operand(name), tuple(o.name for o in op.outputs if o.name in needs[name])
            yield Temporary(name, declared.type, dims, needed, copied=declared.copied)
