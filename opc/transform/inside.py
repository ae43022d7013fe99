"""Tells whether an expression may be computed at every point of its loops, also where the conditions around it don't hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from opc.analysis.bounds.access import accesses
from opc.analysis.bounds.inside import parts
from opc.analysis.bounds.knowledge import Conditions, Knowledge, knowledge_of
from opc.ir.affine import Affine
from opc.ir.expr import EXTREMES, Axis, Expr, Reduce, with_children
from opc.ir.op import Assign, Group, Op, Operand
from opc.transform import scalar
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
                if not all(self.known().nonnegative(f, extents, access.conditions) for f in (index, dim - 1 - index)):
                    return False
        return True

    def known(self) -> Knowledge:
        """Return what is known of the op's sizes."""
        if self.knowledge is None:
            self.knowledge = knowledge_of(self.op)
        return self.knowledge

    def with_some(
        self, e: Expr, ranges: Mapping[str, Affine], under: Conditions = (), left: Callable[[Affine], bool] = lambda _: False
    ) -> Expr:
        """Return an expression that is 0 in place of the greatest or least of nothing; those of an extent that is `left` stay."""
        inside = [self.with_some(c, around, more, left) for c, around, more in parts(e, ranges, under)]
        e = with_children(e, tuple(inside))
        if not isinstance(e, Reduce) or e.kind not in EXTREMES:
            return e
        some: Expr = e
        for a in e.axes:
            extent = a.size
            if not left(extent) and not self.known().nonnegative(extent - 1, ranges, under):
                holds = scalar.raw("gt", scalar.index_value(extent), scalar.ZERO)
                some = scalar.select(holds, some, scalar.nothing(e.type))
            ranges = {**ranges, a.index: a.extent} if isinstance(a, Axis) else ranges
        return some
