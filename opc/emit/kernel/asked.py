"""Which temporaries of a kernel are computed only where outputs that need them have elements.

An empty maximum, or an index outside its axis, refuses a call where it is used: an output without elements uses nothing.
What depends on such a temporary is not computed then either, since it would read uninitialised memory.
"""

from __future__ import annotations

from opc.ir.expr import may_refuse
from opc.ir.op import Group, Op
from opc.lower.loop_ir import GroupLoop, NestStage, Temporary, read_by, written_by
from opc.lower.lower import SpecialisedProgram


def asked_for(op: Op, variant: SpecialisedProgram) -> set[str]:
    """Return the temporaries that may have no value, or depend on such, except those that are used wherever they have
    elements."""
    temporaries = {t.name: t for t in variant.program.temporaries}
    found: set[str] = set()
    for s in variant.program.stages:
        if found.intersection(read_by(s)) or (isinstance(s, NestStage) and may_refuse(s.assign.value)):
            found |= {n for n in written_by(s) if n in temporaries and not _has_user(op, temporaries[n])}
    return found


def _has_user(op: Op, temporary: Temporary) -> bool:
    """Whether one of the outputs that a temporary is for has elements wherever it has some."""
    own = {Group(x.name, x.of) if isinstance(x, GroupLoop) else x.extent for x in temporary.loops}
    return any(set(o.dims) <= own and not o.optional for o in map(op.output, temporary.needed_by))
