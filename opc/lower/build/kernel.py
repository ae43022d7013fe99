"""The kernel of a nest stage: its loops are built, then transformed one way after the other, and their variables named."""

from __future__ import annotations

from opc.ir.op import Assign, Op
from opc.loops.conditions import propagate
from opc.loops.expand import expand
from opc.loops.hoist import hoist
from opc.loops.names import PARAMETERS, named
from opc.loops.nodes import Body, Kernel
from opc.loops.schedule import Override, active
from opc.loops.verify import verify_kernel
from opc.loops.version import version
from opc.lower.alone import known_at, of_statement
from opc.lower.build.context import Nest, UnsupportedForm
from opc.lower.build.points import point_nest
from opc.lower.build.rows import row_nest
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace


def nest_kernel(op: Op, stage: NestStage) -> Kernel:
    """Return the function of a statement: row by row where that is possible, else point by point.

    Of stages alike but for their names it is the same, unless a schedule is overridden.
    """
    overrides = active()
    return _kernel(known_at(op, stage.assign), stage.assign, stage if overrides else replace(stage, name=""), overrides)


@of_statement
def _kernel(op: Op, assign: Assign, stage: NestStage, overrides: tuple[Override, ...]) -> Kernel:
    nest = Nest(op, stage, overrides)
    try:
        kernel = row_nest(nest) if stage.plans else point_nest(nest)
    except UnsupportedForm:
        nest = Nest(op, stage, overrides)
        kernel = point_nest(nest)
    kernel = named(replace(kernel, body=_transformed(nest, kernel.body)), spec_names(op))
    verify_kernel(kernel, PARAMETERS)
    return replace(kernel, schedule=nest.decisions.schedule)


def _transformed(nest: Nest, body: Body) -> Body:
    body = hoist(propagate(body), nest.fresh, nest.positive)
    versions = version(body, nest.fresh, runs_often(nest.op))
    if versions != body and nest.decisions.take("version"):
        body = versions
    return expand(body, nest.fresh)


def spec_names(op: Op) -> set[str]:
    """Return the names of the spec's that a function declares: attributes and types."""
    return {a.name for a in op.attributes} | {t.name for t in op.types}
