"""Stages of rows that read what sums over points come to whole, as they read inputs.

The CPU sums over the points of a stage as it goes along, and a stage that follows joins the parts that its threads have come to.
A device has a kernel for each such sum, which joins them itself; so what no stage of rows goes into is lowered as if it were
given: a mean over all labels that count, which the gradient of a loss is divided by.
"""

from __future__ import annotations

from opc.ir.expr import reads
from opc.ir.op import Assign, Op
from opc.lower.loop_ir import NestStage
from opc.lower.lower import SpecialisedProgram, relowered
from opc.lower.steps import in_whole
from opc.records import replace


def with_given(variant: SpecialisedProgram, reduced: frozenset[str]) -> SpecialisedProgram:
    """Return a program whose stages read temporaries that are `reduced` over points as they read inputs."""
    op = variant.case.op
    alone = reduced | {s.assign.target for s in variant.program.stages if isinstance(s, NestStage)}
    ahead, own = {i.name for i in op.inputs}, set[str]()
    for s in op.body:
        # What waits for no stage of rows may run ahead of all of them.
        if s.target in alone and ahead.issuperset(r.operand for r in reads(s.value)):
            ahead.add(s.target)
            own |= {s.target} & reduced
    read = {r.operand for s in op.body if s.target not in own for r in reads(s.value)}
    given = {t.name: t for t in op.temporaries if t.name in own & read}
    if not given:
        return variant
    rest = replace(
        op,
        inputs=(*op.inputs, *given.values()),
        temporaries=tuple(t for t in op.temporaries if t.name not in given),
        body=tuple(s for s in op.body if s.target not in given),
    )
    found = relowered(variant, rest)
    whole = _whole(op, found.case.op)
    stages = tuple(in_whole(s, whole) for s in found.program.stages)
    return replace(found, case=replace(found.case, op=whole), program=replace(found.program, stages=stages))


def _whole(op: Op, rest: Op) -> Op:
    """Return an op with the statements that it was lowered without, ahead of those that read them."""
    statements = {s.target: s for s in op.body} | {s.target: s for s in rest.body}
    body: dict[str, Assign] = {}

    def add(s: Assign) -> None:
        for r in reads(s.value):
            if r.operand in statements and r.operand not in body and r.operand != s.target:
                add(statements[r.operand])
        body[s.target] = s

    for s in rest.body:
        if s.target not in body:
            add(s)
    known = {t.name: t for t in (*rest.temporaries, *op.temporaries)}
    temporaries = tuple(t for t in known.values() if t.name in body)
    return replace(rest, inputs=op.inputs, temporaries=temporaries, body=tuple(body.values()))


__all__ = ["with_given"]
