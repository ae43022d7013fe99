"""Ops whose accesses are not all bare indices: one loop nest a statement."""

from __future__ import annotations

from opc.ir.expr import reads
from opc.ir.op import Group, Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, NestStage, Program, Temporary


def nest(op: Op, suffix: str = "") -> Program:
    """Return the op as one nest a statement, every temporary stored in memory."""
    stages = tuple(NestStage(f"{op.name}_{s.target}{suffix}", s) for s in op.body)
    uses = {s.target: {r.operand for r in reads(s.value)} for s in op.body}

    def needs(output: str) -> set[str]:
        found, todo = set[str](), [output]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += uses.get(name, ())
        return found

    temporaries = tuple(
        Temporary(
            t.name,
            t.type,
            tuple(GroupLoop(d.name, d.of) if isinstance(d, Group) else IndexLoop(str(d), d) for d in t.dims),
            tuple(o.name for o in op.outputs if t.name in needs(o.name)),
        )
        for t in op.temporaries
    )
    return Program(op.name, stages, temporaries)
