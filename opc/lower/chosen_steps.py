"""Sums of the steps that name a step: each goes through those that name it, not through all.

The gradient of `h[t] = ... h[p[t]] ...`, and a sum over the children of a node of a tree, is a recurrence with a sum like
`sum[i:N](d[i] if t < i and t == p[i] else 0)`. No scatter runs step by step. But which i have t as their p[i] is known ahead of
the steps: with the i in the order of p, they are a run, which begins behind those of which p is less.

    order[q] = argsort[i](p[i])[q]
    count[t] = sum[i](1 if p[i] == t else 0)
    first[t] = sum[i](1 if p[i] < 0 else 0) + sum[m:t](count[m])
    sum[q:N](d[order[q]] if first[t] <= q and q < first[t] + count[t] and t < order[q] else 0)
"""

from __future__ import annotations

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    Select,
    free_groups,
    free_indices,
    has_reduction,
    may_refuse,
    operands_read,
    reads,
    rewrite,
)
from opc.ir.op import Assign, Op, Operand
from opc.ir.ordering import ahead, position_of
from opc.ir.recurrence import NotSteppingError, Recurrence, recurrences, recurrent
from opc.lower.nests.scatter import equalities, place
from opc.lower.nests.terms import conditions_of
from opc.records import replace
from opc.transform.domain import Domain
from opc.transform.indices import INDEX_NAMES, Namer, index_names, op_names

FEW = 16
"""The number of steps that are looked at one by one in no more time than it takes to put them in order."""


def with_chosen_steps(op: Op) -> Op:
    """Return the op with such sums in its recurrences over the steps in the order of those that they name."""
    # Mostly another condition tells the order of the steps; else the one that names them, with others, may.
    for whole in (False, True):
        found = _with_chosen_steps(op, whole)
        try:
            recurrences(found)
        except NotSteppingError:
            continue
        return found
    return op


def _with_chosen_steps(op: Op, whole: bool) -> Op:
    stepping = {name: r for r in recurrences(op) for name in r.targets}
    found = _Ahead(op, whole)
    body: list[Assign] = []
    starts: dict[Recurrence, int] = {}
    for s in op.body:
        recurrence = stepping.get(s.target)
        if recurrence is None or not has_reduction(s.value):
            body.append(s)
            continue
        # What is computed ahead of the steps stands ahead of all that step together.
        first = (
            min(n for n, other in enumerate(body) if other.target in recurrence.targets) if recurrence in starts else len(body)
        )
        starts[recurrence] = first
        body.append(found.with_runs(s, recurrence, {other.target for other in body[:first]}))
        body[first:first] = found.statements
        found.statements.clear()
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *found.temporaries)) if found.temporaries else op


