"""Propagation of conditions: what a condition around already decides is not asked again.

Inside of `if present(x)` x is present, and behind `if not present(x): continue` too. What hangs on an answer that is known goes.
"""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.value_types import presence
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Const, Expr, Present, Select, children, with_children
from opc.loops.nodes import (
    Body,
    Continue,
    If,
    Result,
    Return,
    Statement,
    bodies,
    own_values,
    with_bodies,
    with_own_values,
)
from opc.loops.values import Block, Choice

Presence = tuple[frozenset[str], frozenset[str]]
"""The operands that are known to be present, and those that are known not to be."""

_NOTHING: Presence = (frozenset(), frozenset())


def propagate(body: Body, known: Presence = _NOTHING) -> Body:
    """Return statements without conditions that those around them decide."""
    found: list[Statement] = []
    for s in body:
        s = with_own_values(s, tuple(_value(v, known) for v in own_values(s)))
        if not isinstance(s, If):
            found.append(with_bodies(s, tuple(propagate(b, known) for b in bodies(s))))
            continue
        if isinstance(s.cond, Const):
            found += propagate(s.then if s.cond.value else s.other, known)
            continue
        then, other = propagate(s.then, _where(s.cond, True, known)), propagate(s.other, _where(s.cond, False, known))
        if then or other:
            found.append(replace(s, then=then, other=other))
        if then and isinstance(then[-1], Continue | Return | Result):
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


def _value(e: Expr, known: Presence) -> Expr:
    match e:
        case Present(operand=operand):
            if operand in known[0] or operand in known[1]:
                return Const(operand in known[0], DType.BOOL)
            return e
        case Select() | Choice():
            cond = _value(e.cond, known)
            if isinstance(cond, Const):
                chosen = _value(e.then if cond.value else e.other, known)
                return replace(chosen, type=e.type) if isinstance(chosen, Const) else chosen
            then, other = _value(e.then, _where(cond, True, known)), _value(e.other, _where(cond, False, known))
            return with_children(e, (cond, then, other))
        case Call(fn="not", args=(a,)):
            a = _value(a, known)
            return Const(not a.value, DType.BOOL) if isinstance(a, Const) else with_children(e, (a,))
        case Call(fn="and" | "or" as fn, args=(a, b)):
            a = _value(a, known)
            if isinstance(a, Const):
                return _value(b, known) if a.value == (fn == "and") else a
            b = _value(b, _where(a, fn == "and", known))
            return a if isinstance(b, Const) and b.value == (fn == "and") else with_children(e, (a, b))
        case Block():
            body = propagate(e.body, known)
            inner = known
            for s in e.body:
                if isinstance(s, If) and s.then and isinstance(s.then[-1], Result):
                    inner = _where(s.cond, False, inner)
            value = _value(e.value, inner)
            return replace(e, body=body, value=value) if body else value
        case _:
            return with_children(e, tuple(_value(c, known) for c in children(e)))
