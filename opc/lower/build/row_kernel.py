"""The kernel of a row stage: its plain loops, transformed by the schedule, and its other forms."""

from __future__ import annotations

from opc.ir.dtypes import DType, TypeVar, ValueType
from opc.ir.expr import Expr
from opc.ir.op import Op
from opc.loops.batch import BatchOperand, batch
from opc.loops.interleave import interleave
from opc.loops.names import PARAMETERS, named, parameters_of
from opc.loops.nodes import Body, Form, Kernel, Let, Loop, PassGroup
from opc.loops.row_loops import NontemporalRows, partial, reductions_of, with_row_functions
from opc.loops.values import Intrinsic, Named, Pointer, Word, call, number
from opc.loops.verify import verify_kernel
from opc.lower.build.kernel import spec_names
from opc.lower.build.row_stage import TILE, RowLoops, loaded, stored_type, type_variables, wanted
from opc.lower.heuristics import is_slow as is_expensive
from opc.lower.loop_ir import RowAccumulate, RowBuffer, RowStage
from opc.records import replace


def row_kernel(op: Op, stage: RowStage) -> Kernel:
    """Return the function of a row stage, with the forms that it has for other calls."""
    forms = []
    if stage.once is not None:
        forms.append(Form(Word("tile.once"), "", "_once", _kernel(op, stage.once)))
    if "batch" in stage.schedule:
        forms.append(_batched(op, stage))
    return replace(_kernel(op, stage), forms=tuple(forms))


def _kernel(op: Op, stage: RowStage) -> Kernel:
    """Return the function of a row stage, row by row."""
    rows = RowLoops(op, stage)
    loop = rows.loop()
    if "interleave" in stage.schedule:
        body = interleave(loop, rows.fresh, "prefetch" in stage.schedule)
    else:
        body = (_with_used_pointers(loop, stage),)
    nontemporal = _nontemporal_rows(rows, stage) if "nontemporal" in stage.schedule else None
    return _finished(op, stage, with_row_functions(body, rows.fresh, is_slow, nontemporal), rows.converts)


def _with_used_pointers(loop: Loop, stage: RowStage) -> Loop:
    """Return the loop over rows, with the buffers of what a row keeps behind the pointers to its operands."""
    before = tuple(s for s in loop.body if not isinstance(s, PassGroup))
    buffers = tuple(
        Let(k.name, Pointer(k.type), call("scratch_row", TILE, number(n), types=(k.type,))) for n, k in enumerate(stage.buffers)
    )
    return replace(loop, body=(*before, *buffers, *loop.body[len(before) :]))


def _finished(op: Op, stage: RowStage, body: Body, converts: TypeVar | None = None) -> Kernel:
    flags = tuple(map(wanted, stage.optional))
    names = tuple(o.name for o in stage.operands)
    kernel = Kernel("tile", names, type_variables(op, stage), body, flags=flags, converts=converts)
    kernel = named(kernel, {*spec_names(op), *flags}, parameters_of(kernel))
    verify_kernel(kernel, PARAMETERS)
    return kernel


def _nontemporal_rows(rows: RowLoops, stage: RowStage) -> NontemporalRows:
    """Return the rows that a stage stores."""
    stored = {
        rows.pointer(o): (o.type, wanted(o.name) if stage.optional else "") for o in stage.operands if o.written and o.along_row
    }
    segments = tuple(rows.pointer(o) for o in stage.operands if o.name in stage.schedule.args("segments"))
    read = tuple(rows.pointer(o) for o in stage.operands if rows.is_converted(o) and o.along_row and not o.written)
    converted = None if rows.converts is None else (stored_type(rows.converts), read)
    return NontemporalRows(stored, segments, converted)


def _batched(op: Op, stage: RowStage) -> Form:
    """Return the form of a stage for short rows, several of which go together, each a lane of vectors."""
    vectors, *whole = stage.schedule.args("batch")
    rows = RowLoops(op, stage)
    groups = [s for s in rows.loop().body if isinstance(s, PassGroup)]
    optional = {i.name for i in op.inputs if i.optional}
    operands = [
        BatchOperand(
            rows.pointer(o) if o.along_row or o.written else o.name,
            loaded(o.type) if o.along_row and not o.written else o.type,
            k,
            o.along_row,
            o.written,
            o.name if o.name in optional and not o.written else "",
            wanted(o.name) if stage.optional and o.written else "",
        )
        for k, o in enumerate(stage.operands)
    ]
    lanes = call("count_lanes", types=tuple(dict.fromkeys(_widths(stage, groups))))
    body = batch(groups, operands, [(k.name, k.type) for k in stage.buffers], rows.fresh, lanes, int(vectors))
    kernel = _finished(op, stage, body)
    taken = call("batches_rows", TILE, type=DType.BOOL, types=(lanes, vectors, *(() if whole else ("false",))))
    return Form(taken, "batched_", "", kernel)


def _widths(stage: RowStage, groups: list[PassGroup]) -> list[ValueType | Named]:
    """Return the types of the values along rows: as many rows go together as the widest has lanes."""
    found: list[ValueType | Named] = [o.type for o in stage.operands if o.along_row]
    reductions = {name: f for g in groups for s in g.body if isinstance(s, Loop) for name, f in reductions_of(s).items()}
    for p in stage.passes:
        for a in p.body:
            if isinstance(a, RowAccumulate):
                found.append(partial(reductions[a.name]))
            elif isinstance(a, RowBuffer):
                found.append(a.type)
    return found


def is_slow(e: Expr) -> bool:
    """Whether a value takes longer to compute than to add up."""
    return (isinstance(e, Intrinsic) and e.name == "exp_below") or is_expensive(e)
