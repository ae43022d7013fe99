"""Scatters on a device: the terms of a reduction go to the elements that they name.

In a fixed order they are sorted by these: a kernel runs three times, first to find what each term names, then, when the runtime
has sorted that, to join runs of terms that name the same, and at last to join the terms of each element. Where a spec permits
atomic additions, a thread for each term of a sum at each point of the other indices adds to the element in a temporary of zeros,
which is as wide as what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, is_floating
from opc.ir.expr import Axis, Call, Expr, IndexValue, Reduce, free_indices, walk
from opc.ir.op import Assign, Op, ScatterMode
from opc.ir.printer import format_assign
from opc.loops.nodes import Accumulate, Body, Comment, Continue, Do, How, If, Kernel, Let, Loop, Statement, Store, Var
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Construct, Local, Member, Named, Product, Word, call, compare, number, ref, sum_of, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.build.reduction import start_of
from opc.lower.cuda.points import FlatPoints, place_of, used_places
from opc.lower.guards import guard_indices
from opc.lower.nest_plans import ScatterPlan
from opc.lower.nests.scatter import scatter_plan
from opc.records import replace

_TERM, _POINT, _PART = "@term", "@point", "@part"

_ADDED = frozenset({DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT32, DType.UINT64})
"""The types whose elements a GPU adds to atomically."""


def plan_of(op: Op, assign: Assign) -> ScatterPlan | None:
    """Return how a statement adds its terms to the elements that they name, None where it is no scatter of that form.

    The plan is `shared` where the additions are atomic.
    """
    plan = scatter_plan(op, assign)
    if plan is None or any(isinstance(n, Reduce) for _, p in plan.scatter_indices for n in walk(p)):
        return None
    if any(isinstance(a, Axis) and a.extent.indices() for a in plan.reduction.axes):
        return None
    return replace(plan, shared=op.scatter is ScatterMode.ATOMIC and _is_added(op.operand(assign.target).type))


def scatters_atomically(op: Op, assign: Assign) -> bool:
    """Whether a statement adds in any order."""
    return op.scatter is ScatterMode.ATOMIC and (plan := plan_of(op, assign)) is not None and plan.shared


def _is_added(of: ValueType) -> bool:
    """Whether values of a type are computed in one that is added to atomically."""
    kinds = of.dtypes if isinstance(of, TypeVar) else (of,)
    return all(isinstance(d, DType) and (d in _ADDED or (is_floating(d) and d.bits < 32)) for d in kinds)


def other_entries(plan: ScatterPlan) -> tuple[int, ...]:
    """Return the entries of the target's indices that no term names."""
    named = dict(plan.scatter_indices)
    return tuple(n for n, index in enumerate(plan.statement.indices) if index not in named)


def entries_of_keys(plan: ScatterPlan) -> tuple[int, ...]:
    """Return the entries of the target's indices that items are sorted by: those on which what a term names depends, and those
    that it names."""
    used = frozenset[str]().union(*(free_indices(p) for _, p in plan.scatter_indices), *map(guard_indices, plan.guards))
    depends = tuple(n for n in other_entries(plan) if plan.statement.indices[n] in used)
    return (*depends, *(n for n in range(len(plan.statement.indices)) if n not in other_entries(plan)))


def entries_of_items(plan: ScatterPlan) -> tuple[int, ...]:
    """Return the entries of the target's indices for each of whose points every term names a place of its own."""
    others = other_entries(plan)
    return tuple(n for n in entries_of_keys(plan) if n in others)


def entries_in_order(plan: ScatterPlan) -> tuple[int, ...]:
    """Return the entries of the target's indices, those that items are sorted by first."""
    keys = entries_of_keys(plan)
    return (*keys, *(n for n in range(len(plan.statement.indices)) if n not in keys))


def scatter_kernel(nest: Nest, plan: ScatterPlan) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceScatter(nest, plan).kernel()


