"""What the outputs of an op need of its statements."""

from __future__ import annotations

from opc.ir.expr import operands_read
from opc.ir.op import Op
from opc.ir.recurrence import circles


def outputs_that_need(op: Op) -> dict[str, set[str]]:
    """Return for each statement's target the outputs that its value takes part in, itself included where it is one."""
    outputs = {o.name for o in op.outputs}
    needs: dict[str, set[str]] = {s.target: {s.target} & outputs for s in op.body}
    left = True
    while left:
        left = False
        for s in reversed(op.body):
            for name in operands_read(s.value) & needs.keys():
                if not needs[s.target] <= needs[name]:
                    needs[name] |= needs[s.target]
                    # What is below has been told already, which only a recurrence reads.
                    left = bool(circles(op))
    return needs
