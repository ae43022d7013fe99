"""Tells whether an expression may be computed at every point of its loops, also where the conditions around it don't hold."""

from __future__ import annotations

from collections.abc import Iterable

from opc.analysis.bounds.access import accesses
from opc.analysis.bounds.checker import Knowledge, knowledge_of
from opc.ir.affine import Affine
from opc.ir.expr import Expr
from opc.ir.op import Assign, Group, Op, Operand
from opc.transform.domain import Domain


class Inside:
    """Tells whether expressions of an op read inside their operands at every point of their loops."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.knowledge: Knowledge | None = None

    def __call__(self, e: Expr, domain: Domain, more: Iterable[Operand] = ()) -> bool:
        """Whether each read of `e` is inside, padded or checked, whatever stands around; `more` are operands the op lacks yet."""
        operands = {o.name: o for o in (*self.op.inputs, *self.op.outputs, *self.op.temporaries, *more)}
        ranges = {a.index: a.extent for a in domain.axes}
        for access in accesses(Assign("", (), e)):
            read = access.read
            extents = {**ranges, **access.extents}
            for n, (index, dim) in enumerate(zip(read.indices, operands[read.operand].dims, strict=True)):
                if read.pad is not None or n in read.checked or not isinstance(index, Affine) or isinstance(dim, Group):
                    continue
                if index.index is not None and extents.get(index.index) == dim:
                    continue
                if self.knowledge is None:
                    self.knowledge = knowledge_of(self.op)
                if not all(self.knowledge.nonnegative(f, extents, access.conditions) for f in (index, dim - 1 - index)):
                    return False
        return True