class _DeviceScatter(FlatPoints):
    """Makes the loops of one statement."""

    def __init__(self, nest: Nest, plan: ScatterPlan) -> None:
        super().__init__(nest)
        self.plan = plan

    def kernel(self) -> Kernel:
        """Return the function."""
        comment, named = Comment(format_assign(self.stage.assign)), tuple(index for index, _ in self.plan.scatter_indices)
        if self.plan.shared:
            schedule = Schedule(
                (Transformation("bind", ("terms to all threads",)), Transformation("scatter", (*named, "atomic")))
            )
            return self.function((comment, self._added()), schedule)
        sums = If(call("adds_runs", NEST, type=DType.BOOL), (self._runs(),), (self._sums(),))
        steps = If(call("finds_places", NEST, type=DType.BOOL), (self._named(),), (sums,))
        schedule = Schedule((Transformation("bind", ("points to teams",)), Transformation("scatter", (*named, "sort"))))
        return self.function((comment, steps), schedule)

    def _added(self) -> Loop:
        """Return the loop over terms, and over the points of the indices that no term names, which vary fastest."""
        target, indices = self.nest.declared, self.plan.statement.indices
        digits = (*self._axes(), *map(self._entry, other_entries(self.plan)))
        lines, value = self.inside(self.plan.body)
        at = sum_of([Product((variable(name), Member("@nest", "after", n))) for n, name in enumerate(indices)])
        add = Do(call("add_at", Address(target.name, at), Construct(target.type, value)))
        body = (*self._digits(_TERM, digits), *self._place(), *lines, add)
        return Loop(How.GRID, _TERM, number(0), Member("@nest", "work"), body)

    def _named(self) -> Loop:
        """Return the loop over items, in which each finds the place that it names."""
        digits = (*map(self._entry, entries_of_items(self.plan)), *self._axes())
        nothing = Do(call("name_nothing", NEST, variable(_TERM)))
        own = [n for n in entries_of_keys(self.plan) if n not in entries_of_items(self.plan)]
        name = Do(call("name_place", NEST, variable(_TERM), self._number(own), self._key()))
        places = used_places(self._digits(_TERM, digits), (*self._place(), name))
        return Loop(How.GRID, _TERM, number(0), Member("@nest", "work"), (nothing, *places))

    def _runs(self) -> Loop:
        """Return the loop over runs of sorted items, at each point of the indices that no key has, which vary fastest."""
        nest, plan = self.nest, self.plan
        run, other, key, others = (nest.fresh(word) for word in ("run", "other", "key", "others"))
        own = self._total()
        count = Member("@nest", "others")
        head: Body = (
            Let(others, Weak.INT, count),
            Let(run, Weak.INT, place_of(variable(_PART), [variable(others)], Member("@nest", "items"))),
            Let(other, Weak.INT, place_of(variable(_PART), (), variable(others))),
            Let(key, Weak.INT, call("key_of_run", NEST, variable(run))),
            If(compare("ge", variable(key), Member("@nest", "key_count")), (Continue(),)),
        )
        places = self._digits(key, [self._entry(n) for n in entries_of_keys(plan)])
        places = (*places, *self._digits(other, [self._entry(n) for n in self._others()]))
        at = nest.fresh("at")
        first = sum_of([Product((variable(run), Word("opc::run_items"))), call("thread_of_team", NEST)])
        end = Product((sum_of([variable(run), number(1)]), Word("opc::run_items")))
        terms = Loop(How.SERIAL, at, first, end, self._taken(variable(at), own), step=Member("@nest", "team"))
        joined = call("join_items", NEST, variable(_PART), own, type=own.type, types=self._joins())
        start = Var(own.name, own.type, start_of(self.plan.reduction.kind, own.type))
        body = (start, terms, Store(own, joined))
        return Loop(How.TEAMS, _PART, number(0), Member("@nest", "work"), (*head, *used_places(places, body)))

    def _sums(self) -> Loop:
        """Return the loop over points of the target, in which each adds up the items that name it."""
        nest = self.nest
        i, items = nest.fresh("i"), nest.fresh("items")
        own = self._total()
        indices = self.plan.statement.indices
        # Those with neighbouring keys are neighbours, and find their items side by side.
        in_order = entries_in_order(self.plan) == tuple(range(len(indices)))
        place = "entry_place" if in_order else "place_in_order"
        places = tuple(Let(i, Weak.INT, call(place, NEST, variable(_POINT), number(n))) for n, i in enumerate(indices))
        stored = sum_of([Product((variable(i), Member("@nest", "after", n))) for n, i in enumerate(indices)])
        found = Let(items, Named("auto"), call("items_of_key", NEST, self._key()))
        first, count = call("thread_of_team", NEST), Local(items, Weak.INT, None, "count")
        at = call(f"{items}.at", variable(i))
        terms = Loop(How.SERIAL, i, first, count, self._taken(at, own), step=Member("@nest", "team"))
        runs = call("join_runs", NEST, ref(items), self._number(self._others()), own, type=own.type, types=self._joins())
        joined = call("join_items", NEST, variable(_POINT), own, type=own.type, types=self._joins())
        stores = If(call("stores_point", NEST, type=DType.BOOL), (self.stored(variable(_POINT) if in_order else stored, own),))
        start = Var(own.name, own.type, start_of(self.plan.reduction.kind, own.type))
        body = (start, found, terms, Store(own, runs), Store(own, joined), stores)
        return Loop(How.TEAMS, _POINT, number(0), Member("@nest", "work"), used_places(places, body))

    def _total(self) -> Local:
        """Return a variable for what is taken in."""
        return Local(self.nest.fresh("total"), self.plan.reduction.type)

    def _joins(self) -> tuple[str, ValueType]:
        """Return how two of these are joined, and their type."""
        return f"opc::joins_{self.plan.reduction.kind}", self.plan.reduction.type

    def _taken(self, at: Expr, total: Local) -> Body:
        """Return what takes the item at a place in their order in."""
        item = self.nest.fresh("item")
        lines, value = self.inside(self.plan.body)
        taken = used_places(
            self._digits(item, self._axes(), last=True), (*lines, Accumulate(total, self.plan.reduction.kind, value))
        )
        return (Let(item, Weak.INT, call("item_at", NEST, at)), *taken)

    def _others(self) -> tuple[int, ...]:
        """Return the entries of the target's indices that no key has."""
        keys = entries_of_keys(self.plan)
        return tuple(n for n in range(len(self.plan.statement.indices)) if n not in keys)

    def _place(self) -> Body:
        """Return the variables of what a term names; a term that does not count goes on to the next."""
        body: list[Statement] = []
        for cond in self.plan.given:
            body += self._only_if(cond)
        indices = self.plan.statement.indices
        for index, position in self.plan.scatter_indices:
            lines, value = self.inside(position)
            outside = call("outside", variable(index), Member("@nest", "size", indices.index(index)), type=DType.BOOL)
            body += [*lines, Let(index, Weak.INT, value), If(outside, (Continue(),))]
        for guard in self.plan.guards:
            body += self._only_if(guard)
        return tuple(body)

    def _only_if(self, guard: Affine | Expr) -> Body:
        """Return what goes on to the next term where a guard does not hold."""
        if isinstance(guard, Affine):
            return (If(compare("lt", IndexValue(guard), number(0)), (Continue(),)),)
        lines, value = self.inside(guard)
        return (*lines, If(Call("not", (value,), DType.BOOL), (Continue(),)))

    def _key(self) -> Expr:
        """Return the number of a place among those that items are sorted by."""
        return self._number(entries_of_keys(self.plan))

    def _number(self, entries: Sequence[int]) -> Expr:
        """Return the number of a place along some entries of the target's indices."""
        indices, sizes = self.plan.statement.indices, [Member("@nest", "size", n) for n in entries]
        return sum_of([Product((variable(indices[n]), *sizes[k + 1 :])) for k, n in enumerate(entries)] or [number(0)])

    def _axes(self) -> tuple[tuple[str, Expr], ...]:
        """Return the axes of the sum with what divides by their sizes."""
        axes = [a for a in self.plan.reduction.axes if isinstance(a, Axis)]
        return tuple((a.index, IndexValue(a.extent)) for a in axes)

    def _entry(self, n: int) -> tuple[str, Expr]:
        """Return an entry of the target's indices with what divides by its size."""
        return self.plan.statement.indices[n], Member("@nest", "by_size", n)

    def _digits(self, of: str, digits: Sequence[tuple[str, Expr]], *, last: bool = False) -> tuple[Let, ...]:
        """Return variables that are the digits of a number of these sizes, or its last digits."""
        found: list[Let] = []
        for k in reversed(range(len(digits))):
            name, by = digits[k]
            if k == 0 and not last:
                found.append(Let(name, Weak.INT, variable(of)))
                break
            rest = self.nest.fresh("rest")
            found.append(Let(rest, Weak.INT, call("quotient_by", by, variable(of))))
            found.append(Let(name, Weak.INT, call("rest_of", by, variable(of), variable(rest))))
            of = rest
        return tuple(found)
