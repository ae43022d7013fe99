"""Schedules: which transformations the loops of a stage go through on a CPU, chosen by what the stage does."""

from __future__ import annotations

from dataclasses import dataclass

from opc.ir.expr import Call, Const, Expr, walk
from opc.ir.op import Op
from opc.lower.loop_ir import Fold, RowStage
from opc.lower.rows.passes import EXPENSIVE
from opc.lower.rows.streams import puts, runs_often


@dataclass(frozen=True, slots=True)
class RowSchedule:
    """What a row stage goes through: row interleaving, in which the second pass `fetches` rows to come, and a form with batched
    rows, for rows of less than `vectors` vectors.

    It is `cheap` where to transpose the rows costs less than to join the lanes of their reductions, also where no lane is idle.
    """

    interleaved: bool
    fetches: bool
    batched: bool
    cheap: bool
    vectors: int


def row_schedule(op: Op, stage: RowStage) -> RowSchedule:
    """Return the schedule of a row stage."""
    loops = [p for p in stage.passes if p.body]
    folds = [a for p in stage.passes for a in p.body if isinstance(a, Fold)]
    # A buffer of kept values holds one row.
    interleaved = stage.whole_rows and len(loops) > 1 and not stage.keeps
    second = loops[1] if interleaved else None
    vector_by_vector = second is not None and (any(isinstance(a, Fold) for a in second.body) or (stage.streams and puts(second)))
    slow = any(is_slow(e) for p in loops if any(isinstance(a, Fold) for a in p.body) for a in p.body for e in walk(a.value))
    return RowSchedule(
        interleaved,
        vector_by_vector,
        _batches(op, stage, folds),
        sum(o.along_row for o in stage.operands) <= 2 * len(folds),
        # Where a reduction takes long, what is left of short rows is a greater loss: it goes through it one by one.
        4 if slow else 3,
    )


def _batches(op: Op, stage: RowStage, folds: list[Fold]) -> bool:
    """Whether short rows of a stage go together: whole rows with reductions, of ops and their gradients.

    Derivatives of these seldom run on much, and a form more of a loop takes its time to compile. Products that several rows are
    added to, and points of a row that are peeled, have loops of their own.
    """
    added = any(o.written and o.reduction is not None for o in stage.operands)
    peeled = any(p.apart is not None for p in stage.passes)
    return runs_often(op) and stage.whole_rows and stage.once is None and bool(folds) and not added and not peeled


def is_slow(e: Expr) -> bool:
    """Whether an operation takes longer than adding up; a power by a literal is a few products."""
    return isinstance(e, Call) and e.fn in EXPENSIVE and not (e.fn == "pow" and isinstance(e.args[1], Const))
