"""Sums over windows of planes as C++: the tables of what counts, and the planes of channels that are computed together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opc.emit.cpp.expressions import c_compute
from opc.emit.nests.base import NestWriter
from opc.emit.nests.region import Leaf, Local, Range, Regions, RowStore
from opc.ir.affine import Affine, Index
from opc.ir.expr import Read, map_affine
from opc.lower.guards import replace_node
from opc.lower.loop_ir import Lanes
from opc.lower.nests.planes import PlaneAxis, Planes, planes_of


@dataclass(frozen=True, slots=True)
class PlaneNames:
    """The locals that hold the tables of planes, whether they are there, and the memory that planes are put together in."""

    tables: str
    found: str
    memory: str


class PlaneBlocks:
    """Writes what computes the planes of several channels at once, ahead of the units that they are made of."""

    def __init__(self, regions: Regions, plan: Lanes, planes: Planes) -> None:
        self.regions, self.plan, self.planes = regions, plan, planes
        self.writer: NestWriter = regions.writer
        self.kind = c_compute(planes.sum.type)
        self.channel = plan.statement.indices.index(planes.channel)
        fresh = self.writer.names.fresh
        self.names = PlaneNames(fresh("planes"), fresh("by_planes"), fresh("memory"))

    def write_tables(self) -> None:
        """Write the tables of what counts at each row and each column."""
        w, names = self.writer, self.names
        leaf = Leaf(self.regions, Range("", "", ""))
        axes = self.planes.axes
        last = len(self.plan.statement.indices) - 1
        sizes = [f"nest.size[{last + 1 - len(axes) + n}], {leaf.affine(a.axis.extent)}" for n, a in enumerate(axes)]
        places = [self._place(a) for a in axes]
        if len(axes) == 1:
            sizes.insert(0, "1, 1")
            places.insert(0, "[](int64_t, int64_t) { return int64_t(0); }")
        w.put(f"opc::plane_tables {names.tables};")
        many = f"opc::are_many<{self.kind}>(nest.size[{self.channel}])"
        w.put(f"const bool {names.found} = nest.pieces == 1 && {many} &&")
        held = f"{w.view(self.planes.element.operand)}.size[{len(self.planes.element.indices) - 1}]"
        w.put(f"    opc::find_planes<{self.kind}>({names.tables}, {held}, {', '.join(sizes)},")
        w.put(f"        {places[0]},", f"        {places[1]});")
        w.put(f"const opc::plane_memory {names.memory}({names.found});")

    def _place(self, a: PlaneAxis) -> str:
        """Return a function that tells the place of a point of a window, or -1."""
        w = self.writer
        indices = dict(w.indices)
        at, tap = (w.names.fresh(n) for n in (a.index, a.axis.index))
        w.indices |= {a.index: at, a.axis.index: tap}
        place = Leaf(self.regions, Range("", "", "")).affine(a.place)
        condition = self.regions.condition(a.guards)
        w.indices = indices
        value = place if condition == "true" else f"{condition} ? {place} : int64_t(-1)"
        return f"[&](int64_t {at}, int64_t {tap}) -> int64_t {{ return {value}; }}"

    def write_block(self) -> None:
        """Write the computing of several planes where the present unit is the first one of one, and the move behind them."""
        w, names, planes = self.writer, self.names, self.planes
        count, sums, finish = (w.names.fresh(n) for n in ("channels", "sums", "finish"))
        head = f"opc::planes_from<{self.kind}>(nest, at, {self.channel}, end - unit)"
        w.put(f"const int64_t {count} = {names.found} ? {head} : 0;")
        with w.block(f"if ({count} > 0)"):
            leaf = Leaf(self.regions, Range("", "", ""))
            term = "1" if planes.term is None else leaf.affine(planes.term.extent)
            w.put(f"const opc::plane_sums<{self.kind}> {sums} = {{")
            w.put(f"    {self._operand(planes.element, leaf, [(a.index, a.axis.index, a.entry) for a in planes.axes])},")
            own = [Affine.of(Index(a.axis.index)) for a in planes.axes]
            entries = [planes.factor.indices.index(i) for i in own]
            w.put(f"    {self._operand(planes.factor, leaf, [(a.axis.index, '', n) for a, n in zip(planes.axes, entries)])},")
            w.put(f"    {term}, {'true' if planes.padded else 'false'}}};")
            self._finish(finish, count)
            call = f"nest, {names.tables}, {sums}, {names.memory}, {count}, place, {finish}"
            with w.block(f"if (opc::sum_planes<{self.kind}>({call}))"):
                w.put(f"unit += opc::to_last_unit(nest, at, {self.channel}, {count});", "continue;")

    def _operand(self, r: Read, leaf: Leaf, axes: list[tuple[str, str, int]]) -> str:
        """Return where an operand's planes lie, which the entries of `axes` run along."""
        view = self.writer.view(r.operand)
        moving = {name for a in axes for name in a[:2]} | ({self.planes.term.index} if self.planes.term else set())

        def stride(index: str) -> str:
            entry = [n for n, i in enumerate(r.indices) if i == Affine.of(Index(index))]
            return f"{view}.stride[{entry[0]}]" if entry else "0"

        first = [
            i.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in moving else None)
            if not any(n == a[2] for a in axes)
            else Affine.of(0)
            for n, i in enumerate(r.indices)
            if isinstance(i, Affine)
        ]
        offset = leaf.offset(replace(r, indices=tuple(first)), {})
        row = f"{view}.stride[{axes[0][2]}]" if len(axes) > 1 else "0"
        term = stride(self.planes.term.index) if self.planes.term else "0"
        return f"{{{view}.data + ({offset}), {stride(self.planes.channel)}, {row}, {term}}}"

    def _finish(self, name: str, count: str) -> None:
        """Write the function that makes results of sums, lane by lane of their tile."""
        w, planes, regions = self.writer, self.planes, self.regions
        flat = self.plan.statement
        if flat.value is planes.sum:
            w.put(f"const auto {name} = []({self.kind} *, int64_t) {{}};")
            return
        own = Index(w.names.fresh("lane"))
        w.indices[own.name] = own.name
        local = f"#{name}"
        regions.locals[local] = Local("out", planes.sum.type, True)
        position = Affine.of(Index(planes.channel)) + own
        regions.bounded[position] = flat.extents[self.channel]
        rest = replace_node(flat.value, planes.sum, Read(local, (Affine.of(own),), planes.sum.type))
        rest = map_affine(rest, lambda a: a.substitute(lambda s: position if s == Index(planes.channel) else None))
        tile, points, point, lanes = (w.names.fresh(n) for n in ("tile", "points", "point", "lanes"))
        with (
            w.block(f"const auto {name} = [&]({self.kind} *{tile}, int64_t {points})", "};"),
            w.block(f"opc::with_channels<{self.kind}>({count}, [&](auto {lanes})", "});"),
            w.block(f"for (int64_t {point} = 0; {point} < {points}; ++{point})"),
        ):
            w.put(f"{self.kind} *const out = {tile} + {point} * opc::plane_vector<{self.kind}>::lanes;")
            regions.write(rest, Range(own.name, "0", lanes), RowStore(own.name, w.op.operand(flat.target).type))


def plane_blocks(regions: Regions, plan: Lanes) -> PlaneBlocks | None:
    """Return what writes a statement's planes of several channels at once, None where its sum is none over windows of planes."""
    w = regions.writer
    planes = planes_of(w.op, plan.statement, w.sizes, regions.bounded, regions.positive)
    if planes is None:
        return None
    found = (planes.element, planes.factor)
    if any(r.operand in regions.gathered or regions.units[r.operand] != len(r.indices) - 1 for r in found):
        return None
    return PlaneBlocks(regions, plan, planes)
