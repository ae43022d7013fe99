"""Scatters: one pass over the terms of a reduction, each taken in at the index in the target that it names.

A unit of work owns a part of the target, so that no two threads write to one element and each goes in order: a piece of the
vector axis, a point of the indices that no term names, or a range of the first index that terms do name, for which it looks at
all terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    Call,
    Expr,
    IndexValue,
    Reduce,
    Select,
    children,
    free_indices,
    map_affine,
    may_refuse,
    rewrite,
    walk,
)
from opc.loops.nodes import Accumulate, Body, Buffer, Continue, Do, How, If, Let, Loop, Statement, Store, Var
from opc.loops.values import (
    Construct,
    Init,
    IntegerChoice,
    Local,
    Member,
    Named,
    Pointer,
    Product,
    Sum,
    Word,
    call,
    compare,
    number,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.access import NOWHERE, Accesses
from opc.lower.build.context import NEST, NO_RANGE, LoopContext, UnsupportedForm, Variable, VectorRange
from opc.lower.build.reduction import ReductionLoops, start_of
from opc.lower.build.split import Sweep, as_condition, clip_by_data, condition, split
from opc.lower.build.windowed import fetch_rows, search_row
from opc.lower.guards import Guard, guard_indices
from opc.lower.nest_plans import Run, ScatterPlan
from opc.lower.nests.search import searches
from opc.records import replace

LOW, HIGH = variable("@low_index"), variable("@high_index")
"""The part of the first index with computed indices that a unit owns."""

PLACE_STRIDE = Member("@nest", "scatter_stride", 0)


def scatter_body(known: LoopContext, plan: ScatterPlan) -> Body:
    """Return the loop over units of work of one scatter."""
    flat, nest = plan.statement, known.nest
    of = nest.declared.type
    used = free_indices(flat.value)
    for name, extent in zip(flat.indices, flat.extents, strict=True):
        known.bound(name, extent)
    outer = [i for i in flat.indices if i != plan.vector_axis and i not in plan.named]
    unit = variable("@unit")
    cursor = Init((NEST, call("target_unit", NEST, unit)))
    body: list[Statement] = [Let("@at", Named("opc::cursor"), cursor)]
    body += [Let(i, Weak.INT, Member("@at", "index", n)) for n, i in enumerate(outer) if i in used]
    body += [
        Let("@offset", Weak.INT, call("@at.target")),
        Let("@low_index", Weak.INT, call("part_begin", NEST, unit)),
        Let("@high_index", Weak.INT, call("part_end", NEST, unit)),
    ]
    nothing = start_of(plan.reduction.kind, plan.reduction.type)
    to = Sum((ref("@out"), variable("@offset")))
    if plan.starts_from_zero:
        body.append(Do(call("zero_part", NEST, to, LOW, HIGH)))
    else:
        columns = call("@at.count") if plan.vector_axis is not None else number(1)
        body.append(Do(call("fill_part", NEST, to, LOW, HIGH, number(len(plan.named)), columns, Construct(of, nothing))))
    over = NO_RANGE
    if plan.vector_axis is not None:
        start, end = nest.fresh("start"), nest.fresh("end")
        body.append(Let(start, Weak.INT, call("@at.first")))
        body.append(Let(end, Weak.INT, Sum((variable(start), call("@at.count")))))
        over = VectorRange(plan.vector_axis, variable(start), variable(end))
    terms = _Terms(known, over, plan).loops()
    body += [If(condition(known, plan.given), terms)] if plan.given else terms
    pointer = Let("@out", Pointer(of), call("target_of", NEST, types=(of,)))
    return pointer, Loop(How.SERIAL, "@unit", variable("@begin"), variable("@end"), tuple(body))


class _Terms(ReductionLoops):
    """The loops over the terms of a scatter."""

    def __init__(self, known: LoopContext, over: VectorRange, plan: ScatterPlan) -> None:
        self.plan = plan
        super().__init__(known, over, plan.reduction, (), bool(over.vector_axis))
        plain = plan.row is None and plan.run is None and not searches(p for _, p in plan.scatter_indices)
        if plain and not any(a.extent.indices() for a in self.axes):
            # Terms that go to one place follow one another: those of a row that data picks are read as a row.
            picked = frozenset().union(*(free_indices(p) for _, p in plan.scatter_indices))
            self.axes.sort(key=lambda a: a.index not in picked)
        self.axes.sort(key=lambda a: a.index == plan.row)
        self.guards, self.body = list(plan.guards), plan.body

    def _lane(self) -> str:
        return self.over.vector_axis

    def _due(self, open_axes: set[str]) -> list[Guard]:
        """Take the guards that can be tested; others wait until the indices are known."""
        late = [g for g in self.guards if self._waits(g)]
        self.guards = [g for g in self.guards if not self._waits(g)]
        due = super()._due(open_axes)
        self.guards += late
        return due

    def _waits(self, g: Guard) -> bool:
        """Whether a guard uses an index, or may refuse the call: that is asked where there is one."""
        return not guard_indices(g).isdisjoint(self.plan.named) or (not isinstance(g, Affine) and may_refuse(g))

    def _is_ready(self, g: Guard, later: frozenset[str] | set[str], index: str) -> bool:
        return super()._is_ready(g, later, index) and not self._waits(g)

    def loops(self) -> Body:
        """Return the loops."""
        return (*self.refusal, *self._all_loops())

    def _loops(self, axes: list[Axis], opened: frozenset[str] = frozenset()) -> Body:
        found = searches(p for _, p in self.plan.scatter_indices)
        if found and len(axes) == 1:
            return self._rows(axes[0], found)
        if len(axes) == 1 and axes[0].index == self.plan.row:
            return self._row_of_terms(axes[0])
        return super()._loops(axes, opened)

    def _innermost(self, over: VectorRange) -> Body:
        if self.plan.run is not None:
            return self._add_to_run(self.plan.run, over)
        scatter_indices = self.plan.scatter_indices
        if over.vector_axis and any(over.vector_axis in free_indices(p) for _, p in scatter_indices):
            return self._lane_by_lane(over)
        accesses = Accesses(self.known, NO_RANGE, lazy=True)
        body: list[Statement] = []
        for n, (index, position) in enumerate(scatter_indices):
            body.append(Let(index, Weak.INT, accesses.value(position)))
            body.append(If(self._missed(n), (Continue(),)))
        of = self.e.type
        body.append(Let("@to", Pointer(of), Sum((ref("@out"), self._offset()))))
        at = variable(over.vector_axis) if over.vector_axis else number(0)
        take = Accumulate(Local("@to", of, at), self.kind, self._guarded(), "atomic" if self.plan.shared else "")
        if over.vector_axis:
            return (*body, *split(self.known, Sweep(How.VECTOR, over, take)))
        return (*body, replace(take, value=accesses.value(take.value)))

    def _add_to_run(self, run: Run, over: VectorRange) -> Body:
        """Return the loop over the places of a run that are in the part of the target that is worked on."""
        of, low, high = self.e.type, self.nest.fresh("first"), self.nest.fresh("last")
        bounds: Body = (
            Var(low, Weak.INT, LOW),
            Var(high, Weak.INT, HIGH),
            *clip_by_data(self.known, run.bounds, (ref(low), ref(high))),
        )
        at = over.vector_axis or run.index
        take = Accumulate(Local("@to", of, variable(at)), "sum", self._guarded())
        if not over.vector_axis:
            to = Let("@to", Pointer(of), Sum((ref("@out"), variable("@offset"))))
            along = VectorRange(run.index, variable(low), variable(high))
            return *bounds, to, *split(self.known, Sweep(How.VECTOR, along, take))
        row = Let("@to", Pointer(of), Sum((ref("@out"), self._offset()))), *split(self.known, Sweep(How.VECTOR, over, take))
        return *bounds, Loop(How.SERIAL, run.index, variable(low), variable(high), row)

    def _pieces(self, axis: Axis) -> tuple[str, str, str, Callable[[Affine], Affine]]:
        """Return the first point of a piece of an axis, a point in it and their number, and what puts these for the axis."""
        start, own, count = self.nest.fresh("start"), self.nest.fresh(axis.index), self.nest.fresh("count")
        position = Affine.of(Index(start)) + Index(own)
        self.known.bounded[position] = axis.extent
        return start, own, count, lambda a: a.at(axis.index, position)

    def _piece_loop(self, axis: Axis, start: str, count: str, most: str, body: Body) -> Loop:
        """Return the loop over pieces of an axis of no more than `most` points."""
        extent = IndexValue(axis.extent)
        rest = call("least", Call("sub", (extent, variable(start)), Weak.INT), Word(most))
        return Loop(How.SERIAL, start, number(0), extent, (Let(count, Weak.INT, rest), *body), step=Word(most))

    def _rows(self, axis: Axis, found: list[Reduce]) -> Body:
        """Return the loop over the terms of the last axis in rows, with the searches that their indices need before each row."""
        known = self.known
        if any(axis.index in a.extent.indices() for e in found for a in e.axes if isinstance(a, Axis)):
            raise UnsupportedForm(f"a search whose length depends on {axis.index}")
        start, own, count, to_rows = self._pieces(axis)
        row = VectorRange(own, number(0), variable(count))

        def moved(e: Expr) -> Expr:
            return map_affine(e, to_rows)

        window, before = self.plan.window, list[Statement]()
        if window is not None:
            for outer in self.axes[-2:-1]:
                before += fetch_rows(known, window, axis.index, outer.index)
                size = Product((Call("sub", (HIGH, LOW), Weak.INT), PLACE_STRIDE))
                end = Sum((ref("@out"), variable("@offset"), Product((HIGH, PLACE_STRIDE))))
                before.append(Do(call("fetch_share", end, size, variable(outer.index), IndexValue(outer.extent))))
            self.body = moved(self.body)
            loops = search_row(known, row, window, to_rows, lambda position: self._add_row(row, position))
            return *before, self._piece_loop(axis, start, count, "opc::nest_columns", loops)
        scatter_indices = [(index, moved(p)) for index, p in self.plan.scatter_indices]
        stands_for: dict[Expr, Expr] = {}
        body: list[Statement] = []
        for e in found:
            loops, values = self._find(replace(e, body=moved(e.body)), row, [p for _, p in scatter_indices])
            body += loops
            stands_for |= values
        scatter_indices = [(index, rewrite(p, lambda n: stands_for.get(n, n))) for index, p in scatter_indices]
        self.plan = replace(self.plan, scatter_indices=tuple(scatter_indices))
        self.guards = [to_rows(g) if isinstance(g, Affine) else moved(g) for g in self.guards]
        self.body = moved(self.body)
        return (self._piece_loop(axis, start, count, "opc::nest_columns", (*body, *self._lane_by_lane(row))),)

    def _row_of_terms(self, axis: Axis) -> Body:
        """Return the loop over the terms of one axis in rows: their indices, their values, and the adding of each."""
        known, of = self.known, self.e.type
        start, own, count, to_rows = self._pieces(axis)
        scatter_indices, terms = self.nest.fresh("indices"), self.nest.fresh("terms")
        over = VectorRange(own, number(0), variable(count))
        accesses = Accesses(known, over)
        lines: list[Statement] = []
        bounds: list[Statement] = []
        offsets: list[Expr] = []
        tests: list[Expr] = []
        for n, (index, position) in enumerate(self.plan.scatter_indices):
            lines.append(Let(index, Weak.INT, accesses.value(map_affine(position, to_rows))))
            stride, size = self.nest.fresh("step"), self.nest.fresh("size")
            bounds.append(Let(stride, Weak.INT, Member("@nest", "scatter_stride", n)))
            bounds.append(Let(size, Weak.INT, Member("@nest", "scatter_size", n)))
            tests.append(
                self._outside(variable(index)) if n == 0 else call("outside", variable(index), variable(size), type=DType.BOOL)
            )
            offsets.append(Product((variable(index), variable(stride))))
        offset = sum_of(offsets)
        for test in reversed(tests):
            offset = IntegerChoice(test, NOWHERE, offset)
        lines.append(Store(Local(scatter_indices, Weak.INT, variable(own)), offset))
        value = accesses.value(map_affine(self.body, to_rows))
        body: Body = (
            Buffer(scatter_indices, Weak.INT, "opc::gather_row"),
            Buffer(terms, of, "opc::gather_row"),
            *bounds,
            *accesses.before,
            Loop(How.VECTOR, own, number(0), variable(count), tuple(lines), short=True),
            Loop(How.VECTOR, own, number(0), variable(count), (Store(Local(terms, of, variable(own)), value),), short=True),
            Do(call("add_row", Sum((ref("@out"), variable("@offset"))), ref(scatter_indices), ref(terms), variable(count))),
        )
        return (self._piece_loop(axis, start, count, "opc::gather_columns", body),)

    def _find(self, e: Reduce, row: VectorRange, scatter_indices: list[Expr]) -> tuple[Body, Mapping[Expr, Expr]]:
        """Return the loops of a search along a row, and what stands for it, or for its parts, in the indices."""
        last = e.axes[-1]
        assert isinstance(last, Axis), "a flat statement has no groups"
        uses = [n for p in scatter_indices for n in walk(p) if any(c == e for c in children(n))]
        parts = [n for n in uses if isinstance(n, Call) and n.fn in ("floordiv", "mod") and n.args[0] == e]
        by_axis = len(e.axes) == 2 and len(parts) == len(uses) and all(affine_of(n.args[1]) == last.extent for n in parts)
        search = ReductionLoops(self.known, row, e, (), True, by_axis)
        body = (*search.declarations, *search.loops())
        reads = [self.known.local(Variable(name, DType.INT64, True), row.vector_axis) for name in search.results]
        if not by_axis:
            return body, {e: reads[0]}
        return body, {n: reads[0] if n.fn == "floordiv" else reads[1] for n in parts}

    def _bounds(self, axis: Axis, extent: Expr) -> tuple[Body, Expr, Expr]:
        if not self.plan.shared:
            return super()._bounds(axis, extent)
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        args = NEST, variable("@unit"), number(self.e.axes.index(axis)), extent
        bounds = Let(low, Weak.INT, call("terms_begin", *args)), Let(high, Weak.INT, call("terms_end", *args))
        return bounds, variable(low), variable(high)

    def _missed(self, n: int) -> Expr:
        """Return the condition that an index is outside of the part of the target that is worked on."""
        at = variable(self.plan.scatter_indices[n][0])
        return self._outside(at) if n == 0 else call("outside", at, Member("@nest", "scatter_size", n), type=DType.BOOL)

    @staticmethod
    def _outside(at: Expr) -> Expr:
        return Call("or", (compare("lt", at, LOW), compare("ge", at, HIGH)), DType.BOOL)

    def _offset(self) -> Expr:
        """Return where in the target the term goes, at lane 0."""
        terms = [Product((variable(i), Member("@nest", "scatter_stride", n))) for n, i in enumerate(self.plan.named)]
        position = variable("@offset")
        first = Call("sub", (position, self.over.low), Weak.INT) if self.over.vector_axis else position
        return Sum((first, *terms))

    def _guarded(self) -> Expr:
        """Return the term, and what changes nothing where a guard that is left doesn't hold."""
        body = self.body
        for g in reversed(self.guards):
            body = Select(as_condition(g), body, start_of(self.kind, body.type), body.type)
        return body

    def _add_row(self, over: VectorRange, position: Expr) -> Body:
        """Return the loop that adds the terms of a row, `position` being where in the target each goes."""
        accesses, of = Accesses(self.known, over, lazy=True), self.e.type
        value = accesses.value(self.body)
        own, size, to = (self.nest.fresh(n) for n in ("own", "own_size", "to"))
        inside = Call("not", (call("outside", variable(to), variable(size), type=DType.BOOL),), DType.BOOL)
        add = Accumulate(Local(own, of, variable(to)), "sum", value)
        body: Body = (Let(to, Weak.INT, position), If(inside, (add,)))
        return (
            Let(own, Pointer(of), Sum((ref("@out"), variable("@offset"), Product((LOW, PLACE_STRIDE))))),
            Let(size, Weak.INT, Product((Call("sub", (HIGH, LOW), Weak.INT), PLACE_STRIDE))),
            *accesses.before,
            Loop(How.LANES, over.vector_axis, over.low, over.high, body),
        )

    def _lane_by_lane(self, over: VectorRange) -> Body:
        """Return the loop over a vector axis along which terms go to different indices."""
        accesses = Accesses(self.known, over, lazy=True)
        # An index may be looked up where the guards say that there is one.
        early = [g for g in self.guards if not self._waits(g)]
        self.guards = [g for g in self.guards if self._waits(g)]
        body: list[Statement] = []
        for g in early:
            body.append(If(Call("not", (accesses.value(as_condition(g)),), DType.BOOL), (Continue(),)))
        for n, (index, position) in enumerate(self.plan.scatter_indices):
            body.append(Let(index, Weak.INT, accesses.value(position)))
            accesses.inner.add(index)
            body.append(If(self._missed(n), (Continue(),)))
        vector_axis = [variable(over.vector_axis)] if self.plan.vector_axis is not None else []
        at = Sum((self._offset(), *vector_axis)) if vector_axis else self._offset()
        take = Accumulate(
            Local("@out", self.e.type, at), self.kind, accesses.value(self._guarded()), "atomic" if self.plan.shared else ""
        )
        return *accesses.before, Loop(How.LANES, over.vector_axis, over.low, over.high, (*body, take))
