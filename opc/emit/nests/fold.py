"""The loops of one reduction in a nest: into a row of accumulators along the lane, or into one value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from opc.emit.cpp.expressions import Text, c_compute
from opc.emit.cpp.text import message_literal
from opc.emit.nests.base import Unsupported, parenthesised
from opc.emit.nests.region import Leaf, Range, Regions
from opc.emit.nests.strips import Strips, folded_strips
from opc.emit.nests.taps import adds_products, product_text, weighted_window, write_taps
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    SEARCHES,
    Axis,
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    map_affine,
    reads,
    walk,
)
from opc.lower.guards import IDENTITY, Guard, guard_indices, is_identity, peel
from opc.lower.nests.flat import best_axis
from opc.lower.nests.taps import is_product

OPERATOR = {"sum": "+", "prod": "*", "any": "||", "all": "&&"}
"""What C++ takes an element into a result by; other kinds compare."""

_START = {"sum": "0", "prod": "1", "any": "false", "all": "true"}


class Fold:
    """The loops of one reduction.

    `results` are the variables that get what it finds: one, or of a search `by_axis`, the position along each axis.
    """

    def __init__(
        self, regions: Regions, over: Range, e: Reduce, under: tuple[Guard, ...], row: bool, by_axis: bool = False
    ) -> None:
        self.regions, self.over, self.e, self.row = regions, over, e, row
        self.writer = w = regions.writer
        self.axes = [a for a in e.axes if isinstance(a, Axis)]
        self.search = e.kind in SEARCHES
        # What a search ignores is what the greatest or least value ignores: it is better than nothing before it.
        self.kind = e.kind.removeprefix("arg")
        self.value_kind = c_compute(e.body.type if self.search else e.type)
        self.result = w.names.fresh({"sum": "total", "prod": "product"}.get(e.kind, e.kind))
        self.best = w.names.fresh("best") if self.search else ""
        self.positions: tuple[str, ...] = ()
        size = "[opc::nest_lanes]" if row else ""
        start = "" if row else " = 0" if self.search else f" = {self._start()}"
        self.results = tuple(w.names.fresh(f"{self.result}_{a.index}") for a in self.axes) if by_axis else (self.result,)
        self.declarations = [f"{c_compute(e.type)} {name}{size}{start};" for name in self.results]
        for a in self.axes:
            regions.bounded[Affine.of(Index(a.index))] = a.extent
        self.under = under
        found, body = peel(self.kind, e.body, w.sizes, regions.bounded, regions.positive)
        self.guards, self.body = [*under, *found], body
        self.lane = self._lane()
        self.products = not row and adds_products(regions, e, self.body, self.lane)
        if self.products:
            self.declarations = [f"opc::product_sum<{self.value_kind}> {self.result} = {{}};"]

    def _start(self) -> str:
        return _START.get(self.kind) or f"opc::limits<{self.value_kind}>::{'lowest' if self.kind == 'max' else 'highest'}"

    def _lane(self) -> str:
        """Return the index the innermost loop runs over: the lane, or one of the reduction's own."""
        if self.row:
            return self.over.lane
        own = best_axis(self.writer.op, self.e)
        if own is None:
            raise Unsupported("a reduction whose axes depend on one another")
        self.axes.remove(own)
        self.axes.append(own)
        return own.index

    def write(self) -> None:
        """Write the loops."""
        w = self.writer
        if self.kind in ("max", "min"):
            self._refuse_nothing()
        if self.search:
            self._search()
            return
        taps = weighted_window(self.regions, self.over, self.e, self.under) if self.row else None
        if taps is None:
            strips = folded_strips(self.regions, self.over, self.e, self.body, self.guards) if self.row else None
            if strips is None:
                self._start_row()
                self._all_loops()
                return
            with w.block(""):
                computed = self._fold_strips(strips)
                with w.block(f"if (!{computed})"):
                    self._start_row()
                    self._all_loops()
            return
        window, ones = write_taps(self.regions, taps, self.lane)
        computed = f"opc::sum_taps({window}, {self.result}, {self.over.high})"
        with w.block(f"if (!({ones} && {computed}))" if ones else f"if (!{computed})"):
            self._start_row()
            self._all_loops()

    def _fold_strips(self, strips: Strips) -> str:
        """Write the computing of the row strip by strip, and return the variable that tells whether that could be."""
        w = self.writer
        for a in strips.axes:
            strips.range(a)
        row, computed = strips.lanes(), w.names.fresh("computed")
        call = f"opc::fold_windows<opc::folds_{self.kind}>({self.result}, {row}, {strips.text(strips.advance())}"
        if fixed := strips.fixed():
            call = f"{self.regions.condition(fixed)} && {call}"
        strips.candidates(f"const bool {computed} = {call}", "});")
        for a in strips.axes:
            del w.indices[a.index]
        return computed

    def _start_row(self) -> None:
        if self.row:
            self.writer.put(f"opc::fill({self.result}, {self.over.high}, {c_compute(self.e.type)}({self._start()}));")

    def _all_loops(self) -> None:
        early = self._due(set())
        self._within(early, lambda: self._loops(self.axes))

    def _search(self) -> None:
        """Write the loops of a search. Positions are as wide as the values while that holds them, so that both fill a vector."""
        w = self.writer
        leaf = Leaf(self.regions, Range("", "", ""))
        extents = [parenthesised(leaf.affine(a.extent)) for a in self.e.axes if isinstance(a, Axis)]
        self.positions = tuple(w.names.fresh(f"{name}_here") for name in self.results)
        start = f"{self.value_kind}({self._start()})"
        with w.block(f"opc::with_positions<{self.value_kind}>({' * '.join(extents)}, [&](auto zero)", "});"):
            w.put("using position = decltype(zero);")
            if not self.row:
                w.put(f"{self.value_kind} {self.best} = {start};")
                self._all_loops()
                return
            high = self.over.high
            w.put(f"{self.value_kind} {self.best}[opc::nest_lanes];", f"opc::fill({self.best}, {high}, {start});")
            for name in self.positions:
                w.put(f"position {name}[opc::nest_lanes];", f"opc::fill({name}, {high}, zero);")
            self._all_loops()
            for name, here in zip(self.results, self.positions, strict=True):
                w.put(f"opc::widen_row({name}, {here}, {high});")

    def _within(self, found: list[Guard], inner: Callable[[], None]) -> None:
        if not found:
            inner()
            return
        with self.writer.block(f"if ({self.regions.condition(tuple(found))})"):
            inner()

    def _due(self, open_axes: set[str]) -> list[Guard]:
        """Take the guards that can be tested once these axes are known."""
        own = {a.index for a in self.axes}
        due = [
            g
            for g in self.guards
            if (guard_indices(g) & own) <= open_axes
            and self.lane not in guard_indices(g)
            and self.regions.is_solvable(g, self.lane)
        ]
        self.guards = [g for g in self.guards if not any(g is d for d in due)]
        return due

    def _loops(self, axes: list[Axis]) -> None:
        """Write the loops over `axes` and what stands inside of them."""
        w = self.writer
        if not axes:
            self._innermost(Range(self.over.lane, self.over.low, self.over.high))
            return
        axis, rest = axes[0], axes[1:]
        name = w.indices[axis.index] = w.names.fresh(axis.index)
        extent = self._extent(axis)
        if axis.index == self.lane:
            if self._runs_along_rows(axis):
                self._in_pieces(axis, extent)
            else:
                self._innermost(Range(axis.index, "0", extent))
            return
        opened = {a.index for a in self.axes if a.index in w.indices and a not in rest}
        due = self._due(opened)
        ranges = [g for g in due if isinstance(g, Affine) and g.coefficient(axis.index) is not None]
        low, high = self._bounds(axis, extent)
        with w.block("") if ranges else nullcontext():
            if ranges:
                first, end = low, high
                low, high = w.names.fresh("low"), w.names.fresh("high")
                w.put(f"int64_t {low} = {first}, {high} = opc::greatest({first}, {end});")
                for g in ranges:
                    self.regions.clip(g, axis.index, low, high)
            with w.block(f"for (int64_t {name} = {low}; {name} < {high}; ++{name})"):
                others = [g for g in due if not any(g is r for r in ranges)]
                self._within(others, lambda: self._loops(rest))

    def _bounds(self, axis: Axis, extent: str) -> tuple[str, str]:
        """Return the bounds of the loop over an axis."""
        return "0", extent

    def _runs_along_rows(self, axis: Axis) -> bool:
        """Whether the innermost loop reads rows at computed places, and no condition would cut it."""
        leaf = Leaf(self.regions, Range(axis.index, "", ""))
        simple = self.kind in OPERATOR and not self.search and not self.products and not self.guards
        free = not any(isinstance(e, Select) or (isinstance(e, Read) and e.pad is not None) for e in walk(self.body))
        return simple and free and any(r.operand in self.regions.gathered and leaf.is_row(r) for r in reads(self.body))

    def _in_pieces(self, axis: Axis, extent: str) -> None:
        """Write the innermost loop piece by piece, each of no more points than a row is looked up for."""
        w, regions = self.writer, self.regions
        start, own = Index(w.names.fresh("start")), Index(w.names.fresh("lane"))
        w.indices[start.name], w.indices[own.name] = start.name, own.name
        position = Affine.of(start) + own
        regions.bounded[position] = axis.extent
        self.body = map_affine(self.body, lambda a: a.substitute(lambda s: position if s == Index(axis.index) else None))
        outer, regions.row_lane = regions.row_lane, own.name
        with w.block(f"for (int64_t {start.name} = 0; {start.name} < {extent}; {start.name} += opc::nest_lanes)"):
            high = w.names.fresh("lanes")
            w.put(f"const int64_t {high} = opc::least({extent} - {start.name}, opc::nest_lanes);")
            self._innermost(Range(own.name, "0", high))
        regions.row_lane = outer

    def _extent(self, axis: Axis) -> str:
        """Return the end of a loop; one that depends on the lane is the greatest of all lanes, and a guard holds for each."""
        leaf = Leaf(self.regions, Range("", "", ""))
        lane = self.over.lane
        if not lane or lane not in axis.extent.indices():
            return leaf.affine(axis.extent)
        coefficient = axis.extent.coefficient(lane)
        if coefficient is None or self.e.kind not in OPERATOR:
            raise Unsupported(f"the extent of {axis.index}")
        self.guards.append(axis.extent - Affine.of(Index(axis.index)) - 1)
        rest = leaf.affine(axis.extent - coefficient * Affine.of(Index(lane)))
        step = leaf.affine(coefficient)
        ends = [f"{rest} + ({step}) * ({end})" for end in (self.over.low, f"{self.over.high} - 1")]
        return f"opc::greatest({', '.join(ends)})"

    def _innermost(self, over: Range) -> None:
        """Write the loop over the lane."""
        w = self.writer
        ranges = [g for g in self.guards if isinstance(g, Affine) and g.coefficient(over.lane) is not None]
        others = [g for g in self.guards if not any(g is r for r in ranges)]
        body = self.body
        apart = {id(g): name for g in others if (name := self.regions.excluded(g, over.lane)) is not None}
        for g in reversed([g for g in others if id(g) not in apart]):
            cond = g if not isinstance(g, Affine) else Call("ge", (IndexValue(g), Const(0, Weak.INT)), DType.BOOL)
            body = Select(cond, body, Const(IDENTITY[self.kind], body.type), body.type)
        self.guards = []
        if not ranges:
            self._between(list(apart.values()), body, over)
            return
        low, high = w.names.fresh("low"), w.names.fresh("high")
        with w.block(""):
            self.regions.narrow(tuple(ranges), Range(over.lane, over.low, f"opc::greatest({over.low}, {over.high})"), low, high)
            self._between(list(apart.values()), body, Range(over.lane, low, high))

    def _between(self, apart: list[str], body: Expr, over: Range) -> None:
        """Write the loops over a range without some of its lanes: from one to the next, so that nothing is tested inside."""
        w, sink = self.writer, Sink(self, over.lane)
        if not apart:
            self.regions.write(body, over, sink)
            return
        low, high = w.names.fresh("low"), w.names.fresh("high")
        with w.block(f"for (int64_t {low} = {over.low}, {high}; {low} < {over.high}; {low} = {high} + 1)"):
            w.put(f"{high} = opc::next_of({low}, {over.high}, {', '.join(apart)});")
            self.regions.write(body, Range(over.lane, low, high), sink)

    def _refuse_nothing(self) -> None:
        """Write the report of a maximum over nothing."""
        w = self.writer
        leaf = Leaf(self.regions, Range("", "", ""))
        for a in self.axes:
            if self.over.lane and self.over.lane in a.extent.indices():
                raise Unsupported(f"the extent of {a.index}")
            if a.extent.indices() & {b.index for b in self.axes}:
                raise Unsupported(f"the extent of {a.index}")
        empty = [f"{leaf.affine(a.extent)} <= 0" for a in self.axes if not self.regions.positive(a.extent)]
        over = ", ".join(a.index if isinstance(a, Axis) else str(a) for a in self._source_axes())
        if empty:
            with w.block(f"if ({' || '.join(empty)})"):
                message = message_literal(f"{w.op.name}: {self.e.kind} over {over}")
                w.put(f"opc::report(nest, {message}, -1, 0, 0);", "return;")

    def _source_axes(self) -> tuple[ReduceAxis, ...]:
        """Return the axes as the statement has them."""
        for node in walk(self.writer.stage.assign.value):
            if isinstance(node, Reduce) and node.span == self.e.span and node.kind == self.e.kind:
                return node.axes
        return self.e.axes

    def numbers(self) -> list[str]:
        """Return the position of the element that the loops have reached: counted in row-major order, or along each axis."""
        leaf = Leaf(self.regions, Range("", "", ""))
        if len(self.results) > 1:
            return [self.writer.indices[a.index] for a in self.e.axes if isinstance(a, Axis)]
        text = "0"
        for a in self.e.axes:
            assert isinstance(a, Axis), "a flat statement has no groups"
            name = self.writer.indices[a.index]
            text = name if text == "0" else f"({text}) * ({leaf.affine(a.extent)}) + {name}"
        return [text]


