"""Expressions that are equal up to the names of their index variables."""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.expr import (
    AttrRef,
    Axis,
    Call,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    TypeIs,
    children,
    with_children,
)
from opc.ir.node import remembered, remembered_each
from opc.records import replace
from opc.transform.indices import rename


@remembered_each("_canonical")
def canonical(e: Expr, indices: tuple[str | GroupRef, ...]) -> Expr:
    """Return `e` with index variables named by position, so that expressions equal up to names compare equal."""
    names = {i: f"#{n}" for n, i in enumerate(indices) if isinstance(i, str)}
    counter = iter(range(1_000_000))

    def bound(node: Expr) -> Expr:
        node = with_children(node, tuple(bound(c) for c in children(node)))
        if not isinstance(node, Reduce):
            return node
        own = {a.index: f"#b{next(counter)}" for a in node.axes if isinstance(a, Axis)}
        axes = tuple(Axis(own[a.index], a.extent.rename(own)) if isinstance(a, Axis) else a for a in node.axes)
        return replace(node, axes=axes, body=rename(node.body, own))

    return bound(rename(e, names))


@remembered("_form")
def form(e: Expr) -> int:
    """Return a number that expressions which are equal up to names share, and few others: it is found at once."""
    match e:
        case Const():
            own: object = e.value
        case AttrRef() | GroupIndex() | Present() | TypeIs():
            own = e
        case IndexValue():
            own = _terms(e.value)
        case Read():
            own = e.operand, tuple([_terms(i) if isinstance(i, Affine) else i.__class__ for i in e.indices])
        case Call():
            own = e.fn
        case Reduce():
            own = e.kind, len(e.axes)
        case _:
            own = None
    return hash((e.__class__, own, tuple([form(c) for c in children(e)])))


def _terms(a: Affine) -> tuple[int, ...]:
    return tuple(sorted(c for _, c in a.terms))
