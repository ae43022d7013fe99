"""Operands that stand still along stretches of whole rows, such as a scale by channel in rows of channels and points.

In a row along `[j, *S]`, what lacks the last axis has one value for all points of that axis: a stretch of the row. Where nothing
but a loop that puts reads it, that loop runs stretch by stretch, with one value of it for each; else it would be spread over the
points of the row and be read like a tensor. The runtime decides by the sizes of a call, as short stretches are not worth it.
"""

from __future__ import annotations

from dataclasses import replace

from opc.ir.expr import reads
from opc.lower.loop_ir import RowStage
from opc.lower.rows.streams import puts


def with_stretches(stage: RowStage) -> RowStage:
    """Return a row stage that tells which operands it takes once a stretch.

    Only stages that stream have loops of their own for frequent cases.
    """
    if not stage.whole_rows or not stage.streams:
        return stage
    last = stage.row[-1]
    elsewhere = {r.operand for p in stage.passes for a in (*p.prologue, *(() if puts(p) else p.body)) for r in reads(a.value)}
    still = (o.name for o in stage.operands if o.along_row and not o.written and last not in o.loops)
    return replace(stage, still=tuple(name for name in still if name not in elsewhere))
