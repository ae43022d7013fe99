"""The terms of a sum that a statement adds to places of its target, and the conditions that each stands under."""

from __future__ import annotations

from opc.ir.dtypes import Acc, ElementType, ValueType, is_floating
from opc.ir.expr import AttrRef, Call, Const, Expr, Present, Select, walk
from opc.lower.guards import conjuncts, is_identity
from opc.transform.scalar import negation


def same_type(value: ValueType, target: ElementType) -> bool:
    """Whether a sum of this type is accumulated in what the target is computed in."""
    return value == target or (isinstance(value, Acc) and value.of == target and is_floating(target))


def is_invariant(cond: Expr) -> bool:
    """Whether a condition has one value for a whole call."""
    return all(isinstance(n, Present | AttrRef | Const | Call) for n in walk(cond))


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
    return found, body
