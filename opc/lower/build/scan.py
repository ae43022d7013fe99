"""Running reductions: along one index of the target, with an array of accumulators along another."""

from __future__ import annotations

from collections.abc import Callable

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import Expr, IndexValue, free_indices, has_reduction, map_affine
from opc.loops.nodes import Accumulate, Body, Buffer, CallWithBody, Do, How, Let, Loop, Refuse, Statement, Store, Var, While
from opc.loops.values import (
    Block,
    Construct,
    Init,
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
from opc.lower.build.context import NEST, LoopContext, UnsupportedForm, VectorRange
from opc.lower.build.reduction import ReductionLoops, start_of, with_positions
from opc.lower.build.split import Sweep, split
from opc.lower.guards import replace_node
from opc.lower.nest_plans import ScanPlan


def take_terms(plan: ScanPlan, take: Body, refused: Callable[[Expr], Statement]) -> Body:
    """Return what takes in the terms that are due at a point of a scan, each by `take`.

    The variable of the reduction's index is the number of the next one, or with `from_here` of the last one, on entry and after.
    `refused` returns the refusal of a reduction without terms where a condition holds.
    """
    number_of, here, terms = variable(plan.axis.index), variable(plan.index), IndexValue(plan.axis.extent)
    step = Accumulate(Local(plan.axis.index, Weak.INT), "sum", number(-1 if plan.from_here else 1))
    if plan.from_here:
        loop, empty = While(compare("gt", number_of, here), (step, *take)), compare("le", terms, here)
    else:
        loop, empty = While(compare("lt", number_of, terms), (*take, step)), compare("le", terms, number(0))
    return (loop,) if plan.nonempty else (refused(empty), loop)


def first_number(plan: ScanPlan, low: Expr, high: Expr) -> Expr:
    """Return the number of the term that a scan begins with, where its index runs from `low` to before `high`."""
    if not plan.from_here:
        return number(0)
    first = IndexValue(plan.axis.extent)
    if plan.index not in plan.axis.extent.indices():
        return first
    at = sum_of([high, number(-1)]) if plan.descending else low
    return Block((Let(plan.index, Weak.INT, at),), first, Weak.INT)


def scan_body(known: LoopContext, plan: ScanPlan) -> Body:
    """Return the loop over units of work of one scan.

    Raises:
        Unsupported: when its terms hold reductions.
    """
    return _Scan(known, plan).body()


class _Scan:
    def __init__(self, known: LoopContext, plan: ScanPlan) -> None:
        self.known, self.nest, self.plan = known, known.nest, plan
        if has_reduction(plan.reduction.body):
            raise UnsupportedForm("a reduction in a running one")
        self.own = self.nest.fresh(plan.vector_axis or "lane")
        self.start = self.nest.fresh("start")
        self.over = VectorRange(self.own, number(0), variable("@count"))

    def body(self) -> Body:
        """Return the loops."""
        plan, flat = self.plan, self.plan.statement
        used = free_indices(flat.value)
        for name, extent in zip(flat.indices, flat.extents, strict=True):
            self.known.bound(name, extent)
        outer = [i for i in flat.indices if i not in (plan.vector_axis, plan.index)]
        body: list[Statement] = [Let(i, Weak.INT, Member("@at", "index", n)) for n, i in enumerate(outer) if i in used]
        body += [Let(self.start, Weak.INT, call("@at.first")), Let("@offset", Weak.INT, call("@at.target"))]
        along = call("with_count", call("@at.count"), Member("@nest", "column_stride"))
        body.append(CallWithBody(along, (("auto", "@count"), ("auto", "@stride")), self._along()))
        units = Loop(How.SERIAL, "@unit", variable("@begin"), variable("@end"), tuple(body), after=call("@at.next"))
        return Var("@at", Named("opc::cursor"), Init((NEST, variable("@begin")))), units

    def _moved(self, e: Expr) -> Expr:
        """Return `e` over the lanes of a unit."""
        vector_axis = self.plan.vector_axis
        if vector_axis is None:
            return e
        position = Affine.of(Index(self.start)) + Index(self.own)
        self.known.bounded[position] = dict(zip(self.plan.statement.indices, self.plan.statement.extents))[vector_axis]
        return map_affine(e, lambda a: a.at(vector_axis, position))

    def _along(self) -> Body:
        """Return the loop along the index that the reduction is carried along."""
        plan, known = self.plan, self.known
        axis = plan.axis
        if plan.vector_axis is not None and plan.vector_axis in axis.extent.indices():
            raise UnsupportedForm("an extent that depends on the vector axis")
        carried = ReductionLoops(known, self.over, plan.reduction, (), True)
        start = Construct(carried.of, start_of(carried.kind, carried.of))
        extent = dict(zip(plan.statement.indices, plan.statement.extents))[plan.index]
        index = plan.index
        first = IndexValue(axis.extent) if plan.from_here else number(0)
        searched = self._search(carried, start) if carried.search else ()
        taken = split(known, carried.sweep(self._moved(carried.e.body), self.over))
        nothing = self.nest.nothing(plan.reduction.kind, axis.index)
        body = [*take_terms(plan, taken, lambda empty: Refuse(empty, nothing))]
        if searched:
            body.append(Do(call("widen_row", ref(carried.result), ref(carried.positions[0]), variable("@count"))))
        read = known.local(carried.variable, self.own)
        value = self._moved(replace_node(plan.statement.value, plan.reduction, read))
        of = self.nest.declared.type
        place = Sum(
            (
                call("target_of", NEST, types=(of,)),
                variable("@offset"),
                Product((variable(index), Member("@nest", "scan_stride"))),
            )
        )
        body.append(Let("@out", Pointer(of), place))
        target = Local("@out", of, Product((variable(self.own), variable("@stride"))))
        body += split(known, Sweep(How.VECTOR, self.over, Store(target, value)))
        filled = () if searched else (Do(call("fill", ref(carried.result), variable("@count"), start)),)
        loops: Body = (
            *carried.declarations,
            *(filled or searched),
            Var(axis.index, Weak.INT, first),
            Loop(How.SERIAL, index, number(0), IndexValue(extent), tuple(body), down=plan.descending),
        )
        if not searched:
            return loops
        most = axis.extent.at(index, Affine.of(0) if plan.descending else extent - 1)
        return (with_positions(carried.of, IndexValue(most), loops),)

    def _search(self, carried: ReductionLoops, start: Expr) -> Body:
        """Return the declarations of the values and places of a search, which hold nothing yet."""
        place, count = self.nest.fresh(f"{carried.result}_here"), variable("@count")
        carried.positions = (place,)
        return (
            Buffer(carried.best, carried.of, "opc::nest_columns"),
            Do(call("fill", ref(carried.best), count, start)),
            Buffer(place, Named("position"), "opc::nest_columns"),
            Do(call("fill", ref(place), count, Word("zero"))),
        )
