"""Propagation of conditions: what an enclosing condition implies is not tested again.

Inside of `if present(x)` x is present, and behind `if not present(x): continue` too. What hangs on an answer that is known goes.
"""

from __future__ import annotations

from opc.analysis.value_types import presence
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Const, Expr, Present, Select, children, with_children
from opc.loops.nodes import (
    Body,
    Continue,
    If,
    Return,
    Statement,
    Yield,
    bodies,
    own_values,
    with_bodies,
    with_own_values,
)
from opc.loops.values import Block, IntegerChoice, Speculative
from opc.records import replace

Presence = tuple[frozenset[str], frozenset[str]]
"""The operands that are known to be present, and those that are known not to be."""

_NOTHING: Presence = (frozenset(), frozenset())


def propagate(body: Body) -> Body:
    """Return statements without conditions that those around them decide."""
    return _body(body, _NOTHING, None)


def _body(body: Body, known: Presence, around: Presence | None) -> Body:
    """Return statements where conditions are known; `around` are those that hold around the expression they stand in, if any."""
    found: list[Statement] = []
    for s in body:
        s = with_own_values(s, tuple(_value(v, known, known if around is None else around) for v in own_values(s)))
        if not isinstance(s, If):
            found.append(with_bodies(s, tuple(_body(b, known, around) for b in bodies(s))))
            continue
        if isinstance(s.cond, Const):
            found += _body(s.then if s.cond.value else s.other, known, around)
            continue
        then = _body(s.then, _where(s.cond, True, known), around)
        other = _body(s.other, _where(s.cond, False, known), around)
        if then or other:
            found.append(replace(s, then=then, other=other))
        if then and isinstance(then[-1], Continue | Return | Yield):
            known = _where(s.cond, False, known)
    return tuple(found)


def _where(cond: Expr, holds: bool, known: Presence) -> Presence:
    """Return what is known where a condition has a value."""
    return known[0] | presence(cond, holds), known[1] | _absence(cond, holds)


def _absence(cond: Expr, holds: bool) -> frozenset[str]:
    """Return the operands that are absent where a condition has a value."""
    match cond:
        case Present(operand=operand):
            return frozenset() if holds else frozenset([operand])
        case Call(fn="not", args=(a,)):
            return _absence(a, not holds)
        case Call(fn="and" | "or" as fn, args=args) if (fn == "and") == holds:
            return frozenset().union(*(_absence(a, holds) for a in args))
        case _:
            return frozenset()


def _value(e: Expr, known: Presence, around: Presence) -> Expr:
    """Return a value where conditions are known: `around` those of statements, which hold wherever a part is computed early."""
    match e:
        case Present(operand=operand):
            if operand in known[0] or operand in known[1]:
                return Const(operand in known[0], DType.BOOL)
            return e
        case Select() | IntegerChoice():
            cond = _value(e.cond, known, around)
            if isinstance(cond, Const):
                chosen = _value(e.then if cond.value else e.other, known, around)
                return replace(chosen, type=e.type) if isinstance(chosen, Const) else chosen
            then = _value(e.then, _where(cond, True, known), around)
            other = _value(e.other, _where(cond, False, known), around)
            return with_children(e, (cond, then, other))
        case Call(fn="not", args=(a,)):
            a = _value(a, known, around)
            return Const(not a.value, DType.BOOL) if isinstance(a, Const) else with_children(e, (a,))
        case Call(fn="and" | "or" as fn, args=(a, b)):
            a = _value(a, known, around)
            if isinstance(a, Const):
                return _value(b, known, around) if a.value == (fn == "and") else a
            b = _value(b, _where(a, fn == "and", known), around)
            return a if isinstance(b, Const) and b.value == (fn == "and") else with_children(e, (a, b))
        case Speculative():
            return with_children(e, (_value(e.value, around, around),))
        case Block():
            body = _body(e.body, known, around)
            inner = known
            for s in e.body:
                if isinstance(s, If) and s.then and isinstance(s.then[-1], Yield):
                    inner = _where(s.cond, False, inner)
            value = _value(e.value, inner, around)
            return replace(e, body=body, value=value) if body else value
        case _:
            return with_children(e, tuple(_value(c, known, around) for c in children(e)))
