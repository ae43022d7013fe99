"""The loop over a lane in a nest: the text of an expression inside, and what doesn't depend on the lane ahead of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from opc.emit.cpp.expressions import ExprText, Text, c_compute
from opc.emit.cpp.text import message_literal
from opc.emit.nests.base import NestWriter, parenthesised
from opc.ir.affine import Affine, Atom, FloorDiv, Index, Mod
from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import Expr, GroupRef, Read, free_indices, reads
from opc.lower.guards import inside, is_known_inside
from opc.lower.nests.flat import divisions
from opc.lower.nests.places import is_looked_up, is_tested, place_entries

_ATOM = 8


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


PlaceKey: TypeAlias = tuple[str, tuple[tuple[int, Affine | GroupRef | Expr], ...]]
"""An operand, and the entries of a read of it that make its place in a row."""


@dataclass(slots=True)
class Scope:
    """What is known where an expression over a lane is written.

    `bounded` tells which indices are within which extent; `locals` are values already computed, which the IR reads as operands of
    that name; `gathered` operands are read in the type they are stored in; `units` tells the entry along which each operand is
    contiguous; `given` are the optional operands known to be present; `row_lane` is the lane that has no more than `nest_lanes`,
    and `row_size` what holds a row of it; `places` are the variables that hold rows of places, found before, by what finds them.
    """

    writer: NestWriter
    positive: Callable[[Affine], bool]
    gathered: frozenset[str]
    units: Mapping[str, int]
    bounded: dict[Affine, Affine] = field(default_factory=dict)
    locals: dict[str, Local] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    row_lane: str = ""
    row_size: str = "opc::nest_lanes"
    places: dict[PlaceKey, str] = field(default_factory=dict)


class Leaf(ExprText):
    """The text of an expression in one loop over the lane; what doesn't depend on the lane goes into `before`."""

    def __init__(self, scope: Scope, over: Range) -> None:
        w = scope.writer
        super().__init__(w.op, self._read, w.attribute, w.symbol, w.present)
        self.scope, self.writer, self.over = scope, w, over
        self.before: list[str] = []
        self.given = scope.given
        self.lazy = False
        self.step: str | None = None
        self.step_text = ""
        self._step_of: Affine | None = None
        self._bases: dict[str, str] = {}
        self._values: dict[Expr, str] = {}
        self._rows: dict[Read, str] = {}
        self.inner: set[str] = set()

    def find_step(self, e: Expr) -> None:
        """Make the one step that is no number, by which reads advance along the lane, a name that may turn out a constant."""
        found = set()
        for r in reads(e):
            if r.operand in self.scope.locals or not r.indices or self.over.lane not in free_indices(r):
                continue
            last = r.indices[self.scope.units[r.operand]]
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

    def _atom(self, atom: Atom) -> str:
        """Return a symbol, or a division: ahead of the loop where it doesn't depend on the lane."""
        text = super()._atom(atom)
        return self._base(text, "part") if isinstance(atom, FloorDiv | Mod) and self._divides(atom) else text

    def _divides(self, atom: FloorDiv | Mod) -> bool:
        """Whether a division can be carried out wherever it stands."""
        return all(self.scope.positive(d.denominator) for d in (atom, *divisions(atom.numerator), *divisions(atom.denominator)))

    def condition(self, e: Expr) -> str:
        """Return a condition that is tested once, where its reads are known to be inside."""
        before, self.lazy = self.lazy, True
        text = self.expr(e).text
        self.lazy = before
        return text

    def _read(self, e: Read) -> Text:
        w = self.writer
        local = self.scope.locals.get(e.operand)
        if local is not None:
            return Text(f"{local.text}[{self.writer.indices[self.over.lane]}]" if local.row else local.text, _ATOM, local.type)
        if e in self._values:
            return Text(self._values[e], _ATOM, e.type)
        varies = self._varies(e)
        safe = is_known_inside(e, self.writer.sizes(e.operand), self.scope.bounded)
        if (
            varies
            and not self.lazy
            and e.operand in self.scope.gathered
            and self.over.lane == self.scope.row_lane
            and self.is_row(e)
        ):
            return Text(f"{self._row(e)}[{self.writer.indices[self.over.lane]}]", _ATOM, e.type)
        if varies and not self.lazy and self.over.lane == self.scope.row_lane and is_looked_up(w.op, e, self.over.lane):
            return Text(f"{self._fetched(e)}[{w.indices[self.over.lane]}]", _ATOM, e.type)
        if varies or (self.lazy and not (safe and self.over.lane)):
            return Text(self._element(e, varies), _ATOM, e.type)
        return Text(self._early(e), _ATOM, e.type)

    def is_row(self, e: Read) -> bool:
        """Whether a read at computed places runs along a row of its operand."""
        if e.operand in self.scope.locals or not e.indices:
            return False
        unit = self.scope.units[e.operand]
        last = e.indices[unit]
        if e.pad is not None or unit in e.checked or not isinstance(last, Affine) or self.writer.is_optional(e.operand):
            return False
        step = last.coefficient(self.over.lane)
        others = replace(e, indices=(*e.indices[:unit], *e.indices[unit + 1 :]))
        return step is not None and step.constant == 1 and self.over.lane not in free_indices(others)

    def _row(self, e: Read) -> str:
        """Write the look-up of the row that a read runs along, and return the variable that points to it."""
        if e not in self._rows:
            w = self.writer
            kind = c_compute(e.type)
            places = self.places(e)
            name = self._rows[e] = w.names.fresh(f"{e.operand}_row")
            base, _ = self._parts(e, places)
            self.before += [
                f"{kind} {name}_buffer[opc::nest_lanes];",
                f"const {kind} *const {name} = opc::row_at(nest, {w.operands.index(e.operand)}, {base}, {self.over.low}, "
                f"{self.over.high}, {name}_buffer);",
            ]
        return self._rows[e]

    def place_key(self, e: Read) -> PlaceKey:
        """Return what finds the place of a read that is looked up."""
        entries = place_entries(self.writer.op, e, self.over.lane, self.scope.bounded)
        return e.operand, tuple((n, e.indices[n]) for n in entries)

    def place_lines(self, e: Read, row: str) -> list[str]:
        """Return the loop that finds the places of a looked-up read and puts them into a row."""
        lines: list[str] = []
        tests: list[str] = []
        names = self._place_names(e, lines)
        for n, name in names.items():
            if self._is_tested(e, n):
                size = self._base(f"{self.writer.view(e.operand)}.size[{n}]", f"{e.operand}_size")
                tests.append(f"opc::outside({name}, {size}) ? opc::nowhere : ")
        last = self.scope.units[e.operand]
        terms = []
        for n, name in names.items():
            stride = self._base(f"{self.writer.view(e.operand)}.stride[{n}]", f"{e.operand}_step")
            terms.append(name if n == last else f"{name} * {stride}")
        lane = self.writer.indices[self.over.lane]
        lines.append(f"{row}[{lane}] = {''.join(tests)}{' + '.join(terms)};")
        return ["OPC_SIMD", f"{self._head(lane)} {{", *(f"  {line}" for line in lines), "}"]

    def _head(self, lane: str) -> str:
        return f"for (int64_t {lane} = {self.over.low}; {lane} < {self.over.high}; ++{lane})"

    def _is_tested(self, e: Read, entry: int) -> bool:
        return is_tested(e, entry, self.writer.sizes(e.operand), self.scope.bounded)

    def _place_names(self, e: Read, lines: list[str]) -> dict[int, str]:
        """Write the indices that make a place, and return the variables that hold them by entry."""
        names: dict[int, str] = {}
        lazy, self.lazy = self.lazy, True
        for n, index in self.place_key(e)[1]:
            assert not isinstance(index, GroupRef), "a flat statement has no groups"
            text = self._index(index)
            name = names[n] = self.writer.names.fresh(f"{e.operand}_at")
            lines.append(f"const int64_t {name} = {text};")
            self.inner.add(name)
        self.lazy = lazy
        return names

    def _fetched(self, e: Read) -> str:
        """Write the fetching of a row of elements from places of their own, and return the variable that holds them."""
        if e in self._rows:
            return self._rows[e]
        w = self.writer
        kind = c_compute(e.type)
        key = self.place_key(e)
        step, self.step = self.step, None  # Rows are fetched ahead of where the step has its name.
        places = self.scope.places.get(key)
        if places is None:
            places = w.names.fresh(f"{e.operand}_places")
            lines = self.place_lines(e, places)
            self.before += [f"int64_t {places}[{self.scope.row_size}];", *lines]
        moving = dict(key[1])
        still = tuple(Affine.of(0) if n in moving else i for n, i in enumerate(e.indices))
        base, _ = self._parts(replace(e, indices=still), {})
        other = "0" if e.pad is None else self.branch(e.pad, e.type).text
        name = self._rows[e] = w.names.fresh(f"{e.operand}_row")
        self.before.append(f"{kind} {name}[{self.scope.row_size}];")
        range_ = f"{self.over.low}, {self.over.high}"
        call = f"opc::fetch_row(nest, {w.operands.index(e.operand)}, {base}, {places}, {range_}, {kind}({other}), {name})"
        if e.pad is not None:
            self.before.append(f"{call};")
        else:
            self.before += [f"if (!{call}) {{", *(f"  {line}" for line in self._refusal(e)), "}"]
        self.step = step
        return name

    def _refusal(self, e: Read) -> list[str]:
        """Return the lines that report the first of a row's places that lies outside."""
        lines: list[str] = []
        names = self._place_names(e, lines)
        for n, name in names.items():
            if self._is_tested(e, n):
                size = f"{self.writer.view(e.operand)}.size[{n}]"
                axis = self.writer.axis_of(self.writer.op.operand(e.operand), n)
                report = f"opc::report(nest, {message_literal(e.operand)}, {axis}, {name}, {size});"
                lines.append(f"if (opc::outside({name}, {size})) {report}")
        return [f"{self._head(self.writer.indices[self.over.lane])} {{", *(f"  {line}" for line in lines), "}", "return;"]

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
        given, self.given = self.given, self.scope.given  # it is computed where the operand may be absent
        if self.writer.is_optional(e.operand) or e.pad is not None:
            self.before.append(f"const {kind} {name} = {self._element(e, False)};")
        else:
            places = self.places(e)
            self.before.append(f"const {kind} {name} = {self._load(e, places)};")
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
            size = f"{self.writer.view(e.operand)}.size[{n}]"
            self.before += [
                f"const int64_t {name} = {text};",
                f"if (opc::outside({name}, {size})) {{",
                f"  opc::report(nest, {message_literal(e.operand)}, {axis}, {name}, {size});",
                "  return;",
                "}",
            ]
        return found

    def _load(self, e: Read, places: Mapping[int, str]) -> str:
        """Return an element that doesn't depend on the lane, or whose computed indices are in `places`."""
        view = self.writer.view(e.operand)
        if e.operand in self.scope.gathered:
            return f"{view}.at({self.offset(e, places)})"
        base, steps = self._parts(e, places)
        if self._moves(base) or all(s == "1" for s in steps):
            return f"{view}.data[{self.offset(e, places)}]"
        return f"opc::element({view}.data, {base}, {' + '.join(self._along(steps))})"

    def offset(self, e: Read, places: Mapping[int, str]) -> str:
        """Return the offset of an element that doesn't depend on the lane, or whose computed indices are in `places`."""
        base, steps = self._parts(e, places)
        return " + ".join([base, *self._along(steps)])

    def _along(self, steps: Sequence[str]) -> list[str]:
        """Return the terms of an offset that change with the lane."""
        lane = self.writer.indices.get(self.over.lane, "")
        return [lane if s == "1" else f"{lane} * {s}" for s in steps]

    def _parts(self, e: Read, places: Mapping[int, str]) -> tuple[str, list[str]]:
        """Return the offset at lane 0, and the steps along the lane."""
        terms: list[str] = []
        steps: list[str] = []
        last = self.scope.units[e.operand]
        for n, index in enumerate(e.indices):
            stride = "" if n == last else f"{self.writer.view(e.operand)}.stride[{n}]"
            if n in places or not isinstance(index, Affine):
                text = places[n] if n in places else self._index(index)  # type: ignore[arg-type]  # not affine here
                if stride and self._moves(text):
                    stride = self._base(stride, f"{e.operand}_step")
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
                # A step of another axis is multiplied ahead of the loop, where the name of the one along the lane isn't known.
                step = self.step if coefficient == self._step_of and self.step and not stride else self.affine(coefficient)
                steps.append(f"{parenthesised(step)} * {stride}" if stride and step != "1" else stride or parenthesised(step))
        base = " + ".join(terms) or "0"
        hoisted = [s for s in steps if ".stride" in s]
        for s in hoisted:
            steps[steps.index(s)] = self._base(s, f"{e.operand}_step")
        if steps and not all(t.isidentifier() for t in terms):
            moving = [t for t in terms if self._moves(t)]
            still = " + ".join(t for t in terms if t not in moving)
            base = " + ".join([*([self._base(still, f"{e.operand}_base")] if still else []), *moving])
        return base, steps

    def _varies(self, e: Read) -> bool:
        """Whether a read changes from lane to lane: with the lane itself, or with an index that is found in the loop over it."""
        names = free_indices(e)
        return bool(self.over.lane) and (
            self.over.lane in names or any(self.writer.indices.get(name) in self.inner for name in names)
        )

    def _moves(self, text: str) -> bool:
        """Whether an integer depends on the lane."""
        words = set(re.findall(r"\w+", text))
        return bool(self.over.lane) and (self.writer.indices[self.over.lane] in words or bool(words & self.inner))

    def _base(self, text: str, wanted: str) -> str:
        """Return a variable that holds an integer which doesn't depend on the lane."""
        if text.isidentifier() or not self.over.lane or self._moves(text):
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
            found = inside(e, self.writer.sizes(e.operand), self.scope.bounded)
            conditions += [f"{self.affine(g)} >= 0" for g in found]
            load = self._load(e, {})
            other = self.branch(e.pad, e.type).text
            return f"({' && '.join(conditions)} ? {load} : {kind}({other}))" if conditions else load
        if e.pad is None and not self._checks(e):
            load = self._load(e, {})
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
            size = self._base(f"{self.writer.view(e.operand)}.size[{n}]", f"{e.operand}_size")
            if e.pad is not None:
                action = f"return {kind}({self.branch(e.pad, e.type).text});"
            else:
                report = f"opc::report(nest, {message_literal(e.operand)}, {self.writer.axis_of(declared, n)}, {name}, {size});"
                action = f"{report} return {kind}(0);"
            lines.append(f"if (opc::outside({name}, {size})) {{ {action} }}")
        lines.append(f"return {self._load(e, places)};")
        self.lazy = outer_lazy
        return "\n".join([f"[&]() -> {kind} {{", *(f"      {line}" for line in lines), "    }()"])
