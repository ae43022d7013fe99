"""Sizes that optional inputs alone tell: a body may ask for them only where one of these is present."""

from __future__ import annotations

from opc.analysis.value_types import presence
from opc.diagnostics import NO_SPAN, Diagnostics, Span
from opc.ir.affine import Affine, Dim
from opc.ir.expr import Axis, Expr, IndexValue, Read, Reduce, Select, children
from opc.ir.op import Op


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
            case Reduce():
                ask(tuple(a.extent for a in e.axes if isinstance(a, Axis)), present, span)
            case IndexValue():
                ask((e.value,), present, span)
            case Read():
                ask(tuple(i for i in e.indices if isinstance(i, Affine)), present, span)
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
