"""One statement as a stage of its own."""

from __future__ import annotations

from opc.ir.expr import has_reduction, reductions
from opc.ir.op import Assign, Op
from opc.lower.alone import of_statement
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import Flat, VectorPlan
from opc.lower.nests.conditions import with_simplified_conditions
from opc.lower.nests.flat import choose_vector_axis, flat_statement, has_long_reductions, without_trailing
from opc.lower.nests.gather_indices import bounds_of, inner_indices, looked_up
from opc.lower.nests.pads import with_padded_reads
from opc.lower.nests.scan import flat_scan
from opc.lower.nests.scatter import flat_scatter
from opc.lower.nests.scatter_rows import with_rows
from opc.lower.nests.window import with_window
from opc.records import replace


def lower_statement(op: Op, assign: Assign, name: str) -> NestStage:
    """Return the nest of one statement."""
    return replace(_nest(op, assign), name=name)


@of_statement
def _nest(op: Op, assign: Assign) -> NestStage:
    """Return the nest of one statement, without a name."""
    assign = with_simplified_conditions(op, assign)
    flat = flat_statement(op, assign)
    if flat is None:
        return NestStage("", assign)
    forms = (flat,) if flat.trailing is None else (flat, without_trailing(flat))
    scatters = tuple(with_rows(op, with_window(op, s)) for s in (flat_scatter(op, f) for f in forms) if s is not None)
    if len(scatters) == len(forms):
        return NestStage("", assign, scatters)
    if any(has_reduction(e.body) for e in reductions(flat.value)):
        return NestStage("", assign, tuple(_lanes(op, f) for f in forms) if has_long_reductions(op, flat.value) else ())
    scans = tuple(s for s in (flat_scan(op, f, searches=True) for f in forms) if s is not None)
    if len(scans) == len(forms):
        return NestStage("", assign, scans)
    return NestStage("", assign, tuple(_lanes(op, f) for f in forms))


def _lanes(op: Op, flat: Flat) -> VectorPlan:
    vector_axis = choose_vector_axis(op, flat)
    if vector_axis is None:
        return VectorPlan(flat, vector_axis)
    flat = replace(flat, value=with_padded_reads(op, flat.value, vector_axis))
    found = dict.fromkeys(r.operand for r in looked_up(op, flat.value, vector_axis, bounds_of(flat)))
    return VectorPlan(flat, vector_axis, tuple(found), inner_indices(op, flat, vector_axis))
