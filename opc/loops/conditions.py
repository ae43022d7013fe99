"""Propagation of conditions: what an enclosing condition implies is not tested again.

Inside of `if present(x)` x is present, and behind `if not present(x): continue` too. What hangs on an answer that is known goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opc.analysis.value_types import presence
from opc.ir.dtypes import DType
from opc.ir.expr import PRESENCE, STATEMENTS, TRUTH, Call, Const, Expr, Present, Select, children, traits, with_children
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
        values = own_values(s)
        for v in values:
            if traits(v) & _DECIDED:
                s = with_own_values(s, tuple([_value(v, known, known if around is None else around) for v in values]))
                break
        if not isinstance(s, If):
            inner = bodies(s)
            found.append(with_bodies(s, tuple([_body(b, known, around) for b in inner])) if inner else s)
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
    if not traits(cond) & PRESENCE:
        return known
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


_DECIDED = PRESENCE | TRUTH | STATEMENTS
"""What has to stand in a value for known conditions to change it."""


def _value(e: Expr, known: Presence, around: Presence) -> Expr:
    """Return a value where conditions are known: `around` those of statements, which hold wherever a part is computed early."""
    if not traits(e) & _DECIDED:
        return e
    rule = _RULES.get(e.__class__)
    found = None if rule is None else rule(e, known, around)
    return with_children(e, tuple([_value(c, known, around) for c in children(e)])) if found is None else found


def _present(e: Present, known: Presence, around: Presence) -> Expr:
    return Const(e.operand in known[0], DType.BOOL) if e.operand in known[0] or e.operand in known[1] else e


def _choice(e: Select | IntegerChoice, known: Presence, around: Presence) -> Expr:
    cond = _value(e.cond, known, around)
    if isinstance(cond, Const):
        chosen = _value(e.then if cond.value else e.other, known, around)
        return replace(chosen, type=e.type) if isinstance(chosen, Const) else chosen
    then = _value(e.then, _where(cond, True, known), around)
    other = _value(e.other, _where(cond, False, known), around)
    return with_children(e, (cond, then, other))


def _call(e: Call, known: Presence, around: Presence) -> Expr | None:
    if e.fn == "not":
        a = _value(e.args[0], known, around)
        return Const(not a.value, DType.BOOL) if isinstance(a, Const) else with_children(e, (a,))
    if e.fn not in ("and", "or"):
        return None
    a, b = e.args
    a = _value(a, known, around)
    if isinstance(a, Const):
        return _value(b, known, around) if a.value == (e.fn == "and") else a
    b = _value(b, _where(a, e.fn == "and", known), around)
    return a if isinstance(b, Const) and b.value == (e.fn == "and") else with_children(e, (a, b))


def _block(e: Block, known: Presence, around: Presence) -> Expr:
    body = _body(e.body, known, around)
    inner = known
    for s in e.body:
        if isinstance(s, If) and s.then and isinstance(s.then[-1], Yield):
            inner = _where(s.cond, False, inner)
    value = _value(e.value, inner, around)
    return replace(e, body=body, value=value) if body else value


_RULES: Mapping[type, Callable[[Any, Presence, Presence], Expr | None]] = {
    Present: _present,
    Select: _choice,
    IntegerChoice: _choice,
    Call: _call,
    Speculative: lambda e, known, around: with_children(e, (_value(e.value, around, around),)),
    Block: _block,
}
"""What becomes of each class of values; None where its parts are looked at."""
