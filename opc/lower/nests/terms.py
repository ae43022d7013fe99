"""The terms of a reduction that a statement scatters to places of its target, and the conditions that each stands under."""

from __future__ import annotations

from opc.ir.dtypes import Acc, DType, ElementType, ValueType, Weak, is_bool, is_floating
from opc.ir.expr import Call, Cast, Const, Expr, Reduce, Select
from opc.ir.identity import IDENTITY, is_identity
from opc.ir.op import Op
from opc.lower.contractions.terms import is_invariant
from opc.lower.guards import conjuncts
from opc.lower.nest_plans import Flat
from opc.records import replace
from opc.transform.scalar import negation


def same_type(value: ValueType, target: ElementType) -> bool:
    """Whether a sum of this type is accumulated in what the target is computed in."""
    return value == target or (isinstance(value, Acc) and value.of == target and is_floating(target))


def under_invariants(e: Expr) -> tuple[tuple[Expr, ...], Expr]:
    """Return the conditions with one value for a whole call without which a reduction has no terms, outermost first, and the
    reduction."""
    found: list[Select] = []
    while isinstance(e, Select) and is_invariant(e.cond):
        found.append(e)
        e = e.then
    if not isinstance(e, Reduce) or not all(is_identity(e.kind, s.other, s.type) for s in found):
        return (), found[0] if found else e
    return tuple(s.cond for s in found), e


def whole_reduction(op: Op, flat: Flat) -> tuple[tuple[Expr, ...], Reduce] | None:
    """Return the reduction that a flat statement's whole value is, behind the conditions of `under_invariants`, else None."""
    given, e = under_invariants(flat.value)
    if not isinstance(e, Reduce) or e.kind not in IDENTITY or not same_type(e.type, op.operand(flat.target).type):
        return None
    return given, e


def conditions_of(body: Expr, kind: str = "sum") -> tuple[list[Expr], Expr]:
    """Return the conditions without which a reduction of a kind takes nothing in with a term, outermost first, and the term."""
    found: list[Expr] = []
    while isinstance(body, Select):
        if is_identity(kind, body.other, body.type):
            cond, body = body.cond, body.then
        elif is_identity(kind, body.then, body.type):
            cond, body = negation(body.cond), body.other
        else:
            break
        found += conjuncts(cond)
    if kind in ("any", "all") and isinstance(body, Call) and is_bool(body.type):
        # What `any` takes in is true where a condition holds, what `all` does is false where one does not.
        found += conjuncts(body if kind == "any" else negation(body))
        body = Const(kind == "any", DType.BOOL)
    if kind == "sum" and isinstance(body, Cast) and is_bool(body.arg.type) and not is_bool(body.type):
        # A condition as a number is 1 where it holds.
        found += conjuncts(body.arg)
        body = replace(body, arg=Const(1, Weak.INT))
    return found, body
