"""That the passes of lowering leave every read inside its operand: a condition they lose would let a kernel read other memory."""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.bounds.inside import ReadsInside, unproved_reads
from opc.ir.affine import Affine
from opc.ir.expr import reads
from opc.ir.op import Assign, Op, Requirement
from opc.ir.printer import format_expr
from opc.ir.verify import VerifyError
from opc.records import replace
from opc.transform.scalar import ZERO, index_value, raw


def verify_bounded(before: Op, op: Op) -> None:
    """Check that every read of a lowered op is proved inside, padded or checked when the op runs, if all were before.

    Sizes that a flag decides are known before only. A temporary is computed for calls in which an output that needs it has
    elements.

    Raises:
        VerifyError: with the op, the statement and the read.
    """
    proofs = ReadsInside(op)
    for s in op.body:
        if any(proofs.outside(s)) and not unproved_reads(before):
            for some in _with_elements(op, s):
                for read in ReadsInside(some).outside(s):
                    raise VerifyError(f"{op.name}: {s.target}: {format_expr(read)} may fall outside")


def _with_elements(op: Op, s: Assign) -> Iterator[Op]:
    """Yield the op for calls in which an output that needs a statement has elements, for each of them."""
    needing = {s.target}
    for other in op.body[op.body.index(s) + 1 :]:
        if any(r.operand in needing for r in reads(other.value)):
            needing.add(other.target)
    for o in op.outputs:
        if o.name in needing:
            sizes = [d for d in o.dims if isinstance(d, Affine)]
            facts = tuple(Requirement(raw("gt", index_value(d), ZERO), f"{d} > 0") for d in sizes)
            yield replace(op, require=(*op.require, *facts))
