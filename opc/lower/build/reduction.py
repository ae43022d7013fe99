"""Reductions: the loops of each, into an array of accumulators along the vector axis or into one value."""

from __future__ import annotations

from collections.abc import Callable

from opc.analysis.runs import Bound, bound_on
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, ValueType, Weak, is_floating
from opc.ir.expr import (
    SEARCHES,
    Axis,
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    children,
    free_indices,
    has_reduction,
    map_affine,
    may_refuse,
    reads,
    walk,
    with_children,
)
from opc.ir.identity import IDENTITY
from opc.loops.nodes import (
    Accumulate,
    Alias,
    Body,
    Buffer,
    CallWithBody,
    Do,
    How,
    If,
    Let,
    Loop,
    Refuse,
    Search,
    Statement,
    Store,
    Var,
    While,
)
from opc.loops.values import Construct, Local, Named, Product, Static, Sum, Word, call, compare, number, product_of, ref, variable
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, LoopContext, UnsupportedForm, Variable, VectorRange
from opc.lower.build.progression import progression
from opc.lower.build.split import Sweep, as_condition, clip, clip_by_data, condition, excluded, is_solvable, narrow, split
from opc.lower.build.windowed import lie, reduce_row, runs_along, windows_of_row
from opc.lower.guards import Guard, guard_indices, guards, peel
from opc.lower.nests.flat import best_axis
from opc.records import replace

OPERATORS = ("sum", "prod", "any", "all")
"""The reductions that an operator of C++ carries out; others compare."""

_START: dict[str, int | bool] = {"sum": 0, "prod": 1, "any": False, "all": True}


def start_of(kind: str, of: ValueType) -> Expr:
    """Return what a reduction of a kind starts from."""
    if kind in _START:
        return Const(_START[kind], of)
    return Static(Named("opc::limits", (of,)), "lowest" if kind == "max" else "highest", of)


def reductions(known: LoopContext, over: VectorRange, e: Expr) -> tuple[Body, Expr]:
    """Return the loops of the reductions in a value, and the value with reads of their results."""
    found = _Reductions(known, over)
    body, rest = found.extract(e, ())
    # Results are declared ahead, whatever branch they are computed in.
    return (*found.declarations, *body), rest


class _Reductions:
    def __init__(self, known: LoopContext, over: VectorRange) -> None:
        self.known, self.over = known, over
        self.declarations: list[Statement] = []

    def extract(self, e: Expr, under: tuple[Guard, ...]) -> tuple[Body, Expr]:
        """Return the loops of the reductions in a part; `under` are the conditions on the vector axis under which it counts."""
        if not has_reduction(e):
            return (), e
        match e:
            case Reduce():
                return self._reduce(e, under)
            case Select():
                return self._choice(e, under)
            case Call(fn="and" | "or", args=(first, second)) if has_reduction(second):
                if has_reduction(first):
                    raise UnsupportedForm("a reduction behind another in a condition")
                body, right = self._side(second, first if e.fn == "and" else Call("not", (first,), DType.BOOL), under)
                return body, replace(e, args=(first, right))
            case _:
                parts = [self.extract(c, under) for c in children(e)]
                return tuple(s for body, _ in parts for s in body), with_children(e, tuple(rest for _, rest in parts))

    def _choice(self, e: Select, under: tuple[Guard, ...]) -> tuple[Body, Expr]:
        if has_reduction(e.cond) and (has_reduction(e.then) or has_reduction(e.other)):
            raise UnsupportedForm("a choice by a reduction of reductions")
        body, cond = self.extract(e.cond, under)
        then_body, then = self._side(e.then, e.cond, under)
        other_body, other = self._side(e.other, Call("not", (e.cond,), DType.BOOL), under)
        return (*body, *then_body, *other_body), replace(e, cond=cond, then=then, other=other)

    def _side(self, e: Expr, cond: Expr, under: tuple[Guard, ...]) -> tuple[Body, Expr]:
        """Extract what counts only where a condition holds: in a branch, or with the condition as a guard of each reduction."""
        if not has_reduction(e):
            return (), e
        found = guards(cond, self.known.positive)
        if self.over.vector_axis and self.over.vector_axis in free_indices(cond):
            return self.extract(e, (*under, *found))
        body, rest = self.extract(e, under)
        return (If(condition(self.known, found), body),), rest

    def _reduce(self, e: Reduce, under: tuple[Guard, ...]) -> tuple[Body, Expr]:
        """Return the loops of one reduction, and a read of its result."""
        nested = has_reduction(e.body)
        if nested and (under or e.kind not in OPERATORS):
            raise UnsupportedForm(
                f"a {e.kind} of reductions that counts only at some lanes" if under else f"a {e.kind} of reductions"
            )
        if under and e.kind not in OPERATORS:
            raise UnsupportedForm(f"a {e.kind} that counts only at some lanes")
        vector_axis = self.over.vector_axis
        row = bool(vector_axis) and (vector_axis in free_indices(e) or any(vector_axis in guard_indices(g) for g in under))
        one = (LoopsAroundReductions if nested else ReductionLoops)(self.known, self.over, e, under, row)
        self.declarations += one.declarations
        body = one.loops()
        return body, self.known.local(one.variable, vector_axis)


