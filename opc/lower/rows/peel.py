"""Peeling: the point of a row where an index is as large as a value says is computed by itself.

In `a if c == t else b` the condition holds at one point of a row along `c`, if at all. That point is computed by itself, and the
loops before and behind it test nothing.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.expr import Const, Expr, Read, Select, reads, rewrite, walk
from opc.lower.guards import one_index
from opc.lower.loop_ir import Action, IndexLoop, Pass, RowAccumulate, RowBuffer, RowLet, RowStage
from opc.records import replace


def with_peeled_points(stage: RowStage) -> RowStage:
    """Return a row stage whose passes say which points of the row they compute by themselves."""
    row = stage.row[0] if len(stage.row) == 1 else None
    if not stage.whole_rows or not isinstance(row, IndexLoop):
        return stage
    index = row.index
    varying = {o.name for o in stage.operands if o.along_row}
    varying |= {a.name for p in stage.passes for a in p.body if isinstance(a, RowLet | RowBuffer)}
    return replace(stage, passes=tuple(replace(p, peeled=_condition(p, index, varying)) for p in stage.passes))


def _condition(p: Pass, index: str, varying: set[str]) -> Expr | None:
    """Return the condition at whose one point a pass is peeled; one that folds is a single loop."""
    if any(isinstance(a, RowAccumulate) for a in p.body):
        return None
    conditions = (e.cond for a in p.body for e in walk(a.value) if isinstance(e, Select))
    return next((c for c in conditions if peeled_point(c, index) and not any(r.operand in varying for r in reads(c))), None)


def peeled_point(cond: Expr, index: str) -> tuple[Affine, Expr] | None:
    """Return what a condition asks of a row's index where it names one point: the index plus the first is the second, a read."""
    return one_index(cond, index, lambda value: isinstance(value, Read) and value.pad is None)


def where(p: Pass, holds: bool) -> tuple[Action, ...]:
    """Return what a pass does at the peeled point, or at the others."""

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Select) or e.cond != p.peeled:
            return e
        return replace(side, type=e.type) if isinstance(side := e.then if holds else e.other, Const) else side

    return tuple(replace(a, value=rewrite(a.value, rule)) for a in p.body)
