"""Scatters to places in windows as C++: the search of a row of windows, strip by strip, and the adding of the row's terms.

What the search keeps of an element is how far from the row's own place the element's place is, so that adding a term takes one
addition of integers. Where it found nothing it keeps a number that lies outside whatever is added to it.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.emit.c_expr import c_compute
from opc.emit.c_nest_base import parenthesised
from opc.emit.c_nest_region import Leaf, Range, Regions
from opc.ir.affine import Affine, Index
from opc.ir.expr import Axis, Read, map_affine
from opc.lower.guards import inside
from opc.lower.loop_ir import Window

_AHEAD = 4
"""Rows of windows are fetched so many rows before they are searched."""


class WindowRow:
    """Writes the search of one row of windows. `moved` puts the row's first lane and its own lane for the index it runs along."""

    def __init__(self, regions: Regions, row: Range, window: Window, moved: Callable[[Affine], Affine]) -> None:
        self.regions, self.row = regions, row
        self.writer = regions.writer
        self.search = window.search
        self.axes = [a for a in window.search.axes if isinstance(a, Axis)]
        body = map_affine(window.search.body, moved)
        assert isinstance(body, Read), "a window is a part of an operand"
        self.read = Read(body.operand, body.indices, body.type)
        self.places = [moved(p) for p in window.places]
        for a in self.axes:
            regions.bounded[Affine.of(Index(a.index))] = a.extent
        padded = body.pad is not None
        self.guards = inside(body, self.writer.sizes(body.operand), regions.bounded) if padded else ()
        self.ranges: dict[str, tuple[str, str]] = {}
        self.steps: dict[str, str] = {}

    def write(self, add: Callable[[str], None]) -> None:
        """Write the search, and by `add` the use of what it found: where in the unit's part of the target a lane's term goes."""
        w = self.writer
        kind = c_compute(self.read.type)
        for a in self.axes:
            self._range(a)
        row = self._row()
        for a in self.axes:
            name = self.steps[a.index] = w.names.fresh(f"{a.index}_step")
            w.put(f"const int64_t {name} = {self._distance([p.coefficient(a.index) for p in self.places])};")
        names = {a.index for a in self.axes}
        rest = [p.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in names else None) for p in self.places]
        ahead = [p.coefficient(self.row.lane) for p in rest]
        origin, advance, found = (w.names.fresh(n) for n in ("origin", "advance", "found"))
        own = Affine.of(Index(self.row.lane))
        begin = self._distance([p - c * own for p, c in zip(rest, ahead) if c is not None])
        w.put(f"const int64_t {origin} = {begin} - low_place * nest.place_stride[0];")
        w.put(f"const int64_t {advance} = {self._distance(ahead)};")
        reach = " + ".join(f"opc::reach({self._text(a.extent)}, {self.steps[a.index]})" for a in self.axes)
        with w.block(f"opc::with_positions<{kind}>({reach}, [&](auto zero) OPC_INLINED", "});"):
            w.put("using position = decltype(zero);", f"position {found}[opc::nest_lanes];")
            self._candidates(kind, found, row)
            add(f"{found}[{w.indices[self.row.lane]}] + {origin} + {w.indices[self.row.lane]} * {advance}")

    def fetch(self, index: str) -> None:
        """Write the fetching of what the rows read that are a few points of an outer index ahead."""
        w = self.writer
        read = self._without({self.row.lane, *(a.index for a in self.axes)})
        moves = [i.coefficient(index) for i in read.indices if isinstance(i, Affine)]
        if any(m is None for m in moves) or not any(m is not None and m.terms for m in moves):
            return
        step = w.names.fresh("step")
        last = len(moves) - 1
        terms = [
            parenthesised(self._text(m)) + ("" if n == last else f" * {w.view(read.operand)}.stride[{n}]")
            for n, m in enumerate(moves)
            if m is not None and m.terms
        ]
        offset = Leaf(self.regions, Range("", "", "")).offset(read, {})
        w.put(f"const int64_t {step} = {' + '.join(terms)};")
        w.put(f"opc::fetch_ahead({w.view(read.operand)}.data + ({offset} + {_AHEAD} * {step}), {step});")

    def _text(self, a: Affine) -> str:
        return Leaf(self.regions, Range("", "", "")).affine(a)

    def _distance(self, moves: list[Affine | None]) -> str:
        """Return how far apart in the target places are that differ by so much along each index."""
        terms = [
            f"{parenthesised(self._text(m))} * nest.place_stride[{n}]" for n, m in enumerate(moves) if m is not None and m.terms
        ]
        return " + ".join(terms) or "0"

    def _range(self, axis: Axis) -> None:
        """Write the range of an axis of the windows where it lies inside, as far as the lane does not matter."""
        w = self.writer
        extent = self._text(axis.extent)
        found = [g for g in self.guards if axis.index in g.indices() and self.row.lane not in g.indices()]
        if not found:
            self.ranges[axis.index] = ("0", extent)
            return
        low, high = self.ranges[axis.index] = (w.names.fresh("low"), w.names.fresh("high"))
        w.put(f"int64_t {low} = 0, {high} = opc::greatest(0, {extent});")
        for g in found:
            self.regions.clip(g, axis.index, low, high)

    def _row(self) -> str:
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

    def _candidates(self, kind: str, found: str, row: str) -> None:
        """Write the loops over the elements of the windows."""
        w = self.writer
        last = self.read.indices[-1]
        advance = last.coefficient(self.row.lane) if isinstance(last, Affine) else None
        assert advance is not None, "windows are a fixed step apart"
        greatest = "true" if self.search.kind == "argmax" else "false"
        strip, step = w.names.fresh("strip"), w.names.fresh("step")
        arguments = f"{found}, {row}, {self._text(advance)}"
        candidates = f"[&](auto &{strip}, auto {step}) OPC_INLINED"
        with w.block(f"opc::search_windows<{kind}, {greatest}>({arguments}, {candidates}", "});"):
            self._loops(self.axes, strip, (advance, step))

    def _loops(self, axes: list[Axis], strip: str, step: tuple[Affine, str]) -> None:
        """Write the loops over axes of the windows. `step` is how far apart the windows are, and its name."""
        w = self.writer
        if axes:
            name = w.indices[axes[0].index] = w.names.fresh(axes[0].index)
            low, high = self.ranges[axes[0].index]
            with w.block(f"for (int64_t {name} = {low}; {name} < {high}; ++{name})"):
                self._loops(axes[1:], strip, step)
            return
        offset = Leaf(self.regions, Range("", "", "")).offset(self._without({self.row.lane}), {})
        number = " + ".join(f"{w.indices[a.index]} * {self.steps[a.index]}" for a in self.axes)
        low, high = w.names.fresh("low"), w.names.fresh("high")
        candidate = f"{self.writer.view(self.read.operand)}.data + ({offset}), {step[1]}, position({number})"
        with w.block(f"{strip}.take({candidate}, [&](int64_t &{low}, int64_t &{high}) OPC_INLINED", "});"):
            for g in self.guards:
                if self.row.lane in g.indices():
                    self.regions.clip(g, self.row.lane, low, high, step)

    def _without(self, names: set[str]) -> Read:
        """Return the read where these indices are 0."""

        def zero(s: object) -> Affine | None:
            return Affine.of(0) if isinstance(s, Index) and s.name in names else None

        indices = tuple(i.substitute(zero) for i in self.read.indices if isinstance(i, Affine))
        return Read(self.read.operand, indices, self.read.type)
