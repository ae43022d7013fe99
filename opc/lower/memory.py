"""Temporaries in the memory of others: what a stage makes of a temporary that nothing reads later takes its place.

A block of rows is to stay in a cache, and half as many temporaries take half of it.
"""

from __future__ import annotations

from opc.ir.expr import reads
from opc.lower.loop_ir import (
    ContractionStage,
    NestStage,
    Program,
    RowBuffer,
    RowStage,
    RowStore,
    Stage,
    Temporary,
    read_by,
    written_by,
)
from opc.lower.nest_plans import VectorPlan
from opc.records import replace
from opc.transform.indices import bare


def with_shared_memory(program: Program) -> Program:
    """Return a program whose temporaries take the place of those that they are made of, point by point, and that end there."""
    memory = {t.name: t for t in program.temporaries if t.stored}
    hosts: dict[str, str] = {}
    for n, stage in enumerate(program.stages):
        later = {name for s in program.stages[n + 1 :] for name in read_by(s)}
        for name in written_by(stage):
            if name not in memory:
                continue
            for other in dict.fromkeys(read_by(stage)):
                done = other in memory and other not in later and other not in hosts.values()
                if done and _alike(memory[name], memory[other]) and _in_place(stage, name, other):
                    hosts[name] = other
                    break
    return replace(program, temporaries=tuple(replace(t, host=hosts.get(t.name)) for t in program.temporaries))


def _alike(a: Temporary, b: Temporary) -> bool:
    return a.type == b.type and a.loops == b.loops and set(a.needed_by) <= set(b.needed_by)


def _in_place(stage: Stage, written: str, read: str) -> bool:
    """Whether a stage reads of `read`, at each point that it writes, that point only, and not again once it has written it."""
    match stage:
        case RowStage():
            return all(_row_in_place(s, written, read) for s in (stage, stage.once) if s is not None)
        case ContractionStage():
            places = [indices for name, indices in stage.operand_indices if name == read]
            factors = {f.read.operand for t in stage.terms for f in t.factors}
            return read not in factors and places == [bare(stage.assign.indices)]
        case NestStage():
            whole = bare(stage.assign.indices)
            plain = bool(stage.plans) and all(isinstance(p, VectorPlan) for p in stage.plans)
            return plain and stage.sum is None and all(r.indices == whole for r in reads(stage.assign.value) if r.operand == read)


def _row_in_place(stage: RowStage, written: str, read: str) -> bool:
    own, other = stage.operand(written), stage.operand(read)
    if not own.along_row or not other.along_row or own.loops != other.loops or stage.optional:
        return False
    passes = [(n, (*p.prologue, *p.body)) for n, p in enumerate(stage.passes)]
    storing = [n for n, actions in passes for a in actions if isinstance(a, RowStore) and a.name == written]
    reading = [n for n, actions in passes for a in actions if any(r.operand == read for r in reads(a.value))]
    # A row buffer in the row of the result is written before that.
    hosted = any(a.host == written for p in stage.passes for a in p.body if isinstance(a, RowBuffer))
    return bool(storing) and not hosted and max(reading, default=0) <= min(storing)
