"""From an op to its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from opc.ir.arrangement import arrangement
from opc.ir.expr import Expr, Read, reads, rewrite
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
from opc.lower.nests.solved import with_solved_sums
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
from opc.transform.indices import Namer, bare, index_names, op_names
from opc.transform.normalize import hoist
from opc.transform.scalar import ZERO, index_value, raw


@dataclass(frozen=True, slots=True)
class SpecialisedProgram:
    """The program of one case of attribute values."""

    case: Specialisation
    program: Program


@dataclass(frozen=True, slots=True, eq=False)
class _OpIdentity:
    """An op by what it is, not by what it says: to compare two takes long, and 1 is True to Python."""

    op: Op

    def __hash__(self) -> int:
        return id(self.op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OpIdentity) and self.op is other.op


def lower(op: Op) -> tuple[SpecialisedProgram, ...]:
    """Return a program for each case of the op's string and bool attributes that its body asks for."""
    return _lowered(_OpIdentity(op), active())


# The ops of a folder: the covering set is read off their programs, of which kernels are made then.
@lru_cache(maxsize=512)
def _lowered(same: _OpIdentity, overrides: tuple[Override, ...]) -> tuple[SpecialisedProgram, ...]:
    return tuple(v for case in specialise(same.op) for v in _variants(case))


def _variants(case: Specialisation) -> Iterator[SpecialisedProgram]:
    for own, program in _by_emptiness(case):
        yield program or _variant(own)


def _by_emptiness(case: Specialisation) -> Iterator[tuple[Specialisation, SpecialisedProgram | None]]:
    """Yield a case, after one for calls in which something is empty of which a condition asks for the greatest or least element:
    the usual one computes that once for all points, where nobody asks for it too, and the other point by point. A program that
    was made to tell is beside its case."""
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
    """Return the stages of a case: row stages where its body is regular and has no contraction, as it is or with an axis as two;
    else the stages of its parts."""
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
    """Return the stages of an op without recurrences, and what became of it; `splits` tells that axes may be taken apart."""
    op = extract(extract_scatters(with_joined_scatters(with_zeros_in_sums(with_solved_sums(source)))))
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
    """Return a program for each case of an op with recurrences, of which a target lowers the segments by itself."""
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
    """Return a program with the stages of another op, whose statements are those of the program's with other values."""
    return _named(variant.case, op, with_sums_in_nests(op, partition(op, bool(variant.case.empty))))


def relowered(variant: SpecialisedProgram, op: Op) -> SpecialisedProgram:
    """Return a program with the stages of another op, made of the program's for a target of its own."""
    return _variant(replace(variant.case, op=op))


def lowered_across(variant: SpecialisedProgram) -> SpecialisedProgram | None:
    """Return the program of a case for calls in which the axes that an attribute lists lie across memory.

    Whole rows along them are none there, and what they do is done point by point. None where there are no such rows, or where the
    op seldom runs on much.
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
    """Return the outputs whose axes stand in an order that only a call tells."""
    how = arrangement(op)
    return frozenset() if how is None else frozenset(o.name for o in op.outputs if how.is_mixed(o))


def _written_across(op: Op, program: Program) -> frozenset[str]:
    """Return the outputs that a nest or a product writes, whose axes stand in an order that only a call tells.

    These write what is contiguous, and only rows go by strides.
    """
    others = (s for s in program.stages if not isinstance(s, RowStage))
    return _mixed_outputs(op) & {s.assign.target for s in others}


def _with_own_memory(op: Op, across: frozenset[str] = frozenset()) -> Op:
    """Return the op with a temporary for each optional output that other statements read: one not wanted has no memory.

    So have the outputs `across`, which are copied from what their statements write.
    """
    read = {r.operand for s in op.body for r in reads(s.value)}
    namer = Namer(op_names(op) | index_names(op))
    apart = {o.name for o in op.outputs if o.name in across or (o.optional and o.name in read)}
    shared = {o.name: replace(o, name=namer.fresh(f"{o.name}_value")) for o in op.outputs if o.name in apart}
    if not shared:
        return op

    def rule(e: Expr) -> Expr:
        return replace(e, operand=shared[e.operand].name) if isinstance(e, Read) and e.operand in shared else e

    body: list[Assign] = []
    for s in op.body:
        value = rewrite(s.value, rule)
        own = shared.get(s.target)
        if own is not None:
            body.append(replace(s, target=own.name, value=value))
            value = Read(own.name, bare(s.indices), own.type)
        body.append(replace(s, value=value))
    temporaries = (*op.temporaries, *(replace(o, optional=False) for o in shared.values()))
    return replace(op, body=tuple(body), temporaries=temporaries)
