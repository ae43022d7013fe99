"""Scatters to places in windows: the search of a row of windows in tiles, and the adding of the row's terms.

What the search keeps of an element is how far from the row's own place the element's place is, so that adding a term takes one
addition of integers. Where it found nothing it keeps a number that lies outside whatever is added to it.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import Axis, Call, Expr, IndexValue, Read, map_affine
from opc.loops.nodes import Alias, Body, Buffer, Do, Let, Scope, Statement
from opc.loops.values import (
    Address,
    Construct,
    Local,
    Member,
    Named,
    Product,
    Sum,
    call,
    number,
    product_of,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, Known, Range
from opc.lower.build.strips import Strips
from opc.lower.guards import inside
from opc.lower.loop_ir import Window

_AHEAD = 4
"""Rows of windows are fetched so many rows before they are searched."""

BEGIN = Product((variable("@low_place"), Member("@nest", "place_stride", 0)))
"""Where the part of the target that a unit owns begins."""


class WindowRow(Strips):
    """Builds the search of one row of windows. `moved` puts the row's first lane and its own lane for the index it runs along."""

    def __init__(self, known: Known, row: Range, window: Window, moved: Callable[[Affine], Affine]) -> None:
        axes = [a for a in window.search.axes if isinstance(a, Axis)]
        body = map_affine(window.search.body, moved)
        assert isinstance(body, Read), "a window is a part of an operand"
        for a in axes:
            known.bound(a.index, a.extent)
        padded = body.pad is not None
        found = inside(body, known.nest.sizes(body.operand), known.bounded) if padded else ()
        super().__init__(known, row, axes, Read(body.operand, body.indices, body.type), found)
        self.search = window.search
        self.places = [moved(p) for p in window.places]
        self.steps: dict[str, str] = {}

    def loops(self, add: Callable[[Expr], Body]) -> Body:
        """Return the search, and by `add` the use of what it found: where in the unit's part of the target a lane's term goes."""
        nest, of = self.nest, self.read.type
        body: list[Statement] = [s for a in self.axes for s in self.range(a)]
        lanes, row = self.lanes()
        body += lanes
        for a in self.axes:
            name = self.steps[a.index] = nest.fresh(f"{a.index}_step")
            body.append(Let(name, Weak.INT, self._distance([p.coefficient(a.index) for p in self.places])))
        names = {a.index for a in self.axes}
        rest = [p.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in names else None) for p in self.places]
        ahead = [p.coefficient(self.row.lane) for p in rest]
        origin, advance, found = (nest.fresh(n) for n in ("origin", "advance", "found"))
        own = Affine.of(Index(self.row.lane))
        begin = self._distance([p - c * own for p, c in zip(rest, ahead) if c is not None])
        body.append(Let(origin, Weak.INT, Call("sub", (begin, BEGIN), Weak.INT)))
        body.append(Let(advance, Weak.INT, self._distance(ahead)))
        reach = sum_of(call("reach", IndexValue(a.extent), variable(self.steps[a.index])) for a in self.axes)
        greatest = "true" if self.search.kind == "argmax" else "false"
        search = call("search_windows", ref(found), ref(row), IndexValue(self.advance()), types=(of, greatest))
        lane = variable(self.row.lane)
        place = Sum((Local(found, Weak.INT, lane), variable(origin), Product((lane, variable(advance)))))
        inner: Body = (
            Alias("position", "@zero"),
            Buffer(found, Named("position"), "opc::nest_lanes"),
            self.candidates(search),
            *add(place),
        )
        body.append(Scope(call("with_positions", reach, types=(of,)), (("auto", "@zero"),), inner, True))
        return tuple(body)

    def fetch(self, index: str) -> Body:
        """Return the fetching of what the rows read that are a few points of an outer index ahead."""
        read = self.without({self.row.lane, *(a.index for a in self.axes)})
        moves = [i.coefficient(index) for i in read.indices if isinstance(i, Affine)]
        if any(m is None for m in moves) or not any(m is not None and m.terms for m in moves):
            return ()
        step, last = self.nest.fresh("step"), len(moves) - 1
        terms = [
            product_of(IndexValue(m), None if n == last else self.nest.stride(read.operand, n))
            for n, m in enumerate(moves)
            if m is not None and m.terms
        ]
        offset = Accesses(self.known, NO_RANGE).offset(read, {})
        address = Address(read.operand, Sum((offset, Product((number(_AHEAD), variable(step))))))
        return Let(step, Weak.INT, sum_of(terms)), Do(call("fetch_ahead", address, variable(step)))

    def _distance(self, moves: list[Affine | None]) -> Expr:
        """Return how far apart in the target places are that differ by so much along each index."""
        return sum_of(
            Product((IndexValue(m), Member("@nest", "place_stride", n))) for n, m in enumerate(moves) if m is not None and m.terms
        )

    def number(self) -> tuple[Expr, ...]:
        """Return the number by which the search keeps an element."""
        steps = [Product((variable(a.index), variable(self.steps[a.index]))) for a in self.axes]
        return (Construct(Named("position"), sum_of(steps)),)
