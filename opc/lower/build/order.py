"""Orders of rows: which elements a row has and where its results go; the sorting is the runtime's."""

from __future__ import annotations

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Const, Expr, IndexValue, free_indices
from opc.loops.nodes import Body, Do, How, Let, Loop, Statement, Var
from opc.loops.values import Address, Init, Member, Named, Sum, call, product_of, ref, sum_of, variable
from opc.lower.build.context import NEST, LoopContext
from opc.lower.nest_plans import OrderPlan


def order_body(known: LoopContext, plan: OrderPlan) -> Body:
    """Return the loop over units of work of one order: rows that the vector axis tells apart, at a point of the other indices."""
    nest, flat, ordering = known.nest, plan.statement, plan.ordering
    key = ordering.key
    used = free_indices(key) | free_indices(IndexValue(ordering.rank))
    outer = [i for i in flat.indices if i not in (plan.index, plan.vector_axis)]
    body: list[Statement] = [Let(i, Weak.INT, Member("@at", "index", n)) for n, i in enumerate(outer) if i in used]
    first = {ordering.along: Affine.of(0)}
    if plan.vector_axis is not None and plan.vector_axis in used:
        start = nest.fresh("start")
        body.append(Let(start, Weak.INT, call("@at.first")))
        first[plan.vector_axis] = Affine.of(Index(start))

    def at(i: Affine) -> Affine:
        return i.substitute(lambda s: first.get(s.name) if isinstance(s, Index) else None)

    def stride(index: str | None) -> Expr:
        """Return how many elements of the operand lie from one value of an index to the next."""
        steps: list[Expr] = []
        for n, i in enumerate(key.indices):
            step = i.coefficient(index) if isinstance(i, Affine) and index is not None else None
            if step is not None and step.terms:
                steps.append(product_of(IndexValue(step), nest.stride(key.operand, n)))
        return sum_of(steps)

    offset: list[Expr] = []
    for n, i in enumerate(key.indices):
        assert isinstance(i, Affine), "a flat statement has no groups"
        if (place := at(i)).terms:
            offset.append(product_of(IndexValue(place), nest.stride(key.operand, n)))
    rank = ordering.rank
    step = Affine.of(0) if plan.index is None else rank.coefficient(plan.index)
    assert step is not None, "places are affine in the index"
    lowest = rank.at(plan.index or "", Affine.of(0))
    out = Sum((call("target_of", NEST, types=(DType.INT64,)), call("@at.target")))
    order = call(
        "order_rows",
        NEST,
        ref("@memory"),
        Address(key.operand, sum_of(offset)),
        IndexValue(ordering.extent),
        stride(ordering.along),
        call("@at.count"),
        stride(plan.vector_axis),
        IndexValue(lowest),
        IndexValue(step),
        Const(ordering.descending is True, DType.BOOL),
        out,
    )
    body.append(Do(order))
    units = Loop(How.SERIAL, "@unit", variable("@begin"), variable("@end"), tuple(body), after=call("@at.next"))
    at_unit = Var("@at", Named("opc::cursor"), Init((NEST, variable("@begin"))))
    return Var("@memory", Named("opc::order_memory")), at_unit, units
