"""Simplification that is exact under IEEE arithmetic, for any op: the user's own and derived ones.

`x * 1`, `x / 1`, `x ** 1`, `-(-x)`, `a + -b`, decided conditions, conditions repeated inside their own sides. Not `x + 0` (it
turns -0 into 0), nor `0 * x` (NaN).
"""

from __future__ import annotations

import math

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Cast, Const, Expr, IndexValue, Read, Select, children, joined_conditions, may_refuse, reads, rewrite
from opc.ir.node import remembered, remembered_each
from opc.ir.op import Op
from opc.ir.promotion import join
from opc.records import replace
from opc.transform import scalar
from opc.transform.affine_rules import gap


def simplify(op: Op, *, exact: bool = False) -> Op:
    """Return the op with every statement's value simplified; if `exact`, not where that leaves out a temporary that may refuse.

    A temporary is computed where its name stands in what outputs need, and so refuses the call whatever is made of it.
    """
    return _simplified(op, exact)


@remembered_each("_simplified")
def _simplified(op: Op, exact: bool) -> Op:
    """As `simplify`; several passes ask for it of an op that those before them have left as it is."""
    refusing: set[str] = set()
    body = []
    for s in op.body:
        value, names = simplify_expr(s.value), {r.operand for r in reads(s.value)}
        if exact and names & refusing - {r.operand for r in reads(value)}:
            value = s.value
        if names & refusing or may_refuse(value):
            refusing.add(s.target)
        body.append(s.with_value(value))
    return op.with_body(tuple(body))


def erase(op: Op) -> Op:
    """Return the op with every `stop_gradient(x)` replaced by `x`."""

    def rule(e: Expr) -> Expr:
        return e.args[0] if isinstance(e, Call) and e.fn == "stop_gradient" else e

    return op.with_body(tuple(s.with_value(rewrite(s.value, rule)) for s in op.body))


def simplify_expr(e: Expr) -> Expr:
    """Return an expression with the same value at every point, NaN and signed zeros included."""
    return _simpler(e) or e


@remembered("_simpler")
def _simpler(e: Expr) -> Expr | None:
    """Return what is simpler than `e`, None where that is as simple as it gets: a node keeps others alive, but not itself."""
    kept = children(e)
    new = tuple([simplify_expr(c) for c in kept])
    found = _rule(e if new == kept else scalar.rebuilt(e, new))
    return None if found is e else found


def _rule(e: Expr) -> Expr:
    match e:
        case IndexValue() if e.value.constant is not None:
            return scalar.number(e.value.constant)
        case Call():
            return _call(e)
        case Select():
            return _select(e)
        case Cast(arg=Cast() | Call() | Read() as arg) if arg.type == e.type:
            return arg
        case _:
            return e


def _keeps(e: Call, a: Expr) -> bool:
    """Whether a call may be replaced by its argument without changing its type."""
    return a.type == e.type


def _call(e: Call) -> Expr:
    match e.fn, e.args:
        case "mul", (a, b) if scalar.is_number(b, 1) and _keeps(e, a):
            return a
        case "mul", (a, b) if scalar.is_number(a, 1) and _keeps(e, b):
            return b
        case "div" | "pow", (a, b) if scalar.is_number(b, 1) and _keeps(e, a):
            return a
        case "sub", (a, Const() as b) if scalar.is_number(b, 0) and math.copysign(1, b.value) > 0 and _keeps(e, a):
            return a
        case "add", (a, Call(fn="neg", args=(b,))):
            return scalar.raw("sub", a, b)
        case "add", (Call(fn="neg", args=(a,)), b):
            return scalar.raw("sub", b, a)
        case "sub", (a, Call(fn="neg", args=(b,))):
            return scalar.raw("add", a, b)
        case (("mul" | "div"), (Call(fn="neg", args=(a,)), Call(fn="neg", args=(b,)))):
            return scalar.raw(e.fn, a, b)
        case (("mul" | "div"), (a, Call(fn="neg", args=(b,)))):
            return scalar.raw("neg", scalar.raw(e.fn, a, b))
        case "neg", (Call(fn="neg", args=(a,)),):
            return a
        case "neg", (Const(type=Weak.INT | Weak.FLOAT) as c,) if c.value != 0:
            return Const(-c.value, c.type, e.span)
        case "pow", (a, b) if scalar.is_number(b, 2) and scalar.is_leaf(a) and _keeps(e, a):
            return scalar.raw("mul", a, a)
        case "not", (Const() as c,):
            return Const(not c.value, DType.BOOL, e.span)
        case "not", (Call(fn="not", args=(a,)),):
            return a
        case "and" | "or", _:
            return joined_conditions(e)
        case (("eq" | "ne" | "lt" | "le" | "gt" | "ge"), (IndexValue() | Const() as a, IndexValue() | Const() as b)):
            return _decided(e) or scalar.compare(e.fn, a, b)
        case _:
            return e


def _decided(condition: Expr) -> Expr | None:
    """Return the answer to a comparison of sums of indices and sizes that no sizes change, such as that of `i + n < n`."""
    f = gap(condition)
    if f is None:
        return None
    return scalar.TRUE if f.is_never_negative else scalar.FALSE if (-f - 1).is_never_negative else None


def _select(e: Select) -> Expr:
    if isinstance(e.cond, Const):
        chosen = e.then if e.cond.value else e.other
        return chosen if chosen.type == e.type or isinstance(chosen.type, Weak) else e
    if isinstance(e.cond, Call) and e.cond.fn == "not":
        return _select(replace(e, cond=e.cond.args[0], then=e.other, other=e.then))
    then, other = scalar.assume(e.then, e.cond, True), scalar.assume(e.other, e.cond, False)
    if then == other and not may_refuse(e.cond) and (then.type == e.type or isinstance(then.type, Weak)):
        return then
    if isinstance(found := join(then.type, other.type), Weak) and found != e.type:
        then, other = scalar.cast_literal(e.type, then), scalar.cast_literal(e.type, other)
    return scalar.retyped(replace(e, then=then, other=other))
