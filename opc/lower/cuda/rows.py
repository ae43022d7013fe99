"""Stages of points and rows on a device: points go to all threads, rows to teams of them."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Const, Present
from opc.ir.op import Op
from opc.loops.bind import TILE, bind, bind_row
from opc.loops.nodes import Accumulate, Body, If, Kernel, Let, Loop, Statement, Store, bodies, statements, with_bodies
from opc.loops.packs import CHUNK, COUNT, PIECES, PLAIN, Packed, PackedRow, with_packs
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Construct, IntegerChoice, Local, Named, StoredType, call, number, variable
from opc.lower.build.row_stage import RowLoops, type_variables, wanted
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import IndexLoop, RowBuffer, RowStage, RowStore
from opc.records import replace


def bound_part(stage: RowStage) -> RowStage | None:
    """Return what of a stage has a kernel: all but the products that it reduces over its points. None where nothing is left, or
    where rows are only reduced and what they read lies together along another axis."""
    if _is_across(stage):
        return None
    reduced = {o.name for o in stage.operands if o.reduction is not None}
    if not reduced:
        return stage
    operands = tuple(o for o in stage.operands if o.name not in reduced)
    passes = tuple(
        replace(
            p,
            prologue=tuple(a for a in p.prologue if not (isinstance(a, RowStore) and a.name in reduced)),
            body=tuple(a for a in p.body if not (isinstance(a, RowStore) and a.name in reduced)),
        )
        for p in stage.passes
    )
    # A single product needs no care: nothing runs without it.
    optional = tuple(name for name in stage.optional if name not in reduced)
    optional = optional if len(optional) > 1 else ()
    needed = {name: by - reduced for name, by in stage.needed.items() if optional and by - reduced}
    part = replace(stage, operands=operands, passes=passes, needed=needed, optional=optional, once=None)
    return part if part.products else None


def _is_across(stage: RowStage) -> bool:
    """Whether a stage reduces rows that lie along no last axis of what they read; a group behind them may have one point."""
    if not stage.whole_rows or any(o.along_row for o in stage.products):
        return False
    last = [o.loops[-1] for o in stage.operands if o.along_row]
    return all(isinstance(loop, IndexLoop) and loop not in stage.row for loop in last)


def row_kernel(op: Op, stage: RowStage) -> Kernel:
    """Return the function of a stage, whose variables have no names of their own yet."""
    plain = replace(stage, once=None, schedule=Schedule(), passes=tuple(replace(p, peeled=None) for p in stage.passes))
    rows = DeviceRows(op, plain)
    loop = rows.loop()
    body: Body = (bind(loop),) if stage.whole_rows else bind_row(loop)
    shared = {o.name for o in stage.operands if stage.whole_rows and not o.written and set(o.loops) <= set(stage.row)}
    operands = enumerate(stage.operands)
    along = {rows.pointer(o): PackedRow(k, o.written, o.name in shared) for k, o in operands if o.along_row}
    packed = with_packs(body, along, {rows.buffer(b): b.type for b in rows.kept()}, rows.fresh)
    often = runs_often(op)
    pieces = pieces_of(packed) if often else 1
    body = (*rows.heads(pieces if any(isinstance(s, Loop) for s in statements(packed.body)) else 0), *_at_run_time(packed.body))
    names = tuple(o.name for o in stage.operands)
    how = ("rows to teams", "points to threads") if stage.whole_rows else ("points to all threads",)
    steps = [Transformation("bind", how), Transformation("pack", ("16 bytes",)), Transformation("unroll", (str(pieces),))]
    if stage.whole_rows:
        # While the threads of a block wait for one another, those of another read: what runs often fits in half the registers.
        steps.append(Transformation("occupancy", ("2" if often else "1",)))
    schedule = Schedule(tuple(steps))
    return Kernel("cuda", names, type_variables(op, plain), body, schedule=schedule)


def pieces_of(packed: Packed) -> int:
    """Return how many packs of each row a thread has at once: as many as leave room in its registers, which are 4 for 16 bytes.

    Of what is computed, elements of 16 bits take twice as much as they take in memory.
    """
    registers = 4 * packed.stored + 8 * packed.computed
    return next((n for n in (4, 2) if n * registers <= 24), 1)


def _at_run_time(body: Body) -> Body:
    """Return a body whose tests of what is wanted are made in a call: a kernel has one copy for all."""
    found = (with_bodies(s, tuple(map(_at_run_time, bodies(s)))) for s in body)
    return tuple(replace(s, static=False) if isinstance(s, If) else s for s in found)


class DeviceRows(RowLoops):
    """Builds the plain form of a row stage whose rows are read as they are stored, and whose buffers hold what is computed."""

    def __init__(self, op: Op, stage: RowStage) -> None:
        super().__init__(op, stage, vectors=False)

    def heads(self, pieces: int) -> Iterator[Statement]:
        """Yield what stands before the loop over rows: which products are wanted, how many neighbours a pack has, and a chunk."""
        for k, o in enumerate(self.stage.operands):
            if o.name in self.optional():
                yield Let(wanted(o.name), DType.BOOL, call("is_wanted", TILE, number(k), type=DType.BOOL))
        along = tuple(dict.fromkeys(StoredType(o.type, o.name) for o in self.stage.operands if o.along_row))
        if pieces > 0:
            yield Let(f"@{COUNT}", Named("constexpr int"), call("count_packed", types=along))
            yield Let(f"@{PIECES}", Named("constexpr int"), call("count_pieces", types=(PLAIN, str(pieces))))
            step = "step_of_chunks" if self.stage.whole_rows else "columns_of_chunk"
            yield Let(f"@{CHUNK}", Weak.INT, call(step, TILE, types=(COUNT, PIECES)))

    def pointers(self) -> Iterator[Statement]:
        """Yield the rows of operands, the values that these have once a row, and the buffers."""
        starts = Local(self.fresh("starts"), Weak.INT)
        if self.stage.operands:
            yield Let(starts.name, Named("auto"), call("row_offsets", TILE, variable("@row")))
        for k, o in enumerate(self.stage.operands):
            stored = StoredType(o.type, o.name, not o.written)
            if o.written or o.along_row:
                row = "device_row_of" if o.along_row else "single_row_of"
                yield Let(self.pointer(o), Named("auto"), call(row, TILE, number(k), starts, types=(stored,)))
                continue
            value = call("row_value", TILE, number(k), starts, type=o.type, types=(stored,))
            if any(i.name == o.name and i.optional for i in self.op.inputs):
                yield Let(o.name, o.type, IntegerChoice(Present(o.name), value, Construct(o.type, Const(0, o.type))))
            else:
                yield Let(o.name, o.type, value)
            self.values.values[o.name] = Local(o.name, o.type)
        for n, kept in enumerate(self.kept()):
            yield Let(self.buffer(kept), Named("auto"), call("buffer_of", TILE, number(n), types=(kept.type,)))

    def optional(self) -> frozenset[str]:
        """Return the products that a call may leave out while it asks for others: optional outputs, and what only these need."""
        always = {o.name for o in self.op.outputs if not o.optional}
        products = frozenset(o.name for o in self.stage.products)
        return products - always if len(products) > 1 else frozenset()

    def if_wanted(self, s: Statement, needed: frozenset[str]) -> Statement:
        """As `RowLoops` says, of each product by itself: what several need is computed."""
        names = {self.pointer(o): o.name for o in self.stage.products if o.name in self.optional()}
        name = names.get(s.target.name) if isinstance(s, Store | Accumulate) else None
        return s if name is None else If(Local(wanted(name), DType.BOOL), (s,), static=True)

    def kept(self) -> tuple[RowBuffer, ...]:
        """Return what rows keep from one pass to the next."""
        return kept(self.stage)

    def buffer(self, buffered: RowBuffer) -> str:
        """As `RowLoops` says: products are narrower than what is computed, and keep nothing."""
        return f"{buffered.name}_kept#0"


def kept(stage: RowStage) -> tuple[RowBuffer, ...]:
    """Return what the rows of a stage keep from one pass to the next."""
    return tuple(a for p in stage.passes for a in p.body if isinstance(a, RowBuffer))
