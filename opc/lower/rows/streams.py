"""Row stages whose outputs go past the caches in large calls.

A call that moves more memory than the caches hold leaves nothing there for whoever reads its outputs next. And a line of memory
that is written whole past the caches need not be fetched first. The runtime decides by the sizes of a call; here is told where it
may, and that it is worth a second form of the loop: ops and their gradients run on large tensors, derivatives of these seldom do.
"""

from __future__ import annotations

from dataclasses import replace

from opc.ir.op import Op
from opc.lower.loop_ir import Fold, Keep, Pass, Put, RowStage


def with_streams(op: Op, stage: RowStage) -> RowStage:
    """Return the stage of an op, which streams what it writes where it can."""
    if not runs_often(op) or not _puts_rows(stage) or (stage.once is not None and not _puts_rows(stage.once)):
        return stage
    return replace(stage, streams=True, once=None if stage.once is None else replace(stage.once, streams=True))


def runs_often(op: Op) -> bool:
    """Whether an op is worth a loop of its own for a frequent case: it is no derivative, or the gradient of an op."""
    derived = op.derivation
    return derived is None or (derived.kind == "vjp" and derived.order == 1)


def puts(p: Pass) -> bool:
    """Whether a pass does nothing along the row but compute values and put them."""
    return p.apart is None and any(isinstance(a, Put) for a in p.body) and not any(isinstance(a, Fold | Keep) for a in p.body)


def _puts_rows(stage: RowStage) -> bool:
    """Whether every row the stage writes is put, each element once, in such passes.

    The rows have one type, so that a loop puts a vector of each at a time. A product that may take in several points is the sum
    of what is put there, and has the axes of the stage, so that it may turn out to take in one each.
    """
    rows = [o for o in stage.operands if o.written and o.along_row]
    put = [a.name for p in stage.passes if puts(p) for a in p.body if isinstance(a, Put)]
    kept = any(isinstance(a, Keep) and a.host is not None for p in stage.passes for a in p.body)
    axes = len(stage.outer) + len(stage.row)
    summed = all(o.reduction is None or (o.reduction == "sum" and len(o.loops) == axes) for o in rows)
    alike = summed and len({o.type for o in rows}) == 1
    return alike and not kept and sorted(put) == sorted(o.name for o in rows)
