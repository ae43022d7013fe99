"""From an op to its loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from opc.ir.arrangement import arrangement
from opc.ir.expr import Read, reads
from opc.ir.node import cached_by_identity
from opc.ir.op import Assign, Op, Requirement
from opc.ir.recurrence import recurrences
from opc.ir.verify import verify_reads
from opc.loops.schedule import Override, active
from opc.lower.bounded import verify_bounded
from opc.lower.contractions.contraction import contraction_stage, extract
from opc.lower.heuristics import runs_often, scheduled
from opc.lower.inline import inline_copies
from opc.lower.layout import with_long_rows
from opc.lower.loop_ir import ContractionStage, GroupLoop, Loop, NestStage, Program, RowStage, Stage
from opc.lower.nests.joined_scatters import with_joined_scatters
from opc.lower.nests.rfactor import rfactor
from opc.lower.nests.scatter import extract_scatters
from opc.lower.nests.search import inline_searches
from opc.lower.nests.searched_scatters import with_searched_scatters
from opc.lower.nests.solved import with_solved_sums
from opc.lower.nests.stored_terms import with_stored_terms
from opc.lower.nests.sums import with_sums_in_nests
from opc.lower.nests.tables import with_tables
from opc.lower.nests.unroll import with_short_sums
from opc.lower.partition import partition
from opc.lower.rows.flatten import IrregularError, extents_under_conditions, flatten
from opc.lower.rows.hoist import with_hoisted_values
from opc.lower.rows.schedule import schedule
from opc.lower.rows.split import with_split_axes
from opc.lower.specialise import Specialisation, specialise
from opc.lower.steps import in_steps
from opc.lower.zeros import with_zeros_in_sums
from opc.records import dataclass, replace
from opc.transform.indices import Namer, bare, index_names, op_names, with_operands
from opc.transform.normalize import hoist
from opc.transform.scalar import ZERO, index_value, raw


@dataclass(frozen=True, slots=True)
class SpecialisedProgram:
    """The program of one case of attribute values."""

    case: Specialisation
    program: Program


def lower(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return a program for each case of the string and bool attributes that the op's body depends on."""
    return _lowered(op, active())


