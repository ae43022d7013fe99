"""Scatters as C++: one pass over the terms of a sum, each added at the place in the target that it names.

A unit of work owns a part of the target, so that no two threads add to one element and each adds in order: a piece of the lane, a
point of the indices that no term names, or a range of the first index that terms do name, for which it looks at all terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

from opc.analysis.value_types import affine_of
from opc.emit.cpp.expressions import c_compute
from opc.emit.nests.base import NestWriter
from opc.emit.nests.fold import Fold
from opc.emit.nests.region import Leaf, Local, Range, Regions
from opc.emit.nests.window import WindowRow
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    map_affine,
    may_refuse,
    rewrite,
    walk,
)
from opc.lower.guards import Guard, guard_indices, is_identity
from opc.lower.loop_ir import Scatter
from opc.lower.nests.search import searches


def write_scatter(writer: NestWriter, plan: Scatter, regions: Regions) -> None:
    """Write the loop over units of work of one scatter."""
    w = writer
    flat = plan.statement
    kind = c_compute(w.op.operand(flat.target).type)
    places = dict(plan.places)
    outer = [i for i in flat.indices if i != plan.lane and i not in places]
    used = free_indices(flat.value)
    w.put(f"{kind} *const out = reinterpret_cast<{kind} *>(nest.target);")
    with w.block("for (int64_t unit = begin; unit < end; ++unit)"):
        w.put("const opc::cursor at(nest, unit / nest.parts);")
        for n, name in enumerate(flat.indices):
            regions.bounded[Affine.of(Index(name))] = flat.extents[n]
        for n, name in enumerate(outer):
            w.indices[name] = w.names.fresh(name)
            if name in used:
                w.put(f"const int64_t {w.indices[name]} = at.index[{n}];")
        w.put("const int64_t place = at.target();")
        w.put("const int64_t low_place = opc::part_begin(nest, unit), high_place = opc::part_end(nest, unit);")
        w.put("opc::zero_part(nest, out + place, low_place, high_place);")
        over = Range("", "0", "1")
        if plan.lane is not None:
            start = w.names.fresh("start")
            own = w.indices[plan.lane] = w.names.fresh(plan.lane)
            w.put(f"const int64_t {start} = at.first();", f"const int64_t end_{own} = {start} + at.count();")
            over = Range(plan.lane, start, f"end_{own}")
        fold = _Terms(regions, over, plan)
        with w.block(f"if ({regions.condition(plan.given)})") if plan.given else nullcontext():
            fold.write()


class _Terms(Fold):
    """The loops over the terms of a scatter."""

    def __init__(self, regions: Regions, over: Range, plan: Scatter) -> None:
        self.plan = plan
        super().__init__(regions, over, plan.sum, (), bool(over.lane))
        self.axes.sort(key=lambda a: a.index == plan.row)
        self.guards, self.body = list(plan.guards), plan.body

    def _lane(self) -> str:
        return self.over.lane

    def _due(self, open_axes: set[str]) -> list[Guard]:
        """Take the guards that can be tested; others wait until the places are known."""
        late = [g for g in self.guards if self._waits(g)]
        self.guards = [g for g in self.guards if not self._waits(g)]
        due = super()._due(open_axes)
        self.guards += late
        return due

    def _waits(self, g: Guard) -> bool:
        """Whether a guard uses a place, or may refuse the call: that is asked where there is one."""
        places = {index for index, _ in self.plan.places}
        return bool(guard_indices(g) & places) or (not isinstance(g, Affine) and may_refuse(g))

    def write(self) -> None:
        """Write the loops."""
        early = self._due(set())
        self._within(early, lambda: self._loops(self.axes))

    def _loops(self, axes: list[Axis]) -> None:
        found = searches(p for _, p in self.plan.places)
        if found and len(axes) == 1:
            self._rows(axes[0], found)
        elif len(axes) == 1 and axes[0].index == self.plan.row:
            self._row_of_terms(axes[0])
        else:
            super()._loops(axes)

    def _innermost(self, over: Range) -> None:
        places = self.plan.places
        if any(over.lane in free_indices(p) for _, p in places) and over.lane:
            self._lane_by_lane(over)
            return
        w = self.writer
        leaf = Leaf(self.regions, Range("", "", ""))
        leaf.lazy = True
        with w.block(""):
            for n, (index, place) in enumerate(places):
                w.put(f"const int64_t {self._name(index)} = {leaf.convert(place, Weak.INT).text};")
                w.put(f"if ({self._missed(n)}) continue;")
            w.put(f"{c_compute(self.e.type)} *const to = out + ({self._offset()});")
            self.regions.write(self._guarded(), over, _Add(self, over))

    def _rows(self, axis: Axis, found: list[Reduce]) -> None:
        """Write the loop over the terms of the last axis in rows, with the searches that their places need before each row."""
        w, regions = self.writer, self.regions
        start, own = Index(w.names.fresh("start")), Index(w.names.fresh(axis.index))
        position = Affine.of(start) + own
        regions.bounded[position] = axis.extent

        def to_rows(a: Affine) -> Affine:
            return a.substitute(lambda s: position if s == Index(axis.index) else None)

        def moved(e: Expr) -> Expr:
            return map_affine(e, to_rows)

        for symbol in (start, own):
            w.indices[symbol.name] = symbol.name
        extent = self._extent(axis)
        count = w.names.fresh("count")
        row = Range(own.name, "0", count)
        window = self.plan.window
        if window is not None:
            w.indices[start.name] = "0"
            for outer in self.axes[-2:-1]:
                WindowRow(regions, row, window, to_rows).fetch(outer.index)
                share = f"{w.indices[outer.index]}, {self._extent(outer)}"
                size = "(high_place - low_place) * nest.place_stride[0]"
                w.put(f"opc::fetch_share(out + place + high_place * nest.place_stride[0], {size}, {share});")
            w.indices[start.name] = start.name
        with w.block(f"for (int64_t {start.name} = 0; {start.name} < {extent}; {start.name} += opc::nest_lanes)"):
            w.put(f"const int64_t {count} = opc::least({extent} - {start.name}, opc::nest_lanes);")
            if window is not None:
                self.body = moved(self.body)
                WindowRow(regions, row, window, to_rows).write(lambda place: self._add_row(row, place))
                return
            places = [(index, moved(p)) for index, p in self.plan.places]
            stands_for: dict[Expr, Expr] = {}
            for e in found:
                stands_for |= self._find(replace(e, body=moved(e.body)), row, [p for _, p in places])
            places = [(index, rewrite(p, lambda n: stands_for.get(n, n))) for index, p in places]
            self.plan = replace(self.plan, places=tuple(places))
            self.guards = [to_rows(g) if isinstance(g, Affine) else moved(g) for g in self.guards]
            self.body = moved(self.body)
            self._lane_by_lane(row)

    def _row_of_terms(self, axis: Axis) -> None:
        """Write the loop over the terms of one axis in rows: their places, their values, and the adding of each."""
        w, regions = self.writer, self.regions
        start, own = Index(w.names.fresh("start")), Index(w.names.fresh(axis.index))
        position = Affine.of(start) + own
        regions.bounded[position] = axis.extent
        for symbol in (start, own):
            w.indices[symbol.name] = symbol.name

        def moved(e: Expr) -> Expr:
            return map_affine(e, lambda a: a.substitute(lambda s: position if s == Index(axis.index) else None))

        extent, kind = self._extent(axis), c_compute(self.e.type)
        count, places, terms = (w.names.fresh(n) for n in ("count", "places", "terms"))
        over = Range(own.name, "0", count)
        head = f"for (int64_t {own.name} = 0; {own.name} < {count}; ++{own.name})"
        with w.block(f"for (int64_t {start.name} = 0; {start.name} < {extent}; {start.name} += opc::place_lanes)"):
            w.put(f"const int64_t {count} = opc::least({extent} - {start.name}, opc::place_lanes);")
            w.put(f"int64_t {places}[opc::place_row];", f"{kind} {terms}[opc::place_row];")
            leaf = Leaf(regions, over)
            lines, offsets, tests = [], [], []
            for n, (index, place) in enumerate(self.plan.places):
                text = leaf.convert(moved(place), Weak.INT).text
                name = self._name(index)
                lines.append(f"const int64_t {name} = {text};")
                stride, size = w.names.fresh("step"), w.names.fresh("size")
                w.put(f"const int64_t {stride} = nest.place_stride[{n}], {size} = nest.place_size[{n}];")
                missed = f"{name} < low_place || {name} >= high_place" if n == 0 else f"opc::outside({name}, {size})"
                tests.append(f"{missed} ? opc::nowhere : ")
                offsets.append(f"{name} * {stride}")
            value = leaf.convert(moved(self.body), self.e.type).text
            w.put(*leaf.before, "OPC_SIMD")
            with w.block(head):
                w.put(*lines, f"{places}[{own.name}] = {''.join(tests)}{' + '.join(offsets)};")
            w.put("OPC_SIMD", f"{head} {terms}[{own.name}] = {value};")
            w.put(f"opc::add_row(out + place, {places}, {terms}, {count});")

    def _find(self, e: Reduce, row: Range, places: list[Expr]) -> Mapping[Expr, Expr]:
        """Write the loops of a search along a row, and return what stands for it, or for its parts, in the places."""
        last = e.axes[-1]
        assert isinstance(last, Axis), "a flat statement has no groups"
        uses = [n for p in places for n in walk(p) if any(c == e for c in children(n))]
        parts = [n for n in uses if isinstance(n, Call) and n.fn in ("floordiv", "mod") and n.args[0] == e]
        by_axis = len(e.axes) == 2 and len(parts) == len(uses) and all(affine_of(n.args[1]) == last.extent for n in parts)
        fold = Fold(self.regions, row, e, (), True, by_axis)
        self.writer.put(*fold.declarations)
        fold.write()
        reads = []
        for name in fold.results:
            self.regions.locals[f"#{name}"] = Local(name, DType.INT64, True)
            reads.append(Read(f"#{name}", (Affine.of(Index(row.lane)),), DType.INT64))
        if not by_axis:
            return {e: reads[0]}
        return {n: reads[0] if n.fn == "floordiv" else reads[1] for n in parts}

    def _name(self, index: str) -> str:
        name = self.writer.indices[index] = self.writer.names.fresh(index)
        return name

    def added(self, place: str, text: str) -> list[str]:
        """Return the statement that adds a term to an element of the target."""
        if not self.plan.shared:
            return [f"{place} += {text};"]
        kind = c_compute(self.e.type)
        return [f"if (nest.shared) opc::add_shared({place}, {kind}({text}));", f"else {place} += {text};"]

    def _bounds(self, axis: Axis, extent: str) -> tuple[str, str]:
        if not self.plan.shared:
            return super()._bounds(axis, extent)
        w = self.writer
        low, high = w.names.fresh("low"), w.names.fresh("high")
        number = self.e.axes.index(axis)
        w.put(f"const int64_t {low} = opc::terms_begin(nest, unit, {number}, {extent});")
        w.put(f"const int64_t {high} = opc::terms_end(nest, unit, {number}, {extent});")
        return low, high

    def _missed(self, n: int) -> str:
        """Return the condition that a place is outside of the part of the target that is worked on."""
        name = self.writer.indices[self.plan.places[n][0]]
        if n == 0:
            return f"{name} < low_place || {name} >= high_place"
        return f"opc::outside({name}, nest.place_size[{n}])"

    def _offset(self) -> str:
        terms = [f"{self.writer.indices[i]} * nest.place_stride[{n}]" for n, (i, _) in enumerate(self.plan.places)]
        return " + ".join(["place", *([f"- {self.over.low}"] if self.over.lane else []), *terms]).replace("+ -", "-")

    def _guarded(self) -> Expr:
        """Return the term, 0 where a guard that is left doesn't hold."""
        body = self.body
        for g in reversed(self.guards):
            body = Select(_condition(g), body, Const(0, body.type), body.type)
        return body

    def _add_row(self, over: Range, place: str) -> None:
        """Write the loop that adds the terms of a row, `place` being where in the target each goes."""
        w = self.writer
        lane = w.indices[over.lane]
        leaf = Leaf(self.regions, over)
        leaf.lazy = True
        text = leaf.convert(self.body, self.e.type).text
        own, own_size, to = (w.names.fresh(n) for n in ("own", "own_size", "to"))
        w.put(*leaf.before)
        w.put(f"{c_compute(self.e.type)} *const {own} = out + place + low_place * nest.place_stride[0];")
        w.put(f"const int64_t {own_size} = (high_place - low_place) * nest.place_stride[0];")
        with w.block(f"for (int64_t {lane} = {over.low}; {lane} < {over.high}; ++{lane})"):
            w.put(f"const int64_t {to} = {place};", f"if (!opc::outside({to}, {own_size})) {own}[{to}] += {text};")

    def _lane_by_lane(self, over: Range) -> None:
        """Write the loop over a lane along which terms go to different places."""
        w = self.writer
        lane = w.indices[over.lane]
        leaf = Leaf(self.regions, over)
        leaf.lazy = True
        # A place may be looked up where the guards say that there is one.
        early = [g for g in self.guards if not self._waits(g)]
        self.guards = [g for g in self.guards if self._waits(g)]
        lines = [f"if (!({leaf.convert(_condition(g), DType.BOOL).text})) continue;" for g in early]
        for n, (index, place) in enumerate(self.plan.places):
            text = leaf.convert(place, Weak.INT).text
            name = self._name(index)
            leaf.inner.add(name)
            lines += [f"const int64_t {name} = {text};", f"if ({self._missed(n)}) continue;"]
        text = leaf.convert(self._guarded(), self.e.type).text
        step = f" + {lane}" if self.plan.lane is not None else ""
        lines += self.added(f"out[{self._offset()}{step}]", text)
        w.put(*leaf.before)
        with w.block(f"for (int64_t {lane} = {over.low}; {lane} < {over.high}; ++{lane})"):
            w.put(*lines)


def _condition(g: Guard) -> Expr:
    """Return a guard as a condition."""
    return Call("ge", (IndexValue(g), Const(0, Weak.INT)), DType.BOOL) if isinstance(g, Affine) else g


class _Add:
    """Terms are added to the target, by atomic additions where other threads add to the same elements."""

    overwrites = False
    ordered = False

    def __init__(self, terms: _Terms, over: Range) -> None:
        self.terms, self.lane = terms, over.lane

    def ignores(self, e: Expr) -> bool:
        return is_identity("sum", e)

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        text = leaf.convert(e, self.terms.e.type).text
        if not self.lane:
            return self.terms.added("to[0]", text)
        lane = self.terms.writer.indices[self.lane]
        head = f"for (int64_t {lane} = {over.low}; {lane} < {over.high}; ++{lane})"
        alone = ["OPC_SIMD", f"{head} to[{lane}] += {text};"]
        if not self.terms.plan.shared:
            return alone
        together = f"  {head} opc::add_shared(to[{lane}], {c_compute(self.terms.e.type)}({text}));"
        return ["if (nest.shared) {", together, "} else {", *(f"  {line}" for line in alone), "}"]
