"""Ranges of the vectorised loop of a nest: an expression over [low, high) of the lane, split where a condition changes.

A condition that is affine in the lane splits the range, one that doesn't depend on it becomes a branch around the loop, and what
is left is tested lane by lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from opc.analysis.value_types import presence
from opc.emit.c_expr import ExprText, Text, c_compute
from opc.emit.c_nest_base import NestWriter, parenthesised
from opc.emit.c_text import string_literal
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import Call, Expr, GroupRef, Read, Select, children, free_indices, reads
from opc.lower.guards import Guard, guard_indices, guards, inside, is_known_inside, replace_node

_MOST_SPLITS = 3
"""A range is split by so many conditions inside one another; further ones are tested lane by lane."""

_ATOM = 8


class Sink(Protocol):
    """What happens to the values of a range."""

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        """Return the lines of the loop that computes `e`, whose text `leaf` writes."""

    def ignores(self, e: Expr) -> bool:
        """Whether `e` changes nothing."""


@dataclass(frozen=True, slots=True)
class Range:
    """A lane's name in the IR and in C++, and the bounds it runs between."""

    lane: str
    low: str
    high: str


@dataclass(slots=True)
class Local:
    """A value that was computed before: a variable, or a row of them indexed by the lane."""

    text: str
    type: ValueType
    row: bool


@dataclass(slots=True)
class Regions:
    """Writes expressions over ranges of a lane.

    `bounded` tells which indices are within which extent; `locals` are values already computed, which the IR reads as operands of
    that name; `gathered` operands are read in the type they are stored in; `units` tells the entry along which each operand is
    contiguous; `given` are the optional operands known to be present; `row_lane` is the lane that has no more than `nest_lanes`.
    """

    writer: NestWriter
    positive: Callable[[Affine], bool]
    gathered: frozenset[str]
    units: Mapping[str, int]
    bounded: dict[Affine, Affine] = field(default_factory=dict)
    locals: dict[str, Local] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    row_lane: str = ""

    def write(self, e: Expr, over: Range, sink: Sink, splits: int = _MOST_SPLITS) -> None:
        """Write the loops that compute `e` over a range."""
        node = self._split(e, over.lane, e) if splits else None
        if node is None:
            self._leaf(e, over, sink)
            return
        w = self.writer
        found = self._guards(node)
        then, other = (replace(node, pad=None), node.pad) if isinstance(node, Read) else (node.then, node.other)
        assert other is not None, "a node that splits a range has two sides"
        yes, no = replace_node(e, node, then), replace_node(e, node, other)
        skip = sink.ignores(no)
        if not any(over.lane in guard_indices(g) for g in found):
            before = self.given
            self.given = before | (presence(node.cond, True) if isinstance(node, Select) else frozenset())
            with w.block(f"if ({self.condition(found)})"):
                self.write(yes, over, sink, splits - 1)
            self.given = before
            if not skip:
                w.lines.pop()
                with w.block("} else"):
                    self.write(no, over, sink, splits - 1)
            return
        low, high = w.names.fresh("low"), w.names.fresh("high")
        with w.block(""):
            self.narrow(found, over, low, high)
            self.write(yes, Range(over.lane, low, high), sink, splits - 1)
            if not skip:
                self.write(no, Range(over.lane, over.low, low), sink, splits - 1)
                self.write(no, Range(over.lane, high, over.high), sink, splits - 1)

    def narrow(self, found: tuple[Guard, ...], over: Range, low: str, high: str) -> None:
        """Write the declarations of the bounds of the part of a range where the guards hold."""
        w = self.writer
        w.put(f"int64_t {low} = {over.low}, {high} = {over.high};")
        for g in found:
            self.clip(g, over.lane, low, high)

    def clip(self, g: Guard, index: str, low: str, high: str) -> None:
        """Write the narrowing of a range of an index to where a guard holds; one that is no expression must not depend on it."""
        text = Leaf(self, Range("", "", ""))
        if not isinstance(g, Affine):
            self.writer.put(f"if (!{parenthesised(text.condition(g))}) {high} = {low};")
            return
        coefficient = g.coefficient(index)
        assert coefficient is not None, "a guard that narrows a range is affine in its index"
        rest = g - coefficient * Affine.of(Index(index))
        self.writer.put(f"opc::clip({low}, {high}, {text.affine(coefficient)}, {text.affine(rest)});")

    def condition(self, found: tuple[Guard, ...]) -> str:
        """Return guards as a C++ condition."""
        leaf = Leaf(self, Range("", "", ""))
        leaf.lazy = True
        texts = [f"{leaf.affine(g)} >= 0" if isinstance(g, Affine) else leaf.condition(g) for g in found]
        return " && ".join(t if len(texts) == 1 or ("||" not in t and "?" not in t) else f"({t})" for t in texts) or "true"

    def _guards(self, node: Select | Read) -> tuple[Guard, ...]:
        if isinstance(node, Select):
            return guards(node.cond, self.positive)
        return inside(node, self.writer.sizes(node.operand), self.bounded)

    def _split(self, e: Expr, lane: str, root: Expr) -> Select | Read | None:
        """Return the outermost part of `e` by whose condition the range can be split."""
        if isinstance(e, Select):
            found = self._guards(e)
            if all(self.is_solvable(g, lane) for g in found) and (e is root or self._worth(e, found, lane)):
                return e
            return self._split(e.cond, lane, root)
        if isinstance(e, Read) and e.pad is not None and e.operand not in self.locals:
            found = self._guards(e) if all(isinstance(i, Affine) for i in e.indices) else ()
            if found and all(self.is_solvable(g, lane) for g in found):
                return e
        if isinstance(e, Call) and e.fn in ("and", "or"):
            return self._split(e.args[0], lane, root)
        for c in children(e):
            node = self._split(c, lane, root)
            if node is not None:
                return node
        return None

    def _worth(self, e: Select, found: tuple[Guard, ...], lane: str) -> bool:
        """Whether a choice inside an expression is worth a loop for each side: its sides read along the lane."""
        sides = [r for side in (e.then, e.other) for r in reads(side) if r.operand not in self.locals]
        return any(lane in free_indices(r) for r in sides)

    def is_solvable(self, g: Guard, lane: str) -> bool:
        """Whether a guard is one of ranges of the lane, or doesn't depend on it and may be tested early."""
        if isinstance(g, Affine):
            coefficient = g.coefficient(lane)
            return coefficient is not None
        if lane in free_indices(g):
            return False
        return all(self._stands(r, lane) for r in reads(g))

    def _stands(self, r: Read, lane: str) -> bool:
        """Whether a read may be carried out ahead of the loop over the lane."""
        if r.operand in self.locals:
            return not self.locals[r.operand].row
        return is_known_inside(r, self.writer.sizes(r.operand), self.bounded) and lane not in free_indices(r)

    def _leaf(self, e: Expr, over: Range, sink: Sink) -> None:
        w = self.writer
        leaf = Leaf(self, over)
        leaf.find_step(e)
        lines = sink.loop(e, leaf, over)
        with w.block(f"if ({over.low} < {over.high})"):
            w.put(*leaf.before)
            if leaf.step is not None:
                with w.block(f"opc::with_step({leaf.step_text}, [&](auto {leaf.step})", "});"):
                    w.put(*lines)
            else:
                w.put(*lines)


