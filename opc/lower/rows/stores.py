"""Row stages that store rows alone: their stores may be non-temporal, their loops may convert what they read and store, and their
operands may stay the same along segments."""

from __future__ import annotations

from opc.ir.dtypes import TypeVar, half_types
from opc.ir.expr import reads
from opc.lower.loop_ir import Pass, RowAccumulate, RowBuffer, RowStage, RowStore


def stores_rows_alone(p: Pass) -> bool:
    """Whether a pass does nothing along the row but compute values and store them."""
    return (
        p.peeled is None
        and any(isinstance(a, RowStore) for a in p.body)
        and not any(isinstance(a, RowAccumulate | RowBuffer) for a in p.body)
    )


def stores_rows(stage: RowStage) -> bool:
    """Whether every row that a stage writes is stored, each element once, in such passes.

    The rows have one type, so that a loop stores a vector of each at a time. A product that may take in several points is the sum
    of what is stored there, and has the axes of the stage, so that it may turn out to take in one each.
    """
    rows = [o for o in stage.operands if o.written and o.along_row]
    stored = [a.name for p in stage.passes if stores_rows_alone(p) for a in p.body if isinstance(a, RowStore)]
    kept = any(isinstance(a, RowBuffer) and a.host is not None for p in stage.passes for a in p.body)
    axes = len(stage.outer) + len(stage.row)
    summed = all(o.reduction is None or (o.reduction == "sum" and len(o.loops) == axes) for o in rows)
    alike = summed and len({o.type for o in rows}) == 1
    return alike and not kept and sorted(stored) == sorted(o.name for o in rows)


def converted(stage: RowStage) -> TypeVar | None:
    """Return the type whose elements a stage that stores rows may take as they are stored, to convert them itself; None where no
    such type is a minifloat of 16 bits.

    It is the type of the rows that are stored, and of some that are read. Temporaries are stored as they are computed, and a
    reduction adds to what it stores, so that no result is either. No operand of another type may be such a minifloat, for the
    runtime tells by their element types which operands are passed as they are stored.
    """
    if stage.whole_rows or not stores_rows(stage):
        return None
    written = [o for o in stage.operands if o.written]
    of = written[0].type
    if not isinstance(of, TypeVar) or not half_types(of):
        return None
    if any(o.kind == "temporary" or o.reduction is not None or o.type != of for o in written):
        return None
    read = [o for o in stage.operands if not o.written]
    alike = any(o.type == of and o.along_row and o.kind != "temporary" for o in read)
    return of if alike and not any(half_types(o.type) for o in read if o.type != of) else None


def segments(stage: RowStage) -> tuple[str, ...]:
    """Return the operands of whole rows that have one value for a segment of the row along its last axis: inner-invariant ones.

    In a row along `[j, *S]`, such as channels and points, what lacks the last axis has one value for all points of that axis.
    Where nothing but a loop that stores reads it, that loop runs segment by segment; else it would be spread over the points of
    the row and be read like a tensor. The runtime decides by the sizes of a call, as short segments are not worth it.
    """
    if not stage.whole_rows:
        return ()
    last = stage.row[-1]
    elsewhere = {
        r.operand for p in stage.passes for a in (*p.prologue, *(() if stores_rows_alone(p) else p.body)) for r in reads(a.value)
    }
    invariant = (o.name for o in stage.operands if o.along_row and not o.written and last not in o.loops)
    return tuple(name for name in invariant if name not in elsewhere)