# The ops of a folder: the covering set is read off their programs, of which kernels are made then.
@cached_by_identity(512)
def _lowered(op: Op, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    return tuple(v for case in specialise(op) for v in _variants(case))


def _variants(case: Specialisation) -> Iterator[SpecialisedProgram]:
    for own, program in _by_emptiness(case):
        yield program or _variant(own)


def _by_emptiness(case: Specialisation) -> Iterator[tuple[Specialisation, SpecialisedProgram | None]]:
    """Yield a case, in two variants if it has a maximum or minimum under a condition, over an axis that may be empty.

    The usual variant requires that the axis is not empty, and computes the reduction once for all points, whether or not the
    condition holds there. The one for empty axes comes first, and computes it point by point. If a program had to be lowered to
    decide this, it is yielded with its case.
    """
    extents = {s.target: list(extents_under_conditions(case.op, s)) for s in case.op.body}
    empty = tuple(dict.fromkeys(x for found in extents.values() for x in found))
    if not empty:
        yield case, None
        return
    facts = tuple(Requirement(raw("gt", index_value(x), ZERO), f"{x} > 0") for x in empty)
    some = hoist(replace(case.op, require=(*case.op.require, *facts)), exact=True)
    usual_case = replace(case, op=some)
    usual = _variant(usual_case)
    nests = {s.assign.target for s in usual.program.stages if isinstance(s, NestStage)}
    if len(some.body) > len(case.op.body) or any(found and target not in nests for target, found in extents.items()):
        yield replace(case, empty=empty), None
        yield usual_case, usual
    else:
        yield case, None


def _variant(case: Specialisation) -> SpecialisedProgram:
    """Return the program of a case: row stages alone if its body is regular and has no contraction, perhaps after an axis is
    split in two; otherwise its body is partitioned into stages of all kinds."""
    lazy = bool(case.empty)
    op = inline_copies(case.op)
    how = arrangement(op)
    if case.across and how is not None:
        return _named(case, op, _regular(op, lazy, frozenset((GroupLoop(how.picked),))))
    if recurrences(op):
        program, op = in_steps(_with_own_memory(op, _mixed_outputs(op)), lazy, _program)
    else:
        program, op = _program(op, lazy)
    return _named(case, op, program)


def _program(source: Op, lazy: bool, splits: bool = True) -> tuple[Program, Op]:
    """Return the stages of an op without recurrences, and the op as rewritten for them; with `splits`, axes may be split."""
    op = with_stored_terms(with_joined_scatters(with_zeros_in_sums(with_solved_sums(source))))
    op = extract(extract_scatters(with_searched_scatters(op)))
    try:
        program = _regular(op, lazy)
    except IrregularError:
        try:
            in_parts = with_split_axes(op) if splits else op
            program, op = _regular(in_parts, lazy), in_parts
        except IrregularError:
            op = with_short_sums(with_tables(inline_searches(with_long_rows(rfactor(_with_own_memory(op))))))
            program = partition(op, lazy)
            if across := _written_across(op, program):
                op = _with_own_memory(op, across)
                program = partition(op, lazy)
                assert not _written_across(op, program), "a copy is a row stage"
            program = with_sums_in_nests(op, program)
    verify_bounded(source, op)
    return program, op


LowerSegment: TypeAlias = "Callable[[Specialisation, bool, bool], SpecialisedProgram]"
"""Returns the program of a case whose op is a segment, given what `opc.lower.steps.Lower` is besides."""


def lower_steps(op: Op, lower_segment: LowerSegment) -> tuple[SpecialisedProgram, ...]:
    """Return a program for each case of an op with recurrences, whose segments are lowered by a function of the target."""
    return tuple(_in_own_segments(own, lower_segment) for case in specialise(op) for own, _ in _by_emptiness(case))


def _in_own_segments(case: Specialisation, lower_segment: LowerSegment) -> SpecialisedProgram:
    def own(op: Op, lazy: bool, splits: bool) -> tuple[Program, Op]:
        found = lower_segment(replace(case, op=op), lazy, splits)
        return found.program, found.case.op

    op = inline_copies(case.op)
    program, op = in_steps(_with_own_memory(op, _mixed_outputs(op)), bool(case.empty), own, launched=True)
    return SpecialisedProgram(replace(case, op=op), program)


def lower_segment(case: Specialisation, lazy: bool, splits: bool) -> SpecialisedProgram:
    """Return the program of a case whose op has no recurrences."""
    program, op = _program(case.op, lazy, splits)
    return _named(case, op, program)


def staged(variant: SpecialisedProgram, op: Op) -> SpecialisedProgram:
    """Return a program with the stages of `op`, which has the statements of the program's own op with other values."""
    return _named(variant.case, op, with_sums_in_nests(op, partition(op, bool(variant.case.empty))))


def relowered(variant: SpecialisedProgram, op: Op) -> SpecialisedProgram:
    """Return a program with the stages of `op`, a rewrite of the program's own op for some target."""
    return _variant(replace(variant.case, op=op))


def lowered_across(variant: SpecialisedProgram) -> SpecialisedProgram | None:
    """Return the program of a case for calls in which the axes that an attribute lists are not the innermost in memory.

    Whole rows along these are not contiguous then, so their work is done point by point. None if there are no such rows, or if
    the op is not one that runs often.
    """
    how, stages = arrangement(variant.case.op), variant.program.stages
    if how is None or how.permutes or not runs_often(variant.case.op) or not any(how.is_mixed(o) for o in variant.case.op.inputs):
        return None
    rows = [s for s in stages if isinstance(s, RowStage)]
    if len(rows) < len(stages) or not any(s.whole_rows and GroupLoop(how.picked) in s.row for s in rows):
        return None
    # A second pass over rows in pieces finds them in the cache.
    once = all(sum(bool(p.body) for p in s.passes) <= 1 for s in rows if s.whole_rows)
    return _variant(replace(variant.case, across=True, apart=once))


def _named(case: Specialisation, op: Op, program: Program) -> SpecialisedProgram:
    """Return the program of a case with its stages under the names that the case gives them."""
    verify_reads(op)
    stages = tuple(_finished(s, s.name + case.suffix, op) for s in program.stages)
    return SpecialisedProgram(replace(case, op=op), replace(program, stages=stages))


def _regular(op: Op, lazy: bool, across: frozenset[Loop] = frozenset()) -> Program:
    """Return the row stages of an op, in calls in which the loops `across` lie along no last axis in memory.

    Raises:
        IrregularError: when it is not regular, or has a contraction.
    """
    if any(contraction_stage(op, s, s.target) for s in op.body):
        raise IrregularError("it has a contraction")
    return Program(op.name, *schedule(op, flatten(op, lazy=lazy), across=across))


def _finished(stage: Stage, name: str, op: Op) -> Stage:
    """Return a stage of an op under the name that its case gives it, with what a call fixes computed once."""
    taken = op_names(op)
    match stage:
        case ContractionStage():
            return replace(stage, name=name, epilogue=with_hoisted_values(replace(stage.epilogue, name=name), taken))
        case RowStage():
            once = None if stage.once is None else replace(stage.once, name=f"{name}_once")
            named = replace(stage, name=name, once=once)
            return scheduled(op, with_hoisted_values(named, taken), active())
        case _:
            return replace(stage, name=name)


def _mixed_outputs(op: Op) -> frozenset[str]:
    """Return the outputs whose order of axes is known only at run time."""
    how = arrangement(op)
    return frozenset() if how is None else frozenset(o.name for o in op.outputs if how.is_mixed(o))


def _written_across(op: Op, program: Program) -> frozenset[str]:
    """Return the outputs written by nests or contractions whose order of axes is known only at run time.

    These stages write contiguous memory; only row stages write with strides.
    """
    others = (s for s in program.stages if not isinstance(s, RowStage))
    return _mixed_outputs(op) & {s.assign.target for s in others}


def _with_own_memory(op: Op, across: frozenset[str] = frozenset()) -> Op:
    """Return the op with a temporary for each optional output that other statements read, since an unwanted one has no memory,
    and for each of the outputs `across`, which become copies of what their statements compute."""
    read = {r.operand for s in op.body for r in reads(s.value)}
    apart = {o.name for o in op.outputs if o.name in across or (o.optional and o.name in read)}
    return with_own_memory(op, apart, op.assignments)[0]


def with_own_memory(op: Op, outputs: Collection[str], targets: Collection[str]) -> tuple[Op, Mapping[str, str]]:
    """Return the op with a temporary for each of some outputs, which becomes a copy of it, and the outputs by their temporaries.

    The statements with these targets write and read the temporaries in place of the outputs.
    """
    namer = Namer(op_names(op) | index_names(op))
    own = {o.name: replace(o, name=namer.fresh(f"{o.name}_value"), optional=False) for o in op.outputs if o.name in outputs}
    if not own:
        return op, {}
    names = {name: o.name for name, o in own.items()}
    body: list[Assign] = []
    for s in op.body:
        if s.target not in targets:
            body.append(s)
            continue
        value = with_operands(s.value, names)
        if s.target in own:
            memory = own[s.target]
            body.append(replace(s, target=memory.name, value=value))
            value = Read(memory.name, bare(s.indices), memory.type)
        body.append(replace(s, value=value))
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *own.values())), {o.name: name for name, o in own.items()}
