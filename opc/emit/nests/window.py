"""Scatters to places in windows as C++: the search of a row of windows, strip by strip, and the adding of the row's terms.

What the search keeps of an element is how far from the row's own place the element's place is, so that adding a term takes one
addition of integers. Where it found nothing it keeps a number that lies outside whatever is added to it.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.emit.cpp.expressions import c_compute
from opc.emit.nests.base import parenthesised
from opc.emit.nests.region import Leaf, Range, Regions
from opc.emit.nests.strips import Strips
from opc.ir.affine import Affine, Index
from opc.ir.expr import Axis, Read, map_affine
from opc.lower.guards import inside
from opc.lower.loop_ir import Window

_AHEAD = 4
"""Rows of windows are fetched so many rows before they are searched."""


class WindowRow(Strips):
    """Writes the search of one row of windows. `moved` puts the row's first lane and its own lane for the index it runs along."""

    def __init__(self, regions: Regions, row: Range, window: Window, moved: Callable[[Affine], Affine]) -> None:
        axes = [a for a in window.search.axes if isinstance(a, Axis)]
        body = map_affine(window.search.body, moved)
        assert isinstance(body, Read), "a window is a part of an operand"
        for a in axes:
            regions.bounded[Affine.of(Index(a.index))] = a.extent
        padded = body.pad is not None
        found = inside(body, regions.writer.sizes(body.operand), regions.bounded) if padded else ()
        super().__init__(regions, row, axes, Read(body.operand, body.indices, body.type), found)
        self.search = window.search
        self.places = [moved(p) for p in window.places]
        self.steps: dict[str, str] = {}

    def write(self, add: Callable[[str], None]) -> None:
        """Write the search, and by `add` the use of what it found: where in the unit's part of the target a lane's term goes."""
        w = self.writer
        kind = c_compute(self.read.type)
        for a in self.axes:
            self.range(a)
        row = self.lanes()
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
        reach = " + ".join(f"opc::reach({self.text(a.extent)}, {self.steps[a.index]})" for a in self.axes)
        with w.block(f"opc::with_positions<{kind}>({reach}, [&](auto zero) OPC_INLINED", "});"):
            w.put("using position = decltype(zero);", f"position {found}[opc::nest_lanes];")
            greatest = "true" if self.search.kind == "argmax" else "false"
            call = f"opc::search_windows<{kind}, {greatest}>({found}, {row}, {self.text(self.advance())}"
            self.candidates(call, "});")
            add(f"{found}[{w.indices[self.row.lane]}] + {origin} + {w.indices[self.row.lane]} * {advance}")

    def fetch(self, index: str) -> None:
        """Write the fetching of what the rows read that are a few points of an outer index ahead."""
        w = self.writer
        read = self.without({self.row.lane, *(a.index for a in self.axes)})
        moves = [i.coefficient(index) for i in read.indices if isinstance(i, Affine)]
        if any(m is None for m in moves) or not any(m is not None and m.terms for m in moves):
            return
        step = w.names.fresh("step")
        last = len(moves) - 1
        terms = [
            parenthesised(self.text(m)) + ("" if n == last else f" * {w.view(read.operand)}.stride[{n}]")
            for n, m in enumerate(moves)
            if m is not None and m.terms
        ]
        offset = Leaf(self.regions, Range("", "", "")).offset(read, {})
        w.put(f"const int64_t {step} = {' + '.join(terms)};")
        w.put(f"opc::fetch_ahead({w.view(read.operand)}.data + ({offset} + {_AHEAD} * {step}), {step});")

    def _distance(self, moves: list[Affine | None]) -> str:
        """Return how far apart in the target places are that differ by so much along each index."""
        terms = [
            f"{parenthesised(self.text(m))} * nest.place_stride[{n}]" for n, m in enumerate(moves) if m is not None and m.terms
        ]
        return " + ".join(terms) or "0"

    def number(self) -> str:
        """Return the number by which the search keeps an element."""
        steps = (f"{self.writer.indices[a.index]} * {self.steps[a.index]}" for a in self.axes)
        return f", position({' + '.join(steps)})"
