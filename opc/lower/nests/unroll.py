"""Sums over a few points, such as the taps of an interpolation: written out, so that one loop computes the value of a row.

As a loop over its points such a sum would keep its partial results in a row of their own, and pass over that once a point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import eq, ge, gt, le, lt, ne

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import is_floating
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    children,
    has_reduction,
    reads,
    rewrite,
    size,
    with_children,
)
from opc.ir.op import Assign, Op
from opc.lower.guards import is_zero
from opc.lower.heuristics import runs_often
from opc.lower.nests.gather_indices import indices_of, is_looked_up
from opc.lower.nests.tables import row_nest
from opc.records import replace
from opc.transform.indices import substitute

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}

_MOST_TERMS = 4
"""Of more points a loop costs less than the text of each."""

_MOST_GATHERED = 16
"""The places of so many points, as the pixels of a bicubic sample, are found once for all rows that share them, where an op
runs often."""

_MOST_NODES = 200
"""Of these in such a sum: what finds places by arithmetic of its own is too long to be written out so often."""


def with_short_sums(op: Op) -> Op:
    """Return the op with the short sums of its loop nests over rows as terms that are added."""
    return replace(op, body=tuple(written_out(op, s) for s in op.body))


def written_out(op: Op, s: Assign) -> Assign:
    """Return a statement with its short sums as terms that are added, if it is a loop nest over rows."""
    if not row_nest(op, s):
        return s
    gathered = _MOST_GATHERED if runs_often(op) else _MOST_TERMS
    written = _written_out(s.value, lambda r: is_looked_up(op, r, str(s.indices[-1])), gathered)
    return replace(s, value=rewrite(written, _chosen))


def _written_out(e: Expr, looked_up: Callable[[Read], bool], gathered: int) -> Expr:
    if not isinstance(e, Reduce):
        return with_children(e, tuple(_written_out(c, looked_up, gathered) for c in children(e)))
    if e.kind != "sum" or not is_floating(e.type) or has_reduction(e.body):
        return e
    computed = [r for r in reads(e.body) if any(not isinstance(i, Affine) for i in r.indices)]
    if not all(looked_up(r) for r in computed):
        return e  # what finds a place had better be computed once
    points = _points(e.axes, gathered if computed else _MOST_TERMS)
    if points is not None and (len(points) <= _MOST_TERMS or len(points) * size(e.body) <= _MOST_NODES):
        zero: Expr = Const(0, e.type, e.span)
        return reduce(lambda total, term: _added(e, total, term), _terms(e, points), zero)
    moving = {n for r in computed for i in r.indices if not isinstance(i, Affine) for n in indices_of(i)}
    short = [a for a in e.axes if isinstance(a, Axis) and a.index in moving]
    points = _points(short)
    if points is None:
        return e
    # Places that don't change with the axes that are left are found ahead of them.
    terms = _terms(e, points) or [Const(0, e.type, e.span)]
    body = reduce(lambda total, term: _added(e, total, term), terms)
    return replace(e, axes=tuple(a for a in e.axes if a not in short), body=body)


def _added(e: Reduce, total: Expr, term: Expr) -> Expr:
    return Call("add", (total, term), e.type, e.span)


def _points(axes: Sequence[ReduceAxis], most: int = _MOST_TERMS) -> list[dict[str, Affine]] | None:
    """Return the points of axes in order, where there are at most so many."""
    extents: dict[str, int] = {}
    for a in axes:
        if not isinstance(a, Axis) or a.extent.constant is None:
            return None
        extents[a.index] = a.extent.constant
    points = [dict(zip(extents, map(Affine.of, p), strict=True)) for p in product(*map(range, extents.values()))]
    return points if 1 < len(points) <= most else None


def _terms(e: Reduce, points: Sequence[dict[str, Affine]]) -> list[Expr]:
    """Return the terms of a sum at its points without those that are 0: a sum that starts with 0 is never -0."""
    found = (_term(e, p) for p in points)
    return [t for t in found if not is_zero(t.arg if isinstance(t, Cast) else t)]


def _term(e: Reduce, point: dict[str, Affine]) -> Expr:
    term = rewrite(substitute(e.body, point), _chosen)
    return term if term.type == e.type else Cast(term, e.type, e.span)


def _chosen(e: Expr) -> Expr:
    """Return the side of a choice between numbers."""
    decided = _decided(e.cond) if isinstance(e, Select) else None
    if not isinstance(e, Select) or decided is None:
        return e
    side = e.then if decided else e.other
    return side if side.type == e.type else Cast(side, e.type, e.span)


def _decided(e: Expr) -> bool | None:
    """Return whether a condition on numbers holds, None where it is on more than these."""
    match e:
        case Call(fn="and" | "or"):
            found = [_decided(c) for c in e.args]
            ends = e.fn == "or"
            if ends in found:
                return ends
            return None if None in found else not ends
        case Call(fn="not", args=(c,)):
            inner = _decided(c)
            return None if inner is None else not inner
        case Call() if e.fn in _COMPARISONS:
            a, b = (x.constant if x is not None else None for x in map(affine_of, e.args))
            return None if a is None or b is None else _COMPARISONS[e.fn](a, b)
    return None
