"""Sums over a few points, such as the taps of an interpolation: written out, so that one loop computes the value of a row.

As a loop over its points such a sum would keep its partial results in a row of their own, and pass over that once a point.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import product

from opc.ir.affine import Affine
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, Call, Cast, Const, Expr, Reduce, children, reads, with_children
from opc.ir.op import Op
from opc.lower.nest import holds_reduction
from opc.lower.tables import row_nest
from opc.transform.indices import substitute

_MOST_TERMS = 4
"""Of more points a loop costs less than the text of each."""


def with_short_sums(op: Op) -> Op:
    """Return the op with the short sums of its loop nests over rows as terms that are added."""
    return replace(op, body=tuple(replace(s, value=_written_out(s.value)) if row_nest(op, s) else s for s in op.body))


def _written_out(e: Expr) -> Expr:
    if not isinstance(e, Reduce):
        return with_children(e, tuple(_written_out(c) for c in children(e)))
    points = _points(e)
    if points is None:
        return e
    zero: Expr = Const(0, e.type, e.span)
    return reduce(lambda total, term: Call("add", (total, term), e.type, e.span), (_term(e, p) for p in points), zero)


def _points(e: Reduce) -> list[dict[str, Affine]] | None:
    """Return the points of a sum that is short, in order."""
    if e.kind != "sum" or not is_floating(e.type) or holds_reduction(e.body):
        return None
    if any(not isinstance(i, Affine) for r in reads(e.body) for i in r.indices):
        return None  # what finds a place had better be computed once
    extents: dict[str, int] = {}
    for a in e.axes:
        if not isinstance(a, Axis) or a.extent.constant is None:
            return None
        extents[a.index] = a.extent.constant
    points = [dict(zip(extents, map(Affine.of, p), strict=True)) for p in product(*map(range, extents.values()))]
    return points if 1 < len(points) <= _MOST_TERMS else None


def _term(e: Reduce, point: dict[str, Affine]) -> Expr:
    term = substitute(e.body, point)
    return term if term.type == e.type else Cast(term, e.type, e.span)
