"""What hangs on optional inputs: sizes that they alone tell, and values that are asked for only where they are present."""

from __future__ import annotations

from collections.abc import Iterable

from opc.analysis.patterns import conjunction
from opc.analysis.value_types import presence
from opc.diagnostics import NO_SPAN, Diagnostics, Span
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, ValueType, Weak, is_bool
from opc.ir.expr import Call, Const, Expr, Present, Select, children, conjuncts, own_affines, reads, walk
from opc.ir.op import Op, Operand


def told(cond: Expr, holds: bool) -> frozenset[str]:
    """Return the operands whose presence a condition tells by itself, as `present(b) and ...` or `not present(b)` do."""
    parts = conjuncts(cond) if holds else cond.args if isinstance(cond, Call) and cond.fn == "not" else ()
    return frozenset(p.operand for p in parts if isinstance(p, Present))


def where_present(e: Expr, optional: Iterable[Operand]) -> Expr:
    """Return `e` under the presence of those of the optional operands that it hangs on, for places where they are known to be.

    So all that follows sees what tells it: of `not present(b) or b[i] > 0`, the second is `b[i] > 0 if present(b) else False`.
    """
    nothing = Const(False, DType.BOOL, e.span) if is_bool(e.type) else Const(0, Weak.INT, e.span)
    read = {r.operand for r in reads(e)}
    sizes = {a for node in walk(e) for size in own_affines(node) for a in size.atoms()}
    asked, inside = set[str](), e  # by the author, or in a body that was printed
    while isinstance(inside, Select) and isinstance(inside.cond, Present) and inside.other == nothing:
        asked.add(inside.cond.operand)
        inside = inside.then
    for o in optional:
        own = {d.single for d in o.dims if isinstance(d, Affine)}
        if o.name not in asked and (o.name in read or own & sizes):
            e = Select(Present(o.name, e.span), e, nothing, e.type, e.span)
    return e


def conditional(cond: Expr, then: Expr, other: Expr, kind: ValueType, span: Span, given: frozenset[str] = frozenset()) -> Expr:
    """Return a conditional; what a part of its condition asks below a presence that is asked ahead of it stands inside.

    So `x[n] if present(b) and b[n] == k else 0` is `(x[n] if b[n] == k else 0) if present(b) else 0`, whose sum over n is found
    to be a scatter. Where the other side is no literal it would be computed twice, and the conditional stays as it is. `given`
    are the operands that conditions around have asked for.
    """
    parts = conjuncts(cond) if isinstance(other, Const) else []
    for n, part in enumerate(parts):
        match part:
            case Select(cond=Present(operand=name), then=inner, other=Const(value=False)) if name in given:
                within = conditional(conjunction([inner, *parts[n + 1 :]]), then, other, kind, span, given)
                return Select(conjunction(parts[:n]), within, other, kind, span) if n else within
        given |= told(part, True)
    return Select(cond, then, other, kind, span)


def check_sizes(op: Op, found: Diagnostics) -> None:
    """Report where a body asks for a size that no input tells in some call that leaves out optional inputs."""
    tellers = _tellers(op)
    told: set[str] = set()

    def ask(sizes: tuple[Affine, ...], present: frozenset[str], span: Span) -> None:
        for name in sorted({a.name for size in sizes for a in size.atoms() if isinstance(a, Dim)} & tellers.keys() - told):
            if not tellers[name] & present:
                told.add(name)
                first = sorted(tellers[name])[0]
                hint = f"ask for it inside `... if present({first}) else ...`, or give {name} to an input that is always given"
                found.error(f"'{name}' is known only when an optional input is given", span, hint)

    def visit(e: Expr, present: frozenset[str], around: Span) -> None:
        span = getattr(e, "span", NO_SPAN)
        span = around if span == NO_SPAN else span
        match e:
            case Select():
                visit(e.cond, present, span)
                visit(e.then, present | presence(e.cond, True), span)
                visit(e.other, present | presence(e.cond, False), span)
                return
            case _:
                ask(own_affines(e), present, span)
        for child in children(e):
            visit(child, present, span)

    for s in op.body if tellers else ():
        ask(tuple(d for d in op.operand(s.target).dims if isinstance(d, Affine)), frozenset(), s.span)
        visit(s.value, frozenset(), s.span)


def _tellers(op: Op) -> dict[str, set[str]]:
    """Return the dimensions that optional inputs alone tell, and which."""
    telling: dict[str, set[str]] = {}
    firm: set[str] = {name for name, _ in op.dims}
    for o in op.inputs:
        for d in o.dims:
            if isinstance(d, Affine) and isinstance(d.single, Dim):
                if o.optional:
                    telling.setdefault(d.single.name, set()).add(o.name)
                else:
                    firm.add(d.single.name)
    return {name: names for name, names in telling.items() if name not in firm}
