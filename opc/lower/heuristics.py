"""Schedules on a CPU: which transformations the loops of a stage go through, chosen by what the stage does."""

from __future__ import annotations

from opc.ir.expr import Call, Const, Expr, walk
from opc.ir.op import Op
from opc.ir.printer import format_expr
from opc.loops.schedule import Decisions, Override, Schedule
from opc.lower.loop_ir import IndexLoop, Loop, RowAccumulate, RowStage
from opc.lower.rows.passes import EXPENSIVE
from opc.lower.rows.peel import with_peeled_points
from opc.lower.rows.stores import converted, segments, stores_rows, stores_rows_alone
from opc.records import replace


def scheduled(op: Op, stage: RowStage, overrides: tuple[Override, ...] = ()) -> RowStage:
    """Return a row stage with its schedule."""
    decisions = Decisions(stage.name, overrides)
    stage = _peeled(stage, decisions)
    once = stage.once
    if once is not None and not decisions.take("vectorise", _index(once.row[-1])):
        once = None
    # A call that moves more memory than the caches hold leaves nothing there for whoever reads its outputs next.
    if stores_rows(stage) and (once is None or stores_rows(once)) and decisions.take("nontemporal", worth=runs_often(op)):
        found = segments(stage)
        if found:
            decisions.take("segments", *found)
        of = converted(stage)
        if of is not None and (once is None or converted(once) == of):
            decisions.take("convert", of.name)
        if once is not None:
            once = replace(once, schedule=Schedule(tuple(t for t in decisions.taken if t.name in ("nontemporal", "convert"))))
    if once is not None:
        once = _by_passes(once, Decisions(once.name, overrides, dict.fromkeys(once.schedule.steps)))
    stage = replace(stage, once=once, schedule=decisions.schedule)
    return _batched(op, _by_passes(stage, decisions), decisions)


def _peeled(stage: RowStage, decisions: Decisions) -> RowStage:
    """Return a stage whose passes take points of the row by themselves at which a condition holds."""
    peeled = with_peeled_points(stage)
    conditions = [format_expr(p.peeled).replace("[()]", "") for p in peeled.passes if p.peeled is not None]
    return peeled if conditions and decisions.take("peel", *dict.fromkeys(conditions)) else stage


def _by_passes(stage: RowStage, decisions: Decisions) -> RowStage:
    """Return a stage with several rows going through a pass before the next one, where there are several passes."""
    loops = [p for p in stage.passes if p.body]
    # A buffer of kept values holds one row.
    if stage.whole_rows and len(loops) > 1 and not stage.buffers and decisions.take("interleave"):
        reductions = any(isinstance(a, RowAccumulate) for a in loops[1].body)
        if reductions or ("nontemporal" in stage.schedule and stores_rows_alone(loops[1])):
            decisions.take("prefetch")
    return replace(stage, schedule=decisions.schedule)


def _batched(op: Op, stage: RowStage, decisions: Decisions) -> RowStage:
    """Return a stage with a form for short rows, several of which go together: whole rows with reductions.

    Derivatives of gradients seldom run on much, and a form more of a loop takes its time to compile. Products that several rows
    are added to, and points of a row that are peeled, have loops of their own. Where a reduction takes long, what is left of
    short rows is a greater loss: it goes through it one by one. To transpose the rows may cost more than to join the lanes of
    their reductions, so that rows of whole vectors are left as they are.
    """
    loops = [p for p in stage.passes if p.body]
    reducing = [p for p in loops if any(isinstance(a, RowAccumulate) for a in p.body)]
    added = any(o.written and o.reduction is not None for o in stage.operands)
    peeled = any(p.peeled is not None for p in stage.passes)
    if not stage.whole_rows or stage.once is not None or not reducing or added or peeled:
        return stage
    slow = any(is_slow(e) for p in reducing for a in p.body for e in walk(a.value))
    reductions = sum(isinstance(a, RowAccumulate) for p in loops for a in p.body)
    whole = sum(o.along_row for o in stage.operands) <= 2 * reductions
    decisions.take("batch", "4" if slow else "3", *(("whole",) if whole else ()), worth=runs_often(op))
    return replace(stage, schedule=decisions.schedule)


def runs_often(op: Op) -> bool:
    """Whether an op is worth a loop of its own for a frequent case: it is no derivative, or the gradient of an op."""
    derived = op.derivation
    return derived is None or (derived.kind == "vjp" and derived.order == 1)


def is_slow(e: Expr) -> bool:
    """Whether an operation takes longer than adding up; a power by a literal is a few products."""
    return isinstance(e, Call) and e.fn in EXPENSIVE and not (e.fn == "pow" and isinstance(e.args[1], Const))


def _index(loop: Loop) -> str:
    """Return what a loop is called by: its index, or the axes of its group."""
    return loop.index if isinstance(loop, IndexLoop) else str(loop)
