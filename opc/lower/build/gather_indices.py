"""Places found lane by lane, once for all the rows in which they stay the same: ahead of the loops of a unit of work."""

from __future__ import annotations

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Expr
from opc.loops.nodes import Body, Buffer, If, Statement
from opc.loops.values import call, compare, variable
from opc.lower.build.access import Accesses
from opc.lower.build.context import Known, Range
from opc.lower.loop_ir import Lanes
from opc.lower.nests.gather_indices import MOST_PLACES, axis_bounds, indices_of, looked_up


def rows_of_places(known: Known, plan: Lanes, value: Expr, over: Range, indices: set[str]) -> tuple[Body, Body]:
    """Return the declarations of what holds the places in a row of a value, and the loops that find them.

    `indices` are those that are known where the loops stand: what the value's own loops have a part in finding is left to them.
    Where the unit goes on from the one before it along indices that the places don't depend on, these stand.
    """
    known.bounded |= axis_bounds(value)
    accesses = Accesses(known, over)
    rows: list[Statement] = []
    declarations: list[Statement] = []
    for e in looked_up(known.nest.op, value, over.lane, known.bounded):
        key = accesses.place_key(e)
        names = {name for _, index in key[1] for name in indices_of(index)}
        if key in known.places or len(declarations) == MOST_PLACES or not names <= indices:
            continue
        row = known.places[key] = known.nest.fresh(f"{e.operand}_places")
        declarations.append(Buffer(row, Weak.INT, known.row_size))
        rows.append(accesses.place_loop(e, row))
    body: Body = (*accesses.before, *rows)
    if declarations and plan.inner:
        first = compare("eq", variable("@unit"), variable("@begin"))
        body = (If(Call("or", (first, call("@at.begins", type=DType.BOOL)), DType.BOOL), body),)
    return tuple(declarations), body
