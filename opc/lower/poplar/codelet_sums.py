"""Reductions that the vertices of a codelet may compute in parts."""

from __future__ import annotations

from opc.ir.expr import AttrRef, Axis, Call, Const, Expr, Present, Reduce, Select, walk
from opc.ir.identity import is_identity


def split_axes(value: Expr) -> tuple[Axis, ...]:
    """Return the axes along which the terms of a statement's value may be added up in parts: it is a sum or the like and no more.

    Those of a greatest or least value are not among them, of which Poplar's reductions lose a NaN.
    """
    e = reduced_value(value)
    if e is None:
        return ()
    dependent = {n for a in e.axes if isinstance(a, Axis) for n in a.extent.indices()}
    return tuple(a for a in e.axes if isinstance(a, Axis) and not a.extent.indices() and a.index not in dependent)


def reduced_value(value: Expr) -> Reduce | None:
    """Return the reduction that a value is, under conditions that a call fixes and without which it is what none would change."""
    conditions = list[Expr]()
    while isinstance(value, Select):
        conditions.append(value.cond)
        if not isinstance(value.then, Reduce | Select) or not is_identity(_kind_of(value.then), value.other):
            return None
        value = value.then
    fixed = all(isinstance(n, Present | AttrRef | Const | Call) for c in conditions for n in walk(c))
    return value if isinstance(value, Reduce) and value.kind in ("sum", "prod", "any", "all") and fixed else None


def _kind_of(e: Reduce | Select) -> str:
    """Return the kind of the reduction that is chosen where all conditions hold."""
    while isinstance(e, Select) and isinstance(e.then, Reduce | Select):
        e = e.then
    return e.kind if isinstance(e, Reduce) else ""
