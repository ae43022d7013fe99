"""Guards reads of an op that can't be proved inside: no read reaches memory that no proof has seen bounded.

The reads of a spec's body are proved when it is checked. Passes move what they stand in, and derived ops have reads of their own;
so the ops that are lowered are proved again, as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.inside import ReadsInside, parts
from opc.analysis.bounds.knowledge import Conditions
from opc.ir.affine import Affine
from opc.ir.expr import Expr, Read, with_children
from opc.ir.op import Assign, Op
from opc.records import replace
from opc.transform import scalar


def guarded(op: Op) -> Op:
    """Return the op with reads that are not proved inside padded by 0.

    So are those whose indices are data: where a spec has them checked, they are checked in each derived op, and no others may be.
    """
    proofs = ReadsInside(op)
    return op.with_body(tuple(padded(proofs, s) if any(proofs.outside(s)) else s for s in op.body))


def padded(proofs: ReadsInside, s: Assign) -> Assign:
    """Return a statement with reads that are not proved inside padded by 0."""

    def visit(e: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Expr:
        e = with_children(e, tuple(visit(*part) for part in parts(e, ranges, under)))
        outside = isinstance(e, Read) and proofs.axes_outside(e, ranges, under)
        return replace(e, pad=scalar.nothing(e.type), checked=()) if outside and isinstance(e, Read) else e

    return replace(s, value=visit(s.value, ranges_of(s, proofs.op.operand(s.target)), ()))
