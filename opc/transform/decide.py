"""Decides the conditions on indices that the ranges of indices and of integer values tell."""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.value_range import Values
from opc.ir.affine import Affine
from opc.ir.dtypes import Weak, is_integer
from opc.ir.expr import CONDITION, Call, Const, Expr, IndexValue, Reduce, children, joined_conditions, traits, with_children
from opc.ir.op import Op
from opc.transform import scalar


def decide(op: Op, *, exact: bool = False) -> Op:
    """Return the op without the parts of conditions that hold at every point, such as that an argmax is not negative.

    If `exact`, those of indices alone: what others read may refuse the call.
    """
    values = Values(op)

    def visit(e: Expr, ranges: Mapping[str, Affine]) -> Expr:
        if not traits(e) & CONDITION:
            return e
        inner = ranges
        if isinstance(e, Reduce):
            inner = {**ranges, **e.extents}
        e = with_children(e, tuple([visit(c, inner) for c in children(e)]))
        match e:
            case Call(fn="ge" | "gt" | "lt" | "le") if exact and scalar.any_reads(e):
                return e
            case Call(fn="and") if exact:
                return joined_conditions(e) if any(isinstance(a, Const) for a in e.args) else e
            case Call(fn="and"):
                return scalar.conjunction(*e.args)
            case Call(fn="ge" | "gt" as fn, args=(a, b)) if (bound := _bound(a, b)) is not None:
                return scalar.TRUE if values.at_least(a, bound + int(fn == "gt"), ranges) else e
            case Call(fn="lt" | "le" as fn, args=(a, b)) if (bound := _bound(a, b)) is not None:
                return scalar.TRUE if values.below(a, bound + int(fn == "le"), ranges) else e
            case _:
                return e

    return op.with_body(tuple(s.with_value(visit(s.value, ranges_of(s, op.operand(s.target)))) for s in op.body))


def _bound(a: Expr, b: Expr) -> Affine | None:
    """Return what an integer is compared with, when that is an expression of indices and sizes."""
    if not is_integer(a.type) and not (isinstance(a.type, Weak) and isinstance(a, IndexValue)):
        return None
    if isinstance(b, IndexValue):
        return b.value
    return Affine.of(b.value) if isinstance(b, Const) and b.type is Weak.INT and isinstance(b.value, int) else None
