"""Scatters whose places are searched for, on a device: what each term names is found once, in memory between kernels.

On a CPU the search stands in the scatter, which runs it as it goes. On a device it is a statement of its own, which a thread or a
team runs once a term. Where places are sought in windows, each element of the target then adds up the terms of the windows that
hold it and that name it; elsewhere terms are sorted by what they name, as those of other scatters are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType
from opc.ir.expr import SEARCHES, Axis, Call, Cast, Const, Expr, Read, Reduce, Select, free_indices, may_refuse, reads, rewrite
from opc.ir.op import Assign, Op, Operand
from opc.lower.guards import Guard
from opc.lower.nest_plans import ScatterPlan
from opc.lower.nests.flat import is_positive
from opc.lower.nests.scatter import scatter_plan
from opc.lower.nests.search import searches
from opc.records import dataclass, replace
from opc.transform.indices import Namer, bare, index_names, op_names
from opc.transform.scalar import ZERO, conditioned, conjunction, index_value, raw, still


def with_places_in_memory(op: Op, alone: frozenset[str]) -> Op:
    """Return an op whose scatters among the statements `alone` read what their terms name from temporaries, where they search."""
    namer = Namer(op_names(op) | index_names(op))
    body: list[Assign] = []
    temporaries: list[Operand] = []
    for s in op.body:
        plan = scatter_plan(op, s) if s.target in alone else None
        if plan is None or not _is_sought(s, plan):
            body.append(s)
            continue
        places = _Places(op, s, plan, namer)
        body += [*places.statements, places.scatter]
        temporaries += places.temporaries
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *temporaries)) if temporaries else op


def _is_sought(s: Assign, plan: ScatterPlan) -> bool:
    """Whether a scatter searches for places, each at a point of axes that don't depend on one another."""
    positions = tuple(p for _, p in plan.scatter_indices)
    if not searches(positions) or any(r.checked for p in positions for r in reads(p)):
        return False
    plain = all(isinstance(a, Axis) and not a.extent.indices() for a in plan.reduction.axes)
    return plain and plan.statement.indices == s.indices


@dataclass(frozen=True, slots=True)
class _Span:
    """A position as a part that is affine in indices, and a part that data decide between two bounds."""

    origin: Affine
    low: Affine
    high: Affine


