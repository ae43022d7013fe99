"""For which of the outputs that a caller wants a step is done."""

from __future__ import annotations

from collections.abc import Iterable

from opc.analysis.needs import outputs_that_need
from opc.ir.op import Op
from opc.lower.loop_ir import Temporary


class Needs:
    """Tells the outputs of an op that each of its tensors is there for."""

    def __init__(self, op: Op, temporaries: Iterable[Temporary]) -> None:
        self.op = op
        self.behind = {t.name: t.needed_by for t in temporaries}
        self.optional = {o.name: o.optional for o in op.outputs}

    def of(self, written: Iterable[str]) -> tuple[str, ...]:
        """Return the outputs for which tensors are written, in their order; none where one is always computed."""
        outputs = {o for name in written for o in ((name,) if name in self.optional else self.behind.get(name, ()))}
        if not all(self.optional[o] for o in outputs) or len(outputs) == len(self.op.outputs):
            return ()
        return tuple(o.name for o in self.op.outputs if o.name in outputs)

    @staticmethod
    def outputs_behind(op: Op, target: str) -> tuple[str, ...]:
        """Return the outputs that a statement's target takes part in."""
        found = outputs_that_need(op)[target]
        return tuple(o.name for o in op.outputs if o.name in found)