class _Ahead:
    """What is computed ahead of the steps."""

    def __init__(self, op: Op, whole: bool) -> None:
        self.op = op
        self.whole = whole
        self.stepping = recurrent(op)
        self.namer = Namer(op_names(op) | index_names(op))
        self.statements: list[Assign] = []
        self.temporaries: list[Operand] = []
        self.ready: set[str] = set()
        self.known: dict[object, tuple[Read, Read, Read]] = {}

    def with_runs(self, s: Assign, recurrence: Recurrence, ready: set[str]) -> Assign:
        """Return a statement of a recurrence with its sums over such steps as sums over runs; `ready` stand ahead of it."""
        self.ready = {*ready, *(o.name for o in self.op.inputs if not o.optional)}
        t = recurrence.index_of(s)
        sizes = {a.index: a.extent for a in Domain.of(s, self.op.operand(s.target)).axes}

        def rule(e: Expr) -> Expr:
            return self._over_run(e, t, sizes) if isinstance(e, Reduce) and e.kind == "sum" else e

        return replace(s, value=rewrite(s.value, rule))

    def _over_run(self, e: Reduce, t: str, sizes: dict[str, Affine]) -> Expr:
        conditions, body = conditions_of(e.body)
        for n, c in enumerate(conditions):
            if may_refuse(c):
                return e  # asked for all steps
            position = next((p for i, p in equalities(c) if i == t), None)
            axis = None if position is None else self._named_by(position, e, sizes.keys() - {t})
            if position is None or axis is None:
                continue
            q = self.namer.fresh(*INDEX_NAMES)
            kept = (*conditions[:n], *conditions[n if self.whole else n + 1 :], body)
            if any(place(x, axis.index, position) is None for x in kept) or not self._is_inside(position, axis, sizes):
                continue
            order, first, count = self._places(position, axis, q, t, sizes)
            moved = [x for x in (place(x, axis.index, order) for x in kept) if x is not None]
            here = IndexValue(Affine.of(Index(q)))
            behind = Call("lt", (here, Call("add", (first, count), DType.INT64)), DType.BOOL)
            *more, term = moved
            # It is so, but no statement of the steps says where an order comes from.
            inside = Call("le", (Const(0, Weak.INT), order), DType.BOOL), Call("lt", (order, IndexValue(axis.extent)), DType.BOOL)
            run = conjunction([Call("le", (first, here), DType.BOOL), behind, *inside, *more])
            axes = tuple(Axis(q, axis.extent) if a is axis else a for a in e.axes)
            return replace(e, axes=axes, body=Select(run, term, Const(0, body.type), body.type))
        return e

    def _named_by(self, position: Expr, e: Reduce, around: set[str]) -> Axis | None:
        """Return the axis of a sum whose steps name another one, where that is known ahead of all steps."""
        own = [a for a in e.axes if isinstance(a, Axis) and a.index in free_indices(position)]
        others = {a.index for a in e.axes if isinstance(a, Axis)} - {a.index for a in own}
        if len(own) != 1 or not free_indices(position) - {own[0].index} <= around - others:
            return None
        extent = own[0].extent
        few = extent.constant is not None and extent.constant <= FEW
        if few or extent.indices() or free_groups(position) or may_refuse(position) or has_reduction(position):
            return None
        read = operands_read(position)
        return own[0] if read and read <= self.ready and not read & self.stepping else None

    def _is_inside(self, position: Expr, axis: Axis, sizes: dict[str, Affine]) -> bool:
        """Whether what a position reads is inside for all steps, whatever conditions say."""
        ranges = {**sizes, axis.index: axis.extent}
        return not any(ReadsInside(self.op).axes_outside(r, ranges, ()) for r in reads(position))

    def _places(self, position: Expr, axis: Axis, q: str, t: str, sizes: dict[str, Affine]) -> tuple[Read, Read, Read]:
        """Return reads of the step at place `q` of the order, of where those begin that name step `t`, and of their number."""
        batch = [i for i in sizes if i in free_indices(position)]
        around = tuple(Affine.of(Index(i)) for i in batch)
        dims = tuple(sizes[i] for i in batch)
        i, k, j = axis.index, self.namer.fresh(*INDEX_NAMES), self.namer.fresh(*INDEX_NAMES)
        one, nothing = Const(1, DType.INT64), Const(0, DType.INT64)

        def named(at: str) -> Affine:
            return Affine.of(Index(at))

        def stored(name: str, indices: tuple[str, ...], extents: tuple[Affine, ...], value: Expr) -> str:
            new = self.namer.fresh(f"{t}_{name}")
            self.temporaries.append(Operand(new, DType.INT64, (*dims, *extents)))
            self.statements.append(Assign(new, (*batch, *indices), value, position.span))
            return new

        def read(name: str, at: str | None = None) -> Read:
            return Read(name, (*around, *([named(at)] if at is not None else [])), DType.INT64, span=position.span)

        key = (axis, position, t, tuple(batch))
        if key not in self.known:
            whole = position if position.type is DType.INT64 else Cast(position, DType.INT64)
            names = read(stored("named", (i,), (axis.extent,), whole), i)

            def amount(fn: str, other: Expr) -> Expr:
                counted = Select(Call(fn, (names, other), DType.BOOL), one, nothing, DType.INT64)
                return Reduce("sum", (axis,), counted, DType.INT64)

            keyed = read(names.operand, k)
            places = Axis(k, axis.extent), Axis(j, axis.extent)
            rank = position_of(IndexValue(named(q)), ahead(keyed, k, j, False), *places, position.span)
            order = stored("order", (q,), (axis.extent,), rank)
            count = stored("count", (t,), (sizes[t],), amount("eq", IndexValue(named(t))))
            below = stored("below", (), (), amount("lt", Const(0, Weak.INT)))
            fewer = Reduce("sum", (Axis(k, named(t)),), read(count, k), DType.INT64)
            sums = stored("sum", (t,), (sizes[t],), fewer)
            first = stored("first", (t,), (sizes[t],), Call("add", (read(below), read(sums, t)), DType.INT64))
            self.known[key] = read(order, q), read(first, t), read(count, t)
        ordered, begins, number = self.known[key]
        return replace(ordered, indices=(*ordered.indices[:-1], named(q))), begins, number