class Sink:
    """Values are taken in by the accumulators of a reduction."""

    overwrites = False

    def __init__(self, fold: Fold, lane: str) -> None:
        self.fold, self.lane = fold, fold.writer.indices[lane]
        self.ordered = fold.search and not fold.row

    def ignores(self, e: Expr) -> bool:
        """Whether `e` changes nothing."""
        return is_identity(self.fold.kind, e)

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        """Return the lines of the loop that takes `e` in."""
        fold = self.fold
        kind = fold.kind
        if fold.products and is_product(e, fold.e.type, over.lane) and all(r.pad is None for r in reads(e)):
            return [product_text(fold.result, e, leaf, over)]
        text = leaf.convert(e, fold.e.body.type if fold.search else fold.e.type)
        head = f"for (int64_t {self.lane} = {over.low}; {self.lane} < {over.high}; ++{self.lane})"
        if fold.search:
            return self._search(text.text, over)
        if fold.row:
            place = f"{fold.result}[{self.lane}]"
            return ["OPC_SIMD", f"{head} {self._taken(place, text)}"]
        if fold.products:
            # What is left are the few elements whose counterparts are padded.
            return [f"{head} {fold.result}.rest += {text.text};"]
        part = fold.writer.names.fresh("part")
        if kind in ("max", "min"):
            return [
                f"auto {part} = opc::{kind}_identity<{fold.value_kind}>();",
                f"OPC_SIMD_REDUCTION({kind} : {part})",
                f"{head} {{",
                f"  const auto key = opc::{kind}_key({fold.value_kind}({text.text}));",
                f"  {part} = key {'>' if kind == 'max' else '<'} {part} ? key : {part};",
                "}",
                f"{fold.result} = opc::{kind}imum({fold.result}, opc::key_value<{fold.value_kind}>({part}));",
            ]
        total = Text(part, 8, text.type)
        return [
            f"{fold.value_kind} {part} = {_START[kind]};",
            f"OPC_SIMD_REDUCTION({OPERATOR[kind]} : {part})",
            f"{head} {self._taken(part, text)}",
            self._taken(fold.result, total),
        ]

    def _taken(self, place: str, text: Text) -> str:
        """Return the statement by which an accumulator takes a value in."""
        kind = self.fold.e.kind
        if kind in ("sum", "prod"):
            return f"{place} {OPERATOR[kind]}= {text.text};"
        if kind in ("any", "all"):
            return f"{place} = {place} {OPERATOR[kind]} {text.at(3)};"
        return f"{place} = opc::{kind}imum({place}, {self.fold.value_kind}({text.text}));"

    def _search(self, text: str, over: Range) -> list[str]:
        fold = self.fold
        values, sign = fold.value_kind, "<=" if fold.kind == "max" else ">="
        if fold.row:
            best = f"{fold.best}[{self.lane}]"
            numbers = zip(fold.positions, fold.numbers(), strict=True)
            return [
                "OPC_SIMD",
                f"for (int64_t {self.lane} = {over.low}; {self.lane} < {over.high}; ++{self.lane}) {{",
                f"  const {values} here = {text};",
                f"  const bool better = !(here {sign} {best}) && {best} == {best};",
                f"  {best} = better ? here : {best};",
                *(f"  {p}[{self.lane}] = better ? position({n}) : {p}[{self.lane}];" for p, n in numbers),
                "}",
            ]
        (number,) = fold.numbers()
        return [
            f"opc::search_row<{values}, position>({over.low}, {over.high}, {fold.best}, {fold.result},",
            f"    [&](int64_t {self.lane}) {{ return {number}; }}, [&](int64_t {self.lane}) -> {values} {{ return {text}; }},",
            f"    [](const {values} here, const {values} best) {{ return !(here {sign} best) && best == best; }});",
        ]