class ReductionLoops:
    """The loops of one reduction.

    `results` are the variables that get what it finds: one, or of a search `by_axis`, the position along each axis.
    """

    def __init__(
        self, known: LoopContext, over: VectorRange, e: Reduce, under: tuple[Guard, ...], row: bool, by_axis: bool = False
    ) -> None:
        self.known, self.nest, self.over, self.e, self.row = known, known.nest, over, e, row
        self.axes = [a for a in e.axes if isinstance(a, Axis)]
        self.search = e.kind in SEARCHES
        # What a search ignores is what the greatest or least value ignores: it is better than nothing before it.
        self.kind = e.kind.removeprefix("arg")
        self.of = e.body.type if self.search else e.type
        self.result = self.nest.fresh_result(e.kind)
        self.best = self.nest.fresh("best") if self.search else ""
        self.positions: tuple[str, ...] = ()
        self.results = tuple(self.nest.fresh(f"{self.result}_{a.index}") for a in self.axes) if by_axis else (self.result,)
        for a in self.axes:
            known.bound(a.index, a.extent)
        self.under = under
        found, body = peel(self.kind, e.body, self.nest.sizes, known.bounded, known.positive)
        self.guards, self.body = [*under, *found], body
        self.vector_axis = self._lane()
        self.products = (
            not row
            and _adds_products(known, e, self.body, self.vector_axis)
            and self.nest.decisions.take("products", self.vector_axis)
        )

    @property
    def declarations(self) -> list[Statement]:
        """The declarations of the results."""
        if self.row:
            return [Buffer(name, self.e.type, "opc::nest_columns") for name in self.results]
        if self.products:
            return [Var(self.result, Named("opc::product_sum", (self.of,)), Word("{}"))]
        start = number(0) if self.search else start_of(self.kind, self.of)
        return [Var(name, self.e.type, start) for name in self.results]

    @property
    def variable(self) -> Variable:
        """The result as a variable that expressions read."""
        return Variable(self.result, self.e.type, self.row, "total()" if self.products else "")

    def _lane(self) -> str:
        """Return the index the innermost loop runs over: the vector axis, or one of the reduction's own."""
        if self.row:
            return self.over.vector_axis
        own = best_axis(self.nest.op, self.e)
        if own is None:
            raise UnsupportedForm("a reduction whose axes depend on one another")
        self.axes.remove(own)
        self.axes.append(own)
        return own.index

    @property
    def refusal(self) -> Body:
        """What refuses a maximum or minimum of nothing."""
        return self._refuse_nothing() if self.kind in ("max", "min") else ()

    def loops(self) -> Body:
        """Return the loops."""
        if self.search:
            return (*self.refusal, *self._search())
        if not self.row:
            return (*self.refusal, *self._all_loops())
        plain = (*self._start_row(), *self._all_loops())
        windows = windows_of_row(self.known, self.over, self.e, self.under)
        if windows is None or not self.nest.decisions.take("tile", *(a.index for a in self.axes)):
            return (*self.refusal, *plain)
        described, reduced = reduce_row(self.known, windows, self.result, self.over.high)
        return (*self.refusal, *described, If(Call("not", (reduced,), DType.BOOL), plain))

    def _start_row(self) -> Body:
        if not self.row:
            return ()
        return (Do(call("fill", ref(self.result), self.over.high, Construct(self.e.type, start_of(self.kind, self.of)))),)

    def _all_loops(self) -> Body:
        early = self._due(set())
        return self._within(early, lambda: self._loops(self.axes))

    def _search(self) -> Body:
        """Return the loops of a search. Positions are as wide as the values while that holds them, so that both fill a vector."""
        extents = [IndexValue(a.extent) for a in self.e.axes if isinstance(a, Axis)]
        if self.row:
            self.positions = tuple(self.nest.fresh(f"{name}_here") for name in self.results)
        start = Construct(self.of, start_of(self.kind, self.of))
        position = Named("position")
        body: list[Statement] = []
        if not self.row:
            body += [Var(self.best, self.of, start), *self._all_loops()]
        else:
            high = self.over.high
            body += [Buffer(self.best, self.of, "opc::nest_columns"), Do(call("fill", ref(self.best), high, start))]
            for name in self.positions:
                body += [Buffer(name, position, "opc::nest_columns"), Do(call("fill", ref(name), high, Word("zero")))]
            body += self._all_loops()
            for name, here in zip(self.results, self.positions, strict=True):
                body.append(Do(call("widen_row", ref(name), ref(here), high)))
        return (with_positions(self.of, Product(tuple(extents)) if len(extents) > 1 else extents[0], tuple(body)),)

    def _within(self, found: list[Guard], inner: Callable[[], Body]) -> Body:
        if not found:
            return inner()
        cond = condition(self.known, tuple(found))
        return (If(cond, inner()),)

    def _due(self, open_axes: set[str]) -> list[Guard]:
        """Take the guards that can be tested once these axes are known."""
        own = {a.index for a in self.axes}
        due = [
            g
            for g in self.guards
            if (guard_indices(g) & own) <= open_axes
            and self.vector_axis not in guard_indices(g)
            and is_solvable(self.known, g, self.vector_axis)
        ]
        self.guards = [g for g in self.guards if not any(g is d for d in due)]
        return due

    def _said(self, index: str, open_axes: frozenset[str]) -> tuple[Bound, ...]:
        """Take the guards that say by data where a loop over an index begins or ends, within loops over `open_axes`."""
        own = {a.index for a in self.axes}
        left: list[Guard] = []
        bounds: list[Bound] = []
        for g in self.guards:
            bound = bound_on(g, index) if self._is_ready(g, own - open_axes - {index}, index) else None
            if bound is None or not self.known.finds(bound.value):
                left.append(g)
            else:
                bounds.append(bound)
        self.guards = left
        return tuple(bounds)

    def _is_ready(self, g: Guard, later: frozenset[str] | set[str], index: str) -> bool:
        """Whether a guard names none of the axes that come later, nor a lane that is not the index asked for."""
        lanes = {self.vector_axis} - {index}
        return not isinstance(g, Affine) and not guard_indices(g) & (later | lanes)

    def _loops(self, axes: list[Axis], opened: frozenset[str] = frozenset()) -> Body:
        """Return the loops over `axes` and what stands inside of them; those over `opened` stand around."""
        if not axes:
            return self._innermost(self.over)
        axis, rest = axes[0], axes[1:]
        extent = self._extent(axis)
        if axis.index == self.vector_axis:
            if self._runs_along_rows(axis):
                return self._in_pieces(axis, extent)
            return self._innermost(VectorRange(axis.index, number(0), extent))
        said = self._said(axis.index, opened)
        opened |= {axis.index}
        due = self._due(set(opened))
        ranges = [g for g in due if isinstance(g, Affine) and g.coefficient(axis.index) is not None]
        bounds, low, high = self._bounds(axis, extent)
        if ranges or said:
            first, end = low, high
            names = self.nest.fresh("low"), self.nest.fresh("high")
            low, high = variable(names[0]), variable(names[1])
            bounds = (
                *bounds,
                Var(names[0], Weak.INT, first),
                Var(names[1], Weak.INT, call("greatest", first, end)),
                *(clip(self.known, g, axis.index, (ref(names[0]), ref(names[1]))) for g in ranges),
                *clip_by_data(self.known, said, (ref(names[0]), ref(names[1]))),
            )
        others = [g for g in due if not any(g is r for r in ranges)]
        step: Expr | None = None
        found = next((p for g in others if (p := progression(g, axis.index, low, self.known.positive)) is not None), None)
        if found is not None:
            others = [g for g in others if g is not found.guard]
            low, step = found.first, found.step
        inner = self._within(others, lambda: self._loops(rest, opened))
        return (*bounds, Loop(How.SERIAL, axis.index, low, high, inner, step=step))

    def _bounds(self, axis: Axis, extent: Expr) -> tuple[Body, Expr, Expr]:
        """Return the bounds of the loop over an axis, and what computes them."""
        return (), number(0), extent

    def _runs_along_rows(self, axis: Axis) -> bool:
        """Whether the innermost loop reads rows at computed places, and no condition would cut it."""
        accesses = Accesses(self.known, VectorRange(axis.index, number(0), number(0)))
        simple = self.kind in OPERATORS and not self.search and not self.products and not self.guards
        free = not any(isinstance(e, Select) or (isinstance(e, Read) and e.pad is not None) for e in walk(self.body))
        return simple and free and any(r.operand in self.nest.gathered and accesses.is_row(r) for r in reads(self.body))

    def _in_pieces(self, axis: Axis, extent: Expr) -> Body:
        """Return the innermost loop in pieces, each of no more points than a row is looked up for."""
        known = self.known
        start, own = self.nest.fresh("start"), self.nest.fresh("lane")
        position = Affine.of(Index(start)) + Index(own)
        known.bounded[position] = axis.extent
        self.body = map_affine(self.body, lambda a: a.at(axis.index, position))
        outer, known.row_axis = known.row_axis, own
        high = self.nest.fresh("lanes")
        rest = call("least", Call("sub", (extent, variable(start)), Weak.INT), Word("opc::nest_columns"))
        inner = self._innermost(VectorRange(own, number(0), variable(high)))
        known.row_axis = outer
        body: Body = (Let(high, Weak.INT, rest), *inner)
        return (Loop(How.SERIAL, start, number(0), extent, body, step=Word("opc::nest_columns")),)

    def _extent(self, axis: Axis) -> Expr:
        """Return the end of a loop; one that depends on the vector axis is the greatest of all lanes, and a guard holds for
        each."""
        vector_axis = self.over.vector_axis
        if not vector_axis or vector_axis not in axis.extent.indices():
            return IndexValue(axis.extent)
        coefficient = axis.extent.coefficient(vector_axis)
        if coefficient is None or self.e.kind not in OPERATORS:
            raise UnsupportedForm(f"the extent of {axis.index}")
        self.guards.append(axis.extent - Affine.of(Index(axis.index)) - 1)
        rest, step = IndexValue(axis.extent - coefficient * Affine.of(Index(vector_axis))), IndexValue(coefficient)
        last = Call("sub", (self.over.high, number(1)), Weak.INT)
        return call("greatest", *(Sum((rest, product_of(end, step))) for end in (self.over.low, last)))

    def _innermost(self, over: VectorRange) -> Body:
        """Return the loop over the vector axis."""
        said = self._said(over.vector_axis, frozenset(a.index for a in self.axes)) if over.vector_axis else ()
        ranges = [g for g in self.guards if isinstance(g, Affine) and g.coefficient(over.vector_axis) is not None]
        others = [g for g in self.guards if not any(g is r for r in ranges)]
        body = self.body
        before: list[Statement] = []
        peeled: dict[int, str] = {}
        for g in others:
            found = excluded(self.known, g, over.vector_axis)
            if found is not None:
                before += found[0]
                peeled[id(g)] = found[1]
        for g in reversed([g for g in others if id(g) not in peeled]):
            body = Select(as_condition(g), body, Const(IDENTITY[self.kind], body.type), body.type)
        self.guards = []
        if ranges or said:
            low, high = self.nest.fresh("low"), self.nest.fresh("high")
            whole = VectorRange(over.vector_axis, over.low, call("greatest", over.low, over.high))
            before += narrow(self.known, tuple(ranges), whole, low, high)
            before += clip_by_data(self.known, said, (ref(low), ref(high)))
            over = VectorRange(over.vector_axis, variable(low), variable(high))
        return (*before, *self._between(list(peeled.values()), body, over))

    def _between(self, peeled: list[str], body: Expr, over: VectorRange) -> Body:
        """Return the loops over a range without some of its lanes: from one to the next, so that nothing is tested inside."""
        if not peeled:
            return split(self.known, self.sweep(body, over))
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        following = call("next_of", variable(low), over.high, *map(variable, peeled))
        pieces: Body = (
            Let(high, Weak.INT, following),
            *split(self.known, self.sweep(body, VectorRange(over.vector_axis, variable(low), variable(high)))),
            Store(Local(low, Weak.INT), IndexValue(Affine.of(Index(high)) + 1)),
        )
        return Var(low, Weak.INT, over.low), While(compare("lt", variable(low), over.high), pieces)

    def sweep(self, body: Expr, over: VectorRange) -> Sweep:
        """Return the loop that takes in a value at each point of a range of the vector axis."""
        at = variable(over.vector_axis) if self.row else None
        if self.search:
            best = Local(self.best, self.of, at)
            positions = tuple(Local(p, Weak.INT, at) for p in (self.positions if self.row else self.results))
            return Sweep(How.VECTOR, over, Search(self.kind, best, positions, tuple(self.numbers()), body))
        take = Accumulate(Local(self.result, self.e.type, at), self.kind, body, "products" if self.products else "")
        return Sweep(How.VECTOR, over, take)

    def _refuse_nothing(self) -> Body:
        """Return the report of a maximum over nothing."""
        for a in self.axes:
            if self.over.vector_axis and self.over.vector_axis in a.extent.indices():
                raise UnsupportedForm(f"the extent of {a.index}")
            if a.extent.indices() & {b.index for b in self.axes}:
                raise UnsupportedForm(f"the extent of {a.index}")
        empty = [compare("le", IndexValue(a.extent), number(0)) for a in self.axes if not self.known.positive(a.extent)]
        over = ", ".join(a.index if isinstance(a, Axis) else str(a) for a in self._source_axes())
        if not empty:
            return ()
        cond = empty[0]
        for c in empty[1:]:
            cond = Call("or", (cond, c), DType.BOOL)
        return (Refuse(cond, self.nest.nothing(self.e.kind, over)),)

    def _source_axes(self) -> tuple[ReduceAxis, ...]:
        """Return the axes as the statement has them."""
        for node in walk(self.nest.stage.assign.value):
            if isinstance(node, Reduce) and node.span == self.e.span and node.kind == self.e.kind:
                return node.axes
        return self.e.axes

    def numbers(self) -> list[Expr]:
        """Return the position of the element that the loops have reached: counted in row-major order, or along each axis."""
        axes = [a for a in self.e.axes if isinstance(a, Axis)]
        if len(self.results) > 1:
            return [variable(a.index) for a in axes]
        total = variable(axes[0].index)
        for a in axes[1:]:
            total = Sum((Product((total, IndexValue(a.extent))), variable(a.index)))
        return [total]


