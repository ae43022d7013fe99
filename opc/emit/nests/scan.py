"""Running reductions as C++: along one index of the target, with a row of accumulators along another."""

from __future__ import annotations

from opc.emit.cpp.expressions import c_compute
from opc.emit.cpp.text import string_literal
from opc.emit.nests.base import NestWriter, Unsupported
from opc.emit.nests.fold import Fold, Sink
from opc.emit.nests.region import Leaf, Local, Range, Regions
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ElementType
from opc.ir.expr import Axis, Expr, Read, free_indices, map_affine
from opc.lower.guards import replace_node
from opc.lower.loop_ir import Scan
from opc.lower.nests.flat import holds_reduction


def write_scan(writer: NestWriter, plan: Scan, regions: Regions) -> None:
    """Write the loop over units of work of one scan.

    Raises:
        Unsupported: when its terms hold reductions.
    """
    _ScanText(writer, plan, regions).write()


class _ScanText:
    def __init__(self, writer: NestWriter, plan: Scan, regions: Regions) -> None:
        self.writer, self.plan, self.regions = writer, plan, regions
        if holds_reduction(plan.reduction.body):
            raise Unsupported("a reduction in a running one")
        self.declared = writer.op.operand(plan.statement.target)
        self.own = Index(writer.names.fresh(plan.lane or "lane"))
        self.start = Index(writer.names.fresh("start"))
        for symbol in (self.own, self.start):
            writer.indices[symbol.name] = symbol.name
        self.over = Range(self.own.name, "0", "count")

    def write(self) -> None:
        """Write the loops."""
        w, plan, flat = self.writer, self.plan, self.plan.statement
        used = free_indices(flat.value)
        for name, extent in zip(flat.indices, flat.extents, strict=True):
            self.regions.bounded[Affine.of(Index(name))] = extent
        outer = [i for i in flat.indices if i not in (plan.lane, plan.index)]
        w.put("opc::cursor at(nest, begin);")
        with w.block("for (int64_t unit = begin; unit < end; ++unit, at.next())"):
            for n, name in enumerate(outer):
                w.indices[name] = w.names.fresh(name)
                if name in used:
                    w.put(f"const int64_t {w.indices[name]} = at.index[{n}];")
            w.put(f"const int64_t {self.start.name} = at.first(), place = at.target();")
            with w.block("opc::with_count(at.count(), nest.lane_stride, [&](auto count, auto stride)", "});"):
                self._along()

    def _moved(self, e: Expr) -> Expr:
        """Return `e` over the lanes of a unit."""
        lane = self.plan.lane
        if lane is None:
            return e
        position = Affine.of(self.start) + self.own
        self.regions.bounded[position] = dict(zip(self.plan.statement.indices, self.plan.statement.extents))[lane]
        return map_affine(e, lambda a: a.substitute(lambda s: position if s == Index(lane) else None))

    def _along(self) -> None:
        """Write the loop along the index that the reduction is carried along."""
        w, plan = self.writer, self.plan
        (axis,) = plan.reduction.axes
        assert isinstance(axis, Axis), "a scan has an axis"
        if plan.lane is not None and plan.lane in axis.extent.indices():
            raise Unsupported("an extent that depends on the lane")
        fold = _Carried(self.regions, self.over, plan)
        w.put(*fold.declarations, f"opc::fill({fold.result}, count, {fold.value_kind}({fold.start()}));")
        extent = dict(zip(plan.statement.indices, plan.statement.extents))[plan.index]
        index = w.indices[plan.index] = w.names.fresh(plan.index)
        term = w.indices[axis.index] = w.names.fresh(axis.index)
        text = Leaf(self.regions, Range("", "", ""))
        w.put(f"int64_t {term} = {text.affine(axis.extent) if plan.from_here else 0};")
        end = text.affine(extent)
        up = f"int64_t {index} = 0; {index} < {end}; ++{index}"
        head = f"int64_t {index} = {end} - 1; {index} >= 0; --{index}" if plan.descending else up
        with w.block(f"for ({head})"):
            last = f"{index}" if plan.from_here else text.affine(axis.extent)
            if not plan.nonempty:
                empty = f"{text.affine(axis.extent)} <= {index if plan.from_here else 0}"
                with w.block(f"if ({empty})"):
                    message = string_literal(f"{w.op.name}: {plan.reduction.kind} over {axis.index}")
                    w.put(f"opc::report(nest, {message}, -1, 0, 0);", "return;")
            with w.block(f"while ({term} > {last})" if plan.from_here else f"for (; {term} < {last}; ++{term})"):
                if plan.from_here:
                    w.put(f"--{term};")
                self.regions.write(self._moved(plan.reduction.body), self.over, Sink(fold, self.own.name))
            result = f"#{fold.result}"
            self.regions.locals[result] = Local(fold.result, plan.reduction.type, True)
            read = Read(result, (Affine.of(self.own),), plan.reduction.type)
            value = self._moved(replace_node(plan.statement.value, plan.reduction, read))
            kind = c_compute(self.declared.type)
            w.put(f"{kind} *const out = reinterpret_cast<{kind} *>(nest.target) + place + {index} * nest.scan_stride;")
            self.regions.write(value, self.over, _Store(self.own.name, self.declared.type))


class _Carried(Fold):
    """The reduction that is carried along."""

    def __init__(self, regions: Regions, over: Range, plan: Scan) -> None:
        super().__init__(regions, over, plan.reduction, (), True)

    def start(self) -> str:
        """Return what the accumulators start from."""
        return self._start()


class _Store:
    """Values go to the target."""

    overwrites = True
    ordered = False

    def __init__(self, lane: str, target: ElementType) -> None:
        self.lane, self.target = lane, target

    def ignores(self, e: Expr) -> bool:
        return False

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        text = leaf.convert(e, self.target).text
        head = f"for (int64_t {self.lane} = {over.low}; {self.lane} < {over.high}; ++{self.lane})"
        return ["OPC_SIMD", f"{head} out[{self.lane} * stride] = {text};"]
