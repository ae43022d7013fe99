"""Loop nests over rows as C++: the outer loops of a statement in parallel, the innermost one vectorised.

Along the last index of the target, the lane, reductions keep their partial results in a row of accumulators, and their loops
stand outside of the loop over the lane. Without a lane each reduction is a loop of its own that ends in one value.
"""

from __future__ import annotations

from dataclasses import replace

from opc.emit.cpp.expressions import c_compute
from opc.emit.cpp.text import comment
from opc.emit.nests.base import NestWriter, Unsupported, gathered
from opc.emit.nests.places import write_places
from opc.emit.nests.planes import PlaneBlocks, plane_blocks
from opc.emit.nests.reduce import Reductions
from opc.emit.nests.region import Leaf, Range, Regions, RowStore
from opc.emit.nests.scan import write_scan
from opc.emit.nests.scatter import write_scatter
from opc.ir.affine import Affine, Index
from opc.ir.expr import Expr, Read, Select, free_indices, map_affine
from opc.ir.op import Assign, Op
from opc.ir.printer import format_assign
from opc.lower.alone import of_statement
from opc.lower.guards import is_identity
from opc.lower.loop_ir import Lanes, NestStage, Scan, Scatter
from opc.lower.nests.flat import in_phase, is_positive, period

_OWN_NAMES = frozenset(
    [
        "nest",
        "call",
        "begin",
        "end",
        "at",
        "unit",
        "arguments",
        "place",
        "count",
        "start",
        "buffer",
        "out",
        "row",
        "lanes",
        "to",
        "phase",
        "phases",
        "pitch",
        "low_place",
        "high_place",
        "stride",
        "zero",
        "position",
        "here",
        "better",
        "copies",
    ]
)
"""The parameters and variables of every nest's function."""