class LoopsAroundReductions(ReductionLoops):
    """The loops of a reduction of reductions, which run inside at each of its points, each vectorised as it is by itself."""

    def _lane(self) -> str:
        if any(has_reduction(g) for g in self.guards if not isinstance(g, Affine)):
            raise UnsupportedForm("a reduction that asks for others which points count")
        if self.guards and may_refuse(self.body):
            raise UnsupportedForm("a reduction that may have no value where no point counts")
        return self.over.vector_axis if self.row else ""

    def loops(self) -> Body:
        """Return the loops."""
        return (*self.refusal, *self._start_row(), *self._all_loops())

    def _innermost(self, over: VectorRange) -> Body:
        ranges = [g for g in self.guards if isinstance(g, Affine) and g.coefficient(over.vector_axis) is not None]
        others = [g for g in self.guards if not any(g is r for r in ranges)]
        if others and not self.known.reads_inside(self.body, ranges):
            raise UnsupportedForm("a reduction of reductions that may read outside where data say that they don't count")
        if not ranges:
            return self._at(over)
        # The reductions inside may read outside of operands, or refuse, at lanes that do not count.
        self.guards = others
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        whole = VectorRange(over.vector_axis, over.low, call("greatest", over.low, over.high))
        some = compare("lt", variable(low), variable(high))
        inner = self._at(VectorRange(over.vector_axis, variable(low), variable(high)))
        return (*narrow(self.known, tuple(ranges), whole, low, high), If(some, inner))

    def _at(self, over: VectorRange) -> Body:
        """Return the loops of the reductions inside, and what takes in their values, at lanes that count."""
        inside = _Reductions(self.known, over)
        body, self.body = inside.extract(self.body, ())
        if self.row:
            return (*inside.declarations, *body, *super()._innermost(over))
        if self.guards:
            raise UnsupportedForm("a reduction of reductions that counts only at some points")
        value = Accesses(self.known, NO_RANGE, lazy=True).value(self.body)
        return (*inside.declarations, *body, Accumulate(Local(self.result, self.e.type), self.kind, value))


