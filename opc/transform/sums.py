"""Sums in derivatives: `sum_over` writes the sum of an expression over loops with everything that does not vary outside it."""

from __future__ import annotations

from opc.ir.affine import Affine, GroupSize
from opc.ir.dtypes import DType, ValueType, is_bool, is_integer
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Expr,
    GroupAxis,
    IndexValue,
    Reduce,
    ReduceAxis,
    Select,
    free_groups,
    free_indices,
    reads,
)
from opc.transform import algebra, scalar


def varies(e: Expr, loops: tuple[ReduceAxis, ...]) -> bool:
    """Whether the value of `e` may differ between the points of these loops.

    Under a loop over the axes an operand was broadcast along, every operand counts as varying: what is read decides which axes
    there are.
    """
    indices, groups = free_indices(e), free_groups(e)
    for a in loops:
        match a:
            case Axis():
                if a.index in indices:
                    return True
            case GroupAxis():
                if a.name in groups:
                    return True
            case BroadcastAxis():
                if next(reads(e), None) is not None:
                    return True
    return False


def sum_over(loops: tuple[ReduceAxis, ...], body: Expr) -> Expr:
    """Return the sum of `body` over `loops`, outermost first, with factors, signs and conditions that do not vary outside."""
    if not loops or scalar.is_zero(body):
        return body
    if isinstance(body, Select) and not varies(body.cond, loops):
        return scalar.select(body.cond, sum_over(loops, body.then), sum_over(loops, body.other))
    match body:
        case Call(fn="neg", args=(inner,)):
            return algebra.neg(sum_over(loops, inner))
        case Call(fn="div", args=(numerator, denominator)) if not varies(denominator, loops):
            return algebra.div(sum_over(loops, numerator), denominator)
    factors = algebra.product_factors(body)
    outside = [f for f in factors if not varies(f, loops)]
    inside = [f for f in factors if varies(f, loops)]
    if outside and (inside or _counts(loops)):
        return algebra.mul(algebra.product(outside), sum_over(loops, algebra.product(inside)) if inside else _size(loops))
    return Reduce("sum", loops, body, sum_type(body.type))


def sum_type(t: ValueType) -> ValueType:
    """Return the type of a sum: that of the body, or int64 for integers and bool."""
    return DType.INT64 if is_integer(t) or is_bool(t) else t


def _counts(loops: tuple[ReduceAxis, ...]) -> bool:
    """Whether the number of points of the loops is an expression: no extent depends on another loop or may be negative."""
    plain = (a.extent.single is not None and not a.extent.indices() for a in loops if isinstance(a, Axis))
    return all(plain) and not any(isinstance(a, BroadcastAxis) for a in loops)


def _size(loops: tuple[ReduceAxis, ...]) -> Expr:
    total = Affine.of(1)
    for a in loops:
        if isinstance(a, Axis):
            total = total * a.extent
        elif isinstance(a, GroupAxis):
            total = total * GroupSize(a.name)
    return IndexValue(total) if total.constant is None else scalar.number(total.constant)
