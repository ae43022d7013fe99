"""Guards reads of an op that can't be proved inside: no read reaches memory that no proof has seen bounded.

The reads of a spec's body are proved when it is checked. Passes move what they stand in, and derived ops have reads of their own;
so the ops that are lowered are proved again, as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.inside import Conditions, ReadsInside, parts
from opc.ir.affine import Affine
from opc.ir.expr import Expr, Read, with_children
from opc.ir.op import Op
from opc.transform import scalar


def guarded(op: Op) -> Op:
    """Return the op with reads that are not proved inside padded by 0, and checked when it runs where their indices are data."""
    proofs = ReadsInside(op)

    def visit(e: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Expr:
        e = with_children(e, tuple(visit(*part) for part in parts(e, ranges, under)))
        outside = proofs.axes_outside(e, ranges, under) if isinstance(e, Read) else ()
        if not outside or not isinstance(e, Read):
            return e
        if any(isinstance(e.indices[n], Affine) for n in outside):
            return replace(e, pad=scalar.nothing(e.type), checked=())
        return replace(e, checked=tuple(sorted({*e.checked, *outside})))

    body = tuple(
        replace(s, value=visit(s.value, ranges_of(s, op.operand(s.target)), ())) if any(proofs.outside(s)) else s for s in op.body
    )
    return replace(op, body=body)