def _adds_products(known: LoopContext, e: Reduce, body: Expr, vector_axis: str) -> bool:
    """Whether a reduction along its own vector axis is a sum of products of two elements, which both move along their last
    axis."""
    if e.kind != "sum" or not is_floating(e.type) or not isinstance(body, Call) or body.fn != "mul" or body.type != e.type:
        return False
    return all(isinstance(r, Read) and r.type == e.type and _moves_along(known, r, vector_axis) for r in body.args)


def _moves_along(known: LoopContext, r: Read, vector_axis: str) -> bool:
    """Whether a read of an operand that is read where it lies moves along its last axis with a vector axis."""
    if not r.indices or r.checked or not lie(known, (r,)) or not runs_along(known, r):
        return False
    *others, last = r.indices
    step = last.coefficient(vector_axis) if isinstance(last, Affine) else None
    return step is not None and bool(step.terms) and all(isinstance(i, Affine) and vector_axis not in i.indices() for i in others)


def with_positions(of: ValueType, count: Expr, body: Body) -> CallWithBody:
    """Return statements in which `position` is an integer type that holds `count`, as wide as values of a type if it can be."""
    scope = call("with_positions", count, types=(of,))
    return CallWithBody(scope, (("auto", "@zero"),), (Alias("position", "@zero"), *body))
