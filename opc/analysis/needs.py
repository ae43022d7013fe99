"""What the outputs of an op need of its statements."""

from __future__ import annotations

from opc.ir.expr import reads
from opc.ir.op import Op


def outputs_that_need(op: Op) -> dict[str, set[str]]:
    """Return for each statement's target the outputs that its value takes part in, itself included where it is one."""
    outputs = {o.name for o in op.outputs}
    needs: dict[str, set[str]] = {s.target: {s.target} & outputs for s in op.body}
    for s in reversed(op.body):
        for read in reads(s.value):
            if read.operand in needs:
                needs[read.operand] |= needs[s.target]
    return needs
