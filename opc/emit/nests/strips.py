"""Loops over windows strip by strip, as C++: which lanes' windows lie inside, and the elements in them one after the other.

The runtime calls the loops over the elements for strips of several vectors, whose windows all lie inside, and for other lanes.
"""

from __future__ import annotations

from opc.emit.cpp.expressions import c_compute
from opc.emit.nests.region import Leaf, Range, Regions
from opc.emit.nests.taps import lie, runs_along
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis, Expr, Read, Reduce
from opc.lower.guards import Guard

_FOLDS = ("sum", "max", "min")


class Strips:
    """Writes loops over the windows of one row. `guards` are the conditions under which an element counts."""

    def __init__(self, regions: Regions, row: Range, axes: list[Axis], read: Read, guards: tuple[Affine, ...]) -> None:
        self.regions, self.row, self.axes, self.read, self.guards = regions, row, axes, read, guards
        self.writer = regions.writer
        self.ranges: dict[str, tuple[str, str]] = {}

    def text(self, a: Affine) -> str:
        """Return an integer that doesn't depend on the lane."""
        return Leaf(self.regions, Range("", "", "")).affine(a)

    def range(self, axis: Axis) -> None:
        """Write the range of an axis of the windows where it lies inside, as far as the lane does not matter."""
        w = self.writer
        extent = self.text(axis.extent)
        found = [g for g in self.guards if axis.index in g.indices() and self.row.lane not in g.indices()]
        if not found:
            self.ranges[axis.index] = ("0", extent)
            return
        low, high = self.ranges[axis.index] = (w.names.fresh("low"), w.names.fresh("high"))
        w.put(f"int64_t {low} = 0, {high} = opc::greatest(0, {extent});")
        for g in found:
            self.regions.clip(g, axis.index, low, high)

    def fixed(self) -> tuple[Affine, ...]:
        """Return the conditions that are the same for all of the row, which neither `range` nor `lanes` asks."""
        own = {self.row.lane, *(a.index for a in self.axes)}
        return tuple(g for g in self.guards if not g.indices() & own)

    def lanes(self) -> str:
        """Write the lanes of the row: those whose windows lie inside, and those whose windows' first elements do."""
        w = self.writer
        lane, high = self.row.lane, self.row.high
        row = w.names.fresh("row")
        w.put(f"opc::window_row {row} = {{{high}, 0, {high}, 0, {high}}};")
        for g in self.guards:
            if lane not in g.indices():
                continue
            self.regions.clip(self._at(g, "0"), lane, f"{row}.first_low", f"{row}.first_high")
            ends = [self.ranges[a.index] for a in self.axes if a.index in g.indices()] or [("0", "1")]
            for point in (ends[0][0], f"{ends[0][1]} - 1"):
                self.regions.clip(self._at(g, point), lane, f"{row}.low", f"{row}.high")
        outside = [f"{low} > 0" for low, _ in self.ranges.values() if low != "0"]
        if outside:
            w.put(f"if ({' || '.join(outside)}) {row}.first_high = {row}.first_low;")
        return row

    def _at(self, g: Affine, point: str) -> Affine:
        """Return a condition at a point, given as text, of the axis of the windows that it depends on."""
        name = f"#{point}"
        self.writer.indices[name] = point if point.isidentifier() or point.isdigit() else f"({point})"
        own = {a.index for a in self.axes}
        return g.substitute(lambda s: Affine.of(Index(name)) if isinstance(s, Index) and s.name in own else None)

    def advance(self) -> Affine:
        """Return how far apart the windows of the row are."""
        last = self.read.indices[-1]
        found = last.coefficient(self.row.lane) if isinstance(last, Affine) else None
        assert found is not None, "windows are a fixed step apart"
        return found

    def candidates(self, call: str, tail: str) -> None:
        """Write the loops over the elements of the windows as the last argument of a call."""
        strip, step = self.writer.names.fresh("strip"), self.writer.names.fresh("step")
        with self.writer.block(f"{call}, [&](auto &{strip}, auto {step}) OPC_INLINED", tail):
            self._loops(self.axes, strip, (self.advance(), step))

    def number(self) -> str:
        """Return what an element is told by beside its value, as further arguments of what takes it."""
        return ""

    def _loops(self, axes: list[Axis], strip: str, step: tuple[Affine, str]) -> None:
        """Write the loops over axes of the windows. `step` is how far apart the windows are, and its name."""
        w = self.writer
        if axes:
            name = w.indices[axes[0].index] = w.names.fresh(axes[0].index)
            low, high = self.ranges[axes[0].index]
            with w.block(f"for (int64_t {name} = {low}; {name} < {high}; ++{name})"):
                self._loops(axes[1:], strip, step)
            return
        offset = Leaf(self.regions, Range("", "", "")).offset(self.without({self.row.lane}), {})
        low, high = w.names.fresh("low"), w.names.fresh("high")
        candidate = f"{w.view(self.read.operand)}.data + ({offset}), {step[1]}{self.number()}"
        with w.block(f"{strip}.take({candidate}, [&](int64_t &{low}, int64_t &{high}) OPC_INLINED", "});"):
            for g in self.guards:
                if self.row.lane in g.indices():
                    self.regions.clip(g, self.row.lane, low, high, step)

    def without(self, names: set[str]) -> Read:
        """Return the read where these indices are 0."""

        def zero(s: object) -> Affine | None:
            return Affine.of(0) if isinstance(s, Index) and s.name in names else None

        indices = tuple(i.substitute(zero) for i in self.read.indices if isinstance(i, Affine))
        return Read(self.read.operand, indices, self.read.type)


def folded_strips(regions: Regions, over: Range, e: Reduce, body: Expr, guards: list[Guard]) -> Strips | None:
    """Return a reduction over the windows of a whole row, if it is one of elements alone that are read where they lie."""
    axes = [a for a in e.axes if isinstance(a, Axis)]
    own = {a.index for a in axes}
    if e.kind not in _FOLDS or over.low != "0" or len(axes) < len(e.axes) or any(a.extent.indices() for a in axes):
        return None
    if not isinstance(body, Read) or body.pad is not None or not body.indices or not is_floating(e.type):
        return None
    same = c_compute(body.type) == c_compute(e.type)
    if not same or not lie(regions, (body,)) or not runs_along(regions, body):
        return None
    *others, last = body.indices
    step = last.coefficient(over.lane) if isinstance(last, Affine) else None
    if step is None or step.constant not in (None, 1, 2) or step.indices() & own:
        return None
    if any(not isinstance(i, Affine) or over.lane in i.indices() for i in others):
        return None
    found = tuple(g for g in guards if isinstance(g, Affine) and _is_even(g, over.lane, own))
    return Strips(regions, over, axes, body, found) if len(found) == len(guards) else None


def _is_even(g: Affine, lane: str, own: set[str]) -> bool:
    """Whether a condition holds for a range of lanes, and of one axis of the windows."""
    used = g.indices() & own
    moves = [g.coefficient(i) for i in (*used, lane)]
    return len(used) <= 1 and all(m is not None and not m.indices() & {lane, *own} for m in moves)