class _Places:
    """What takes the place of a scatter: the statements that find places, and the sum that reads them."""

    def __init__(self, op: Op, s: Assign, plan: ScatterPlan, namer: Namer) -> None:
        self.op, self.source, self.plan, self.namer = op, s, plan, namer
        self.statements: list[Assign] = []
        self.temporaries: list[Operand] = []
        flat = plan.statement
        self.extents = dict(zip(flat.indices, flat.extents, strict=True))
        self.extents |= plan.reduction.extents
        ranges = self._windows()
        value = self._sorted() if ranges is None else self._in_windows(ranges)
        self.scatter = replace(s, value=value)

    def _stored(self, value: Expr, word: str) -> Read:
        """Return the read of a temporary that holds a value at every point of the indices it depends on."""
        used = free_indices(value)
        indices = tuple(i for i in self.extents if i in used)
        name = self.namer.fresh(f"{self.source.target}_{word}")
        self.temporaries.append(Operand(name, DType.INT64, tuple(self.extents[i] for i in indices)))
        self.statements.append(Assign(name, indices, value, self.source.span))
        return Read(name, bare(indices), DType.INT64, span=self.source.span)

    def _sorted(self) -> Expr:
        """Return the sum whose terms name places that they read."""
        found = {e: self._stored(self._where_asked(e), "found") for e in searches(p for _, p in self.plan.scatter_indices)}
        return rewrite(self.source.value, lambda e: found.get(e, e) if isinstance(e, Reduce) else e)

    def _where_asked(self, e: Reduce) -> Expr:
        """Return a search of terms that may be none as one that is made where the scatter asks for it, else 0."""
        if not may_refuse(e):
            return e
        own = self.extents.keys() - set(self.plan.statement.indices)
        asked = [[c for c in given if free_indices(c) <= own] for given in _given(self.source.value, e)]
        if not all(asked):
            return e
        return Select(reduce(lambda a, b: raw("or", a, b), map(_all, asked)), e, ZERO, DType.INT64)

    def _in_windows(self, ranges: tuple[Affine, ...]) -> Expr:
        """Return the sum over the terms whose windows hold an element, of those that name it."""
        plan = self.plan
        place: Expr = ZERO
        own, inside = Affine.of(0), list[Expr]()
        for index, position in plan.scatter_indices:
            extent = index_value(self.extents[index])
            place = position if place is ZERO else raw("add", raw("mul", place, extent), position)
            own = own * self.extents[index] + Index(index)
            inside += [raw("ge", position, ZERO), raw("lt", position, extent)]
        nowhere = Const(-1, DType.INT64)
        read = self._stored(Select(_all(inside), place, nowhere, DType.INT64), "place")
        tests = [*map(_holds, ranges), raw("eq", read, index_value(own)), *map(_holds, plan.guards)]
        term = Select(_all(tests), plan.body, Const(0, plan.body.type), plan.body.type)
        return rewrite(self.source.value, lambda e: replace(plan.reduction, body=term) if e == plan.reduction else e)

    def _windows(self) -> tuple[Affine, ...] | None:
        """Return what is not negative where a term may name an element, None where that leaves all terms along some axis."""
        plan = self.plan
        if any(not isinstance(g, Affine) and may_refuse(g) for g in plan.guards):
            return None
        axes = set(plan.reduction.extents)
        found: list[Affine] = []
        for index, position in plan.scatter_indices:
            span = self._span(position)
            if span is None or position.type is not DType.INT64:
                return None
            step = next((a for a in sorted(axes) if a in span.origin.indices() and span.origin.coefficient(a) is not None), None)
            axes -= {step}
            rest = Affine.of(Index(index)) - span.origin
            found += [rest - span.low, span.high - rest]
        return None if axes else tuple(found)

    def _span(self, e: Expr) -> _Span | None:
        """Return a position as a part that is affine and one that is searched for in windows; None for any other."""
        nothing = Affine.of(0)
        if (affine := affine_of(e)) is not None:
            return _Span(affine, nothing, nothing)
        match e:
            case Reduce(axes=(Axis(extent=extent),)) if e.kind in SEARCHES:
                return _Span(nothing, nothing, extent - 1)
            case Call(fn="floordiv" | "mod", args=(Reduce(axes=(Axis(extent=first), Axis(extent=last))) as search, by)):
                if search.kind not in SEARCHES or affine_of(by) != last:
                    return None
                return _Span(nothing, nothing, (first if e.fn == "floordiv" else last) - 1)
            case Call(fn="mul", args=(a, b)):
                factor, other = (affine_of(a), b) if affine_of(b) is None else (affine_of(b), a)
                span = self._span(other)
                if factor is None or span is None or not is_positive(self.op, factor):
                    return None
                return _Span(span.origin * factor, span.low * factor, span.high * factor)
            case Call(fn="add" | "sub", args=(a, b)):
                one, two = self._span(a), self._span(b)
                if one is None or two is None:
                    return None
                if e.fn == "add":
                    return _Span(one.origin + two.origin, one.low + two.low, one.high + two.high)
                return _Span(one.origin - two.origin, one.low - two.high, one.high - two.low)
            case Cast(arg=arg) if e.type is DType.INT64:
                return self._span(arg)
            case _:
                return None


def _given(e: Expr, wanted: Expr, given: tuple[Expr, ...] = ()) -> Iterator[tuple[Expr, ...]]:
    """Yield the conditions under which each occurrence of an expression in another one is asked for."""
    if e == wanted:
        yield given
        return
    for part, conditions in conditioned(e):
        yield from _given(part, wanted, (*still(given, e), *conditions))


def _holds(g: Guard) -> Expr:
    return raw("ge", index_value(g), ZERO) if isinstance(g, Affine) else g


def _all(conditions: list[Expr]) -> Expr:
    return reduce(conjunction, conditions)
