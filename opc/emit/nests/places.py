"""Places found lane by lane, once for all the rows in which they stay the same: ahead of the loops of a unit of work."""

from __future__ import annotations

from opc.emit.nests.base import NestWriter
from opc.emit.nests.region import Leaf, Range, Regions
from opc.ir.expr import Expr
from opc.lower.loop_ir import Lanes
from opc.lower.nests.places import MOST_PLACES, axis_bounds, indices_of, looked_up


def write_places(writer: NestWriter, plan: Lanes, value: Expr, over: Range, regions: Regions) -> list[str]:
    """Write the loops that find the places in a row of a value, and return the declarations of what holds them.

    What the value's own loops have a part in finding is left to them. Where the unit goes on from the one before it along indices
    that the places don't depend on, these stand.
    """
    known = set(writer.indices)
    regions.bounded |= axis_bounds(value)
    leaf = Leaf(regions, over)
    rows: list[str] = []
    declarations: list[str] = []
    for e in looked_up(writer.op, value, over.lane, regions.bounded):
        key = leaf.place_key(e)
        names = {name for _, index in key[1] for name in indices_of(index)}
        if key in regions.places or len(declarations) == MOST_PLACES or not names <= known:
            continue
        row = writer.names.fresh(f"{e.operand}_places")
        declarations.append(f"int64_t {row}[{regions.row_size}];")
        rows += leaf.place_lines(e, row)
        regions.places[key] = row
    if declarations:
        with writer.block("if (unit == begin || at.begins())" if plan.inner else ""):
            writer.put(*leaf.before, *rows)
    return declarations
