"""Indices computed from data: found for a row at a time ahead of the loops that gather, and once for all rows that share them."""

from __future__ import annotations

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Expr
from opc.loops.nodes import Body, Buffer, If, Statement
from opc.loops.values import call, compare, variable
from opc.lower.build.access import Accesses
from opc.lower.build.context import LoopContext, VectorRange
from opc.lower.nest_plans import VectorPlan
from opc.lower.nests.gather_indices import MAX_GATHERS, axis_bounds, indices_of, looked_up


def gather_index_rows(
    known: LoopContext, plan: VectorPlan, value: Expr, over: VectorRange, indices: set[str]
) -> tuple[Body, Body]:
    """Return the buffers for the computed indices of the reads in a value, and the loops that fill them.

    `indices` are the loop indices known there; what also depends on the value's own loops is computed in those. A unit that
    differs from the one before it only along indices that these do not depend on uses the same buffers again.
    """
    known.bounded |= axis_bounds(value)
    accesses = Accesses(known, over)
    rows: list[Statement] = []
    declarations: list[Statement] = []
    for e in looked_up(known.nest.op, value, over.vector_axis, known.bounded):
        key = accesses.gather_key(e)
        names = {name for _, index in key[1] for name in indices_of(index)}
        if key in known.indices or len(declarations) == MAX_GATHERS or not names <= indices:
            continue
        row = known.indices[key] = known.nest.fresh(f"{e.operand}_indices")
        declarations.append(Buffer(row, Weak.INT, known.row_size))
        rows.append(accesses.gather_index_loop(e, row))
    body: Body = (*accesses.before, *rows)
    if declarations and plan.inner:
        first = compare("eq", variable("@unit"), variable("@begin"))
        body = (If(Call("or", (first, call("@at.begins", type=DType.BOOL)), DType.BOOL), body),)
    return tuple(declarations), body