class RowNestText(NestWriter):
    """The function of one statement that is run row by row.

    Raises:
        Unsupported: when the statement has no such form.
    """

    def __init__(self, op: Op, stage: NestStage) -> None:
        super().__init__(op, stage, _OWN_NAMES)
        self.declared = op.operand(stage.assign.target)
        self.gathered = gathered(stage)
        self._positive: dict[Affine, bool] = {}
        self.planes: PlaneBlocks | None = None
        self._function()

    def positive(self, size: Affine) -> bool:
        """Whether a size is known to be greater than zero."""
        if size not in self._positive:
            self._positive[size] = is_positive(self.op, size)
        return self._positive[size]

    def unit(self, operand: str, alone: bool) -> int:
        """Return the entry along which an operand is contiguous; `alone` when the trailing group has one point."""
        dims = self.op.operand(operand).dims
        trailing = self.declared.dims[-1] if alone else None
        kept = [n for n, d in enumerate(dims) if d != trailing]
        return kept[-1] if kept else len(dims) - 1

    def _function(self) -> None:
        first = self.stage.plans[0]
        if len(self.stage.plans) > 1:
            with self.block("if (nest.alone)"):
                self._plan(self.stage.plans[1], alone=True)
                self.put("return;")
        self._plan(first, alone=False)
        body = "\n".join(self.lines)
        views = []
        for n, name in enumerate(self.operands[:-1]):
            view = self.view(name)
            if f"{view}." in body:
                kind = c_compute(self.op.operand(name).type)
                form = "stored_flat" if name in self.gathered else "flat"
                views.append(f"  const opc::{form}<{kind}> {view} = opc::{form}_of<{kind}>(nest, {n});")
        signature = "OPC_ROW_NEST void ", "(const opc::row_nest &nest, const void *call, int64_t begin, int64_t end) {"
        self.define(signature, [*self.prologue(), *views, comment(format_assign(self.stage.assign), 2), body, "}"])

    def _plan(self, plan: Lanes | Scatter | Scan, alone: bool) -> None:
        """Write the loop over units of work of one plan."""
        flat = plan.statement
        kind = c_compute(self.declared.type)
        self.indices = {}
        regions = Regions(self, self.positive, self.gathered, {n: self.unit(n, alone) for n in self.operands[:-1]})
        if alone:
            regions.bounded[Affine.of(0)] = self.stage.plans[0].statement.extents[-1]
        if isinstance(plan, Scatter):
            write_scatter(self, plan, regions)
            return
        if isinstance(plan, Scan):
            write_scan(self, plan, regions)
            return
        used = free_indices(flat.value)
        self.put("opc::cursor at(nest, begin);")
        copied = self._copies(flat.value, plan.lane)
        if copied:
            self.put("opc::row_copies copies(nest);")
        else:
            self.put(f"{kind} buffer[{self._buffer_size(plan)}];")
        ahead = len(self.lines)
        for n, name in enumerate(flat.indices):
            regions.bounded[Affine.of(Index(name))] = flat.extents[n]
        planes = None if alone else plane_blocks(regions, plan)
        if planes is not None:
            self.planes = planes
            planes.write_tables()
        with self.block("for (int64_t unit = begin; unit < end; ++unit, at.next())"):
            for n, name in enumerate(plan.outer):
                self.indices[name] = self.names.fresh(name)
                if name in used:
                    self.put(f"const int64_t {self.indices[name]} = at.index[{n}];")
            if self.stage.stored:
                self.put("const int64_t place = at.target();")
            if planes is not None:
                planes.write_block()
            if plan.lane is None:
                self._point(flat.value, regions)
            elif copied:
                self._copy_row(flat.value, plan.lane, regions)
            else:
                declared = self._row(plan, plan.lane, regions)
                self.lines[ahead:ahead] = [f"{self.margin[2:]}{line}" for line in declared]

    def _buffer_size(self, plan: Lanes) -> str:
        if plan.lane is None:
            return "1"
        return "2 * opc::nest_lanes" if period(self.op, plan.statement.value, plan.lane) is not None else "opc::nest_lanes"

    def _point(self, value: Expr, regions: Regions) -> None:
        """Write the value of one point."""
        kind = c_compute(self.declared.type)
        rest = Reductions(regions, Range("", "", "")).run(value)
        leaf = Leaf(regions, Range("", "", ""))
        leaf.lazy = True
        text = leaf.convert(rest, self.declared.type).text
        self.put(*leaf.before, f"{kind} *const out = opc::result_row(nest, place, buffer);", f"out[0] = {text};")
        self.put("opc::finish_row(nest, place, out, 1);")

    def _row(self, plan: Lanes, lane: str, regions: Regions) -> list[str]:
        """Write a piece of a row, phase by phase where lanes that are a period apart are alike, and return what it needs declared
        ahead of the loop over units."""
        value, extent = plan.statement.value, plan.statement.extents[-1]
        kind = c_compute(self.declared.type)
        divisor = period(self.op, value, lane)
        start, own = Index(self.names.fresh("start")), Index(self.names.fresh(lane))
        self.indices[start.name], self.indices[own.name] = start.name, own.name
        regions.row_lane = own.name
        if plan.looked_up:
            regions.row_size = "opc::place_row"
        self.put(f"const int64_t {start.name} = at.first();", "const int64_t count = at.count();")
        if divisor is None:
            position = Affine.of(start) + own
            regions.bounded[position] = extent
            value = map_affine(value, lambda a: a.substitute(lambda s: position if s == Index(lane) else None))
            over = Range(own.name, "0", "count")
            declared = write_places(self, plan, value, over, regions)
            self.put(f"{kind} *const out = {'opc::result_row(nest, place, buffer)' if self.stage.stored else 'buffer'};")
            rest = Reductions(regions, over).run(value)
            zeroed = self.stage.stored and not plan.inner and regions.is_mostly_zero(rest, over.lane)
            if zeroed:
                declared.append("opc::zero_units(nest, begin, end);")
                self.put(f"if (out == buffer) opc::fill(out, count, {kind}(0));")
            regions.write(rest, over, RowStore(own.name, self.declared.type, zeroed))
            if self.stage.stored:
                self.put("opc::finish_row(nest, place, out, count);")
            if self.stage.sum is not None:
                self.put("opc::sum_unit(nest, unit, out, count);")
            return declared
        self.indices["phase"] = "phase"
        phase = Affine.of(start) + Index("phase")
        regions.bounded[divisor * own + phase] = extent
        value = map_affine(value, lambda a: in_phase(a, lane, divisor, Affine.of(own), phase))
        text = Leaf(regions, Range("", "", "")).affine(divisor)
        self.put(f"const int64_t phases = {text};", "const int64_t pitch = (count + phases - 1) / phases;")
        self.put(f"{kind} *const row = phases == 1 ? opc::result_row(nest, place, buffer) : buffer;")
        with self.block("for (int64_t phase = 0; phase < phases && phase < count; ++phase)"):
            self.put("const int64_t lanes = (count - phase + phases - 1) / phases;")
            self.put(f"{kind} *const out = row + phase * pitch;")
            over = Range(own.name, "0", "lanes")
            regions.write(Reductions(regions, over).run(value), over, RowStore(own.name, self.declared.type))
        with self.block("if (phases == 1)"):
            self.put("opc::finish_row(nest, place, row, count);")
        self.lines.pop()
        with self.block("} else"):
            self.put("opc::finish_phases(nest, place, row, pitch, phases, count);")
        return []

    def _copies(self, value: Expr, lane: str | None) -> bool:
        """Whether a row is a row of an operand that is stored as the target is, or zeros, and needs no more than to be copied."""
        if self.stage.sum is not None:
            return False
        while isinstance(value, Select) and is_identity("sum", value.other):
            if lane in free_indices(value.cond):
                return False
            value = value.then
        return isinstance(value, Read) and value.pad is None and self._is_row(value, lane)

    def _is_row(self, e: Read, lane: str | None) -> bool:
        last = e.indices[-1] if e.indices else None
        if lane is None or not isinstance(last, Affine) or last.index != lane or self.is_optional(e.operand):
            return False
        others = free_indices(replace(e, indices=e.indices[:-1])) if len(e.indices) > 1 else set()
        # A temporary holds what is computed of a half type.
        held = {t.name for t in self.op.temporaries}
        alike = (e.operand in held) == (self.declared.name in held) and self.op.operand(e.operand).type == self.declared.type
        return e.operand in self.gathered and lane not in others and alike

    def _copy_row(self, value: Expr, lane: str, regions: Regions) -> None:
        """Write the copying of a row."""
        start = self.names.fresh("start")
        self.indices[lane] = start
        self.put(f"const int64_t {start} = at.first();")
        while isinstance(value, Select):
            with self.block(f"if (!({regions.condition((value.cond,))}))"):
                self.put("copies.zero(place, at.count());", "continue;")
            value = value.then
        assert isinstance(value, Read), "only a read is copied"
        leaf = Leaf(regions, Range("", "", ""))
        places = leaf.places(value)
        self.put(*leaf.before)
        number = self.operands.index(value.operand)
        self.put(f"copies.copy({number}, {leaf.offset(value, places)}, place, at.count());")


def row_nest_text(op: Op, stage: NestStage) -> RowNestText | None:
    """Return the function of a statement that can be run row by row, else None; of stages alike but for their names, the same."""
    return _row_nest_text(op, stage.assign, replace(stage, name=""))


@of_statement
def _row_nest_text(op: Op, assign: Assign, stage: NestStage) -> RowNestText | None:
    if not stage.plans:
        return None
    try:
        return RowNestText(op, stage)
    except Unsupported:
        return None