class Leaf(ExprText):
    """The text of an expression in one loop over the lane; what doesn't depend on the lane goes into `before`."""

    def __init__(self, regions: Regions, over: Range) -> None:
        w = regions.writer
        super().__init__(w.op, self._read, w.attribute, w.symbol, w.present)
        self.regions, self.writer, self.over = regions, w, over
        self.before: list[str] = []
        self.given = regions.given
        self.lazy = False
        self.step: str | None = None
        self.step_text = ""
        self._step_of: Affine | None = None
        self._bases: dict[str, str] = {}
        self._values: dict[Expr, str] = {}
        self.inner: set[str] = set()

    def find_step(self, e: Expr) -> None:
        """Make the one step that is no number, by which reads advance along the lane, a name that may turn out a constant."""
        found = set()
        for r in reads(e):
            if r.operand in self.regions.locals or not r.indices or self.over.lane not in free_indices(r):
                continue
            last = r.indices[self.regions.units[r.operand]]
            coefficient = last.coefficient(self.over.lane) if isinstance(last, Affine) else None
            if coefficient is not None and coefficient.constant is None:
                found.add(coefficient)
        if len(found) == 1:
            (self._step_of,) = found
            self.step_text = self.affine(self._step_of)
            self.step = self.writer.names.fresh("step")

    def branch(self, e: Expr, wanted: ValueType) -> Text:
        """Return one side of a conditional, of which nothing may be computed early."""
        before, self.lazy = self.lazy, True
        text = self.convert(e, wanted)
        self.lazy = before
        return text

    def condition(self, e: Expr) -> str:
        """Return a condition that is tested once, where its reads are known to be inside."""
        before, self.lazy = self.lazy, True
        text = self.expr(e).text
        self.lazy = before
        return text

    def _read(self, e: Read) -> Text:
        local = self.regions.locals.get(e.operand)
        if local is not None:
            return Text(f"{local.text}[{self.writer.indices[self.over.lane]}]" if local.row else local.text, _ATOM, local.type)
        if e in self._values:
            return Text(self._values[e], _ATOM, e.type)
        varies = bool(self.over.lane) and self.over.lane in free_indices(e)
        safe = is_known_inside(e, self.writer.sizes(e.operand), self.regions.bounded)
        if varies and not self.lazy and e.operand in self.regions.gathered and self._along_row(e):
            return Text(f"{self._row(e)}[{self.writer.indices[self.over.lane]}]", _ATOM, e.type)
        if varies or (self.lazy and not (safe and self.over.lane)):
            return Text(self._element(e, varies), _ATOM, e.type)
        return Text(self._early(e), _ATOM, e.type)

    def _along_row(self, e: Read) -> bool:
        """Whether a read at computed places runs along a row of its operand."""
        unit = self.regions.units[e.operand]
        last = e.indices[unit]
        if self.over.lane != self.regions.row_lane:
            return False
        if e.pad is not None or unit in e.checked or not isinstance(last, Affine) or self.writer.is_optional(e.operand):
            return False
        step = last.coefficient(self.over.lane)
        others = replace(e, indices=(*e.indices[:unit], *e.indices[unit + 1 :]))
        return step is not None and step.constant == 1 and self.over.lane not in free_indices(others)

    def _row(self, e: Read) -> str:
        """Write the look-up of the row that a read runs along, and return the variable that points to it."""
        if e not in self._values:
            w = self.writer
            kind = c_compute(e.type)
            places = self.places(e)
            name = self._values[e] = w.names.fresh(f"{e.operand}_row")
            base, _ = self._parts(e, places)
            self.before += [
                f"{kind} {name}_buffer[opc::nest_lanes];",
                f"const {kind} *const {name} = opc::row_at(nest, {w.operands.index(e.operand)}, {base}, {self.over.low}, "
                f"{self.over.high}, {name}_buffer);",
            ]
        return self._values[e]

    def _checks(self, e: Read) -> list[tuple[str, int]]:
        """Return the indices that must be tested when the kernel runs, as texts with the entries they are for."""
        found = []
        for n, index in enumerate(e.indices):
            if isinstance(index, GroupRef):
                raise TypeError("a flat statement has no groups")
            if not isinstance(index, Affine) or n in e.checked:
                found.append((self._index(index), n))
        return found

    def _index(self, index: Affine | Expr) -> str:
        return self.affine(index) if isinstance(index, Affine) else self.convert(index, Weak.INT).text

    def _early(self, e: Read) -> str:
        """Write the loading of an element that doesn't depend on the lane, and return the variable that holds it."""
        kind = c_compute(e.type)
        name = self.writer.names.fresh(f"{e.operand}_value")
        given, self.given = self.given, self.regions.given  # it is computed where the operand may be absent
        if self.writer.is_optional(e.operand) or e.pad is not None:
            self.before.append(f"const {kind} {name} = {self._element(e, False)};")
        else:
            places = self.places(e)
            self.before.append(f"const {kind} {name} = {self._load(e, self.offset(e, places))};")
        self.given = given
        self._values[e] = name
        return name

    def places(self, e: Read) -> dict[int, str]:
        """Write the computed indices of a read and their tests, and return the variables that hold them by entry."""
        declared = self.writer.op.operand(e.operand)
        found: dict[int, str] = {}
        for text, n in self._checks(e):
            name = found[n] = self.writer.names.fresh(f"{e.operand}_at")
            axis = self.writer.axis_of(declared, n)
            size = f"{e.operand}.size[{n}]"
            self.before += [
                f"const int64_t {name} = {text};",
                f"if (opc::outside({name}, {size})) {{",
                f"  opc::report(nest, {string_literal(e.operand)}, {axis}, {name}, {size});",
                "  return;",
                "}",
            ]
        return found

    def _load(self, e: Read, offset: str) -> str:
        if e.operand in self.regions.gathered:
            return f"opc::element<{c_compute(e.type)}>(nest, {self.writer.operands.index(e.operand)}, {offset})"
        return f"{e.operand}.data[{offset}]"

    def offset(self, e: Read, places: Mapping[int, str]) -> str:
        """Return the offset of an element that doesn't depend on the lane, or whose computed indices are in `places`."""
        base, steps = self._parts(e, places)
        lane = self.writer.indices.get(self.over.lane, "")
        return " + ".join([base, *(lane if s == "1" else f"{lane} * {s}" for s in steps)])

    def _parts(self, e: Read, places: Mapping[int, str]) -> tuple[str, list[str]]:
        """Return the offset at lane 0, and the steps along the lane."""
        terms: list[str] = []
        steps: list[str] = []
        last = self.regions.units[e.operand]
        for n, index in enumerate(e.indices):
            stride = "" if n == last else f"{e.operand}.stride[{n}]"
            if n in places or not isinstance(index, Affine):
                text = places[n] if n in places else self._index(index)  # type: ignore[arg-type]
                terms.append(f"{parenthesised(text)} * {stride}" if stride else text)
                continue
            coefficient = index.coefficient(self.over.lane) if self.over.lane else Affine.of(0)
            if coefficient is None:
                text = self.affine(index)
                terms.append(f"{parenthesised(text)} * {stride}" if stride else text)
                continue
            rest = index if not coefficient.terms else index - coefficient * Affine.of(Index(self.over.lane))
            if rest.terms:
                terms.append(f"{parenthesised(self.affine(rest))} * {stride}" if stride else self.affine(rest))
            if coefficient.terms:
                step = self.step if coefficient == self._step_of and self.step else self.affine(coefficient)
                steps.append(f"{parenthesised(step)} * {stride}" if stride and step != "1" else stride or parenthesised(step))
        base = " + ".join(terms) or "0"
        hoisted = [s for s in steps if ".stride" in s]
        for s in hoisted:
            steps[steps.index(s)] = self._base(s, f"{e.operand}_step")
        if steps and not all(t.isidentifier() for t in terms):
            base = self._base(base, f"{e.operand}_base")
        return base, steps

    def _base(self, text: str, wanted: str) -> str:
        """Return a variable that holds an integer which doesn't depend on the lane."""
        words = set(re.findall(r"\w+", text))
        if text.isidentifier() or not self.over.lane or self.writer.indices[self.over.lane] in words or words & self.inner:
            return text
        if text not in self._bases:
            self._bases[text] = self.writer.names.fresh(wanted)
            self.before.append(f"const int64_t {self._bases[text]} = {text};")
        return self._bases[text]

    def _element(self, e: Read, varies: bool) -> str:
        """Return an element as an expression that tests what must be tested where it stands."""
        kind = c_compute(e.type)
        optional = self.writer.is_optional(e.operand) and e.operand not in self.given
        conditions = [self.writer.present(e.operand)] if optional else []
        if e.pad is not None and all(isinstance(i, Affine) for i in e.indices):
            found = inside(e, self.writer.sizes(e.operand), self.regions.bounded)
            conditions += [f"{self.affine(g)} >= 0" for g in found]
            load = self._load(e, self.offset(e, {}))
            other = self.branch(e.pad, e.type).text
            return f"({' && '.join(conditions)} ? {load} : {kind}({other}))" if conditions else load
        if e.pad is None and not self._checks(e):
            load = self._load(e, self.offset(e, {}))
            return f"({' && '.join(conditions)} ? {load} : {kind}(0))" if conditions else load
        return self._tested(e, kind, conditions)

    def _tested(self, e: Read, kind: str, conditions: list[str]) -> str:
        """Return a read at computed indices as a lambda called in place."""
        declared = self.writer.op.operand(e.operand)
        lines = [f"if (!({c})) return {kind}(0);" for c in conditions]
        places: dict[int, str] = {}
        tested = range(len(e.indices)) if e.pad is not None else [n for _, n in self._checks(e)]
        outer_lazy, self.lazy = self.lazy, True
        for n in tested:
            index = e.indices[n]
            assert not isinstance(index, GroupRef), "a flat statement has no groups"
            name = self.writer.names.fresh(f"{e.operand}_at")
            lines.append(f"const int64_t {name} = {self._index(index)};")
            places[n] = name
            self.inner.add(name)
            size = f"{e.operand}.size[{n}]"
            if e.pad is not None:
                action = f"return {kind}({self.branch(e.pad, e.type).text});"
            else:
                report = f"opc::report(nest, {string_literal(e.operand)}, {self.writer.axis_of(declared, n)}, {name}, {size});"
                action = f"{report} return {kind}(0);"
            lines.append(f"if (opc::outside({name}, {size})) {{ {action} }}")
        lines.append(f"return {self._load(e, self.offset(e, places))};")
        self.lazy = outer_lazy
        return "\n".join([f"[&]() -> {kind} {{", *(f"      {line}" for line in lines), "    }()"])
