"""The terms of a sum that a statement adds to places of its target, and the conditions that each stands under."""

from __future__ import annotations

from opc.ir.dtypes import Acc, ElementType, ValueType, Weak, is_bool, is_floating
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, Present, Reduce, Select, walk
from opc.ir.op import Op
from opc.lower.guards import conjuncts, is_identity
from opc.lower.nest_plans import Flat
from opc.records import replace
from opc.transform.scalar import negation


def same_type(value: ValueType, target: ElementType) -> bool:
    """Whether a sum of this type is accumulated in what the target is computed in."""
    return value == target or (isinstance(value, Acc) and value.of == target and is_floating(target))


def is_invariant(cond: Expr) -> bool:
    """Whether a condition has one value for a whole call."""
    return all(isinstance(n, Present | AttrRef | Const | Call) for n in walk(cond))


def under_invariants(e: Expr) -> tuple[tuple[Expr, ...], Expr]:
    """Return the conditions with one value for a whole call without which a sum is 0, outermost first, and the sum."""
    found: list[Expr] = []
    while isinstance(e, Select) and is_invariant(e.cond) and is_identity("sum", e.other):
        found.append(e.cond)
        e = e.then
    return tuple(found), e


def whole_sum(op: Op, flat: Flat) -> tuple[tuple[Expr, ...], Reduce] | None:
    """Return the sum that the whole value of a flat statement is, behind the conditions of `under_invariants`, else None."""
    given, e = under_invariants(flat.value)
    if not isinstance(e, Reduce) or e.kind != "sum" or not same_type(e.type, op.operand(flat.target).type):
        return None
    return given, e


def conditions_of(body: Expr) -> tuple[list[Expr], Expr]:
    """Return the conditions without which a term of a sum is 0, outermost first, and the term."""
    found: list[Expr] = []
    while isinstance(body, Select):
        if is_identity("sum", body.other):
            cond, body = body.cond, body.then
        elif is_identity("sum", body.then):
            cond, body = negation(body.cond), body.other
        else:
            break
        found += conjuncts(cond)
    if isinstance(body, Cast) and is_bool(body.arg.type) and not is_bool(body.type):
        # A condition as a number is 1 where it holds.
        found += conjuncts(body.arg)
        body = replace(body, arg=Const(1, Weak.INT))
    return found, body
