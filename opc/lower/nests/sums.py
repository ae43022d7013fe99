"""Sums over all points of what loop nests compute: added up in the nests, row by row, instead of read back from memory.

A row stage that only adds up the values of nests would go over memory that these have just written. A nest computes its target
in rows, so it adds up each row while that is in cache. What nothing else reads is then never stored.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.dtypes import DType, Weak, candidates
from opc.ir.expr import Read, has_reduction
from opc.ir.op import Op
from opc.lower.loop_ir import NestStage, Program, RowStage, RowStore, Stage, Temporary, read_by
from opc.lower.nest_plans import VectorPlan
from opc.lower.nests.flat import period
from opc.records import replace

_SUMMED = {DType.FLOAT32, DType.FLOAT64}
"""The types in which a nest adds up a row."""


def with_sums_in_nests(op: Op, program: Program) -> Program:
    """Return the program of an op without the row stages that do nothing but add up temporaries that loop nests compute."""
    memory = {
        t.name: t
        for t in program.temporaries
        if not isinstance(t.type, Weak) and {x.compute for x in candidates(t.type)} <= _SUMMED
    }
    nests = {s.assign.target: s for s in program.stages if isinstance(s, NestStage) and _has_rows(op, s)}
    sums: dict[str, str] = {}
    stages: list[Stage] = []
    for s in program.stages:
        found = _sums(s, memory) if isinstance(s, RowStage) else {}
        if found and found.keys() <= nests.keys() - sums.keys():
            sums |= found
        else:
            stages.append(s)
    if not sums:
        return program
    gone = sums.keys() - {name for s in stages for name in read_by(s)}
    for n, s in enumerate(stages):
        if isinstance(s, NestStage) and s.assign.target in sums:
            stages[n] = replace(s, sum=sums[s.assign.target], stored=s.assign.target not in gone)
    temporaries = tuple(replace(t, stored=t.name not in gone) for t in program.temporaries)
    return replace(program, stages=tuple(stages), temporaries=temporaries)


def _has_rows(op: Op, s: NestStage) -> bool:
    """Whether a nest computes its target row by row, and each row as a whole: with a reduction it may do so point by point."""
    if not s.plans or has_reduction(s.assign.value):
        return False
    return all(
        isinstance(p, VectorPlan) and p.vector_axis and period(op, p.statement.value, p.vector_axis) is None for p in s.plans
    )


def _sums(s: RowStage, memory: Mapping[str, Temporary]) -> dict[str, str]:
    """Return the temporaries of which a stage computes the sum over all points, with those that the sums go to; nothing if it
    does anything else."""
    found: dict[str, str] = {}
    domain = {*s.outer, *s.row}
    for p in s.passes:
        for a in (*p.prologue, *p.body):
            if not (isinstance(a, RowStore) and isinstance(a.value, Read)):
                return {}
            name, to = a.value.operand, s.operand(a.name)
            # Of a temporary that runs over a loop twice the stage adds up a diagonal.
            whole = name in memory and len(memory[name].loops) == len(domain) and set(memory[name].loops) == domain
            alike = whole and memory[name].type == to.type
            if not alike or (to.kind, to.reduction, to.loops) != ("temporary", "sum", ()) or name in found:
                return {}
            found[name] = a.name
    return found
