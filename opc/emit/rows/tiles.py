"""Row stages as C++ tile functions: what the files compiled for each instruction-set variant hold."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from dataclasses import replace

from opc.emit.cpp.expressions import Text, c_compute
from opc.emit.cpp.layout import ARGUMENTS, present_member, wrap
from opc.emit.cpp.text import comment
from opc.emit.rows.actions import ActionText, loaded
from opc.emit.rows.folds import fold_type, is_extreme, is_slow, lanes, parameter
from opc.emit.rows.turns import fetches_ahead, handed_on, handed_to, takes_turns, used_in
from opc.ir.affine import Affine
from opc.ir.dtypes import Acc, TypeVar, ValueType
from opc.ir.expr import Expr, reads, walk
from opc.ir.op import AttributeKind, Op
from opc.ir.printer import format_assign
from opc.lower.loop_ir import Fold, Keep, Pass, Put, RowStage
from opc.lower.rows.apart import point_apart, where
from opc.lower.rows.streams import puts

NOTHING_AHEAD = "opc::nothing_ahead{}"


def type_variables(op: Op, stage: RowStage) -> tuple[TypeVar, ...]:
    """Return the type variables a stage's tile function is a template over, in the order of the spec."""
    used: set[ValueType] = {o.type for o in stage.operands}
    for p in stage.passes:
        for a in (*p.prologue, *p.body):
            used |= {a.type} | {e.type for e in walk(a.value)}
    variables = {t.of if isinstance(t, Acc) else t for t in used}
    return tuple(t for t in op.types if t in variables)


class TileText(ActionText):
    """The tile function of one row stage: `text` is its definition, `types` the type variables it is a template over, and
    `symbols` the members of the arguments struct it reads."""

    def __init__(self, op: Op, stage: RowStage, abreast: TileText | None = None) -> None:
        super().__init__(op, stage)
        self.abreast = abreast
        self.types = type_variables(op, stage)
        self.folds: dict[str, str] = {}
        self.step, self.ahead, self.margin = "", NOTHING_AHEAD, " " * 4
        self.once = None if stage.once is None else TileText(op, stage.once)
        self.text = self._function()
        for form in self._forms():
            self.symbols |= form.symbols
            self.text = f"{form.text}\n\n{self.text}"

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.stage.name

    @property
    def functions(self) -> list[str]:
        """The names of the function and of its other forms."""
        return [self.function, *(form.function for form in self._forms())]

    def _forms(self) -> list[TileText]:
        return [form for form in (self.once, self.abreast) if form is not None]

    def _function(self) -> str:
        for o in self.stage.operands:
            # What is also read by name gets a pointer of another name.
            read = o.along_row and not o.written
            taken = read or o.name in self._local_names()
            self.pointers[o.name] = self.names.fresh(f"{o.name}_row") if taken else o.name
            if not o.written:
                self.values[o.name] = Text(o.name, 8, o.type)
        loops = list(self._loops())
        flags = "".join(f", bool want_{name}" for name in self.stage.optional)
        template = ", ".join([f"typename {t.name}" for t in self.types]) + flags
        lines = [f"template <{template.removeprefix(', ')}>"] if template else []
        argument = f"const void *{self.call if self._uses_arguments() or self._forms() else ''}"
        lines.append(f"void {self.function}(const opc::tile &{self.tile}, {argument}) {{")
        flags = ", ".join([*(t.name for t in self.types), *(f"want_{name}" for name in self.stage.optional)])
        for form in self._forms():
            callee = f"{form.function}<{flags}>" if flags else form.function
            lines.append(f"  if ({form.taken_of(self.tile)}) return {callee}({self.tile}, {self.call});")
        lines += [*self._prologue(), *loops, "}"]
        return "\n".join(line for text in lines for piece in text.split("\n") for line in wrap(piece))

    def taken_of(self, tile: str) -> str:
        """Return the C++ condition under which this form of a function is called for a tile."""
        return f"{tile}.once"

    def _loops(self) -> Iterator[str]:
        return self._passes_in_turn() if takes_turns(self.stage) else self._rows()

    def _rows(self) -> Iterator[str]:
        """Yield the loop over rows, each of which goes through all passes."""
        yield f"  for (int64_t {self.row} = 0; {self.row} < {self.tile}.rows; ++{self.row}) {{"
        yield from self._row_pointers({o.name for o in self.stage.operands})
        for k, keep in enumerate(self.stage.keeps):
            kind = c_compute(keep.type)
            yield f"{self.margin}{kind} *{keep.name} = opc::scratch_row<{kind}>({self.tile}, {k});"
        for p in self.stage.passes:
            yield from self._pass(p)
        yield "  }"

    def _passes_in_turn(self) -> Iterator[str]:
        """Yield the loop over rows, some of which go through a pass before the next pass begins."""
        turn, first, end = (self.names.fresh(n) for n in ("in_turn", "first", "end"))
        self.margin = " " * 6
        yield f"  const int64_t {turn} = opc::rows_in_turn({self.tile}.columns);"
        yield f"  for (int64_t {first} = 0; {first} < {self.tile}.rows; {first} += {turn}) {{"
        yield f"    const int64_t {end} = opc::minimum({first} + {turn}, {self.tile}.rows);"
        arrays: dict[str, str] = {}
        for p in self.stage.passes:
            for name, of in handed_on(self.stage, p):
                arrays[name] = self.names.fresh(f"{name}_of")
                yield f"    {c_compute(of)} {arrays[name]}[opc::most_rows_in_turn];"
        for p in self.stage.passes:
            yield f"    for (int64_t {self.row} = {first}; {self.row} < {end}; ++{self.row}) {{"
            yield from self._row_pointers(used_in(self.stage, p))
            for name, of in handed_to(self.stage, p):
                yield f"{self.margin}const {c_compute(of)} {name} = {arrays[name]}[{self.row} - {first}];"
            self.ahead = yield from self._look_ahead(p, turn)
            yield from self._pass(p)
            for name, _ in handed_on(self.stage, p):
                yield f"{self.margin}{arrays[name]}[{self.row} - {first}] = {name};"
            yield "    }"
        yield "  }"

    def _look_ahead(self, p: Pass, turn: str) -> Generator[str, None, str]:
        """Yield what a pass needs to fetch rows to come, and return the C++ text of what fetches them."""
        fetched = fetches_ahead(self.stage, p)
        if not fetched:
            return NOTHING_AHEAD
        calls = []
        for k, o in enumerate(self.stage.operands):
            if o.name in fetched:
                kind, name = loaded(c_compute(o.type)), self.names.fresh(f"{o.name}_ahead")
                yield f"{self.margin}const {kind} *{name} = opc::row_ahead<const {kind}>({self.tile}, {k}, {self.row}, {turn});"
                calls.append(f"__builtin_prefetch({name} + {self.index});")
        ahead = self.names.fresh("ahead")
        yield f"{self.margin}const auto {ahead} = [&](int64_t {self.index}) OPC_INLINED {{ {' '.join(calls)} }};"
        return ahead

    def _local_names(self) -> set[str]:
        return {a.name for p in self.stage.passes for a in (*p.prologue, *p.body) if not isinstance(a, Put)}

    def _uses_arguments(self) -> bool:
        return bool(self.attributes or self.symbols)

    def _prologue(self) -> Iterator[str]:
        if not self._uses_arguments():
            return
        yield f"  const {ARGUMENTS} &{self.arguments} = *static_cast<const {ARGUMENTS} *>({self.call});"
        for (name, element, target), local in self.attributes.items():
            place = f"{self.arguments}.attributes->{name}" + ("" if element < 0 else f"[{element}]")
            declared = self.op.attribute(name)
            own = "double" if declared.kind is AttributeKind.FLOAT else "int64_t"
            if declared.kind is AttributeKind.STR and not declared.values:
                yield f"  const char *const {local} = {place};"
            elif declared.kind is AttributeKind.BOOL:
                yield f"  const bool {local} = {place} != 0;"
            elif target in ("", own):
                yield f"  const {own} {local} = {place};"
            else:
                yield f"  const {target} {local} = {target}({place});"
        for member in self.symbols:
            # A loop over 32 or 64 bits blends by an int32_t, not by a bool.
            kind = "int32_t" if member.startswith("has_") else "int64_t"
            yield f"  const {kind} {member} = {self.arguments}.{member};"

    def _row_pointers(self, names: Collection[str]) -> Iterator[str]:
        for k, o in enumerate(self.stage.operands):
            if o.name not in names:
                continue
            kind, name = c_compute(o.type), self.pointers[o.name]
            if o.written:
                yield f"{self.margin}{kind} *{name} = opc::row<{kind}>({self.tile}, {k}, {self.row});"
            elif o.along_row:
                kind = loaded(kind)
                yield f"{self.margin}const {kind} *{name} = opc::row<const {kind}>({self.tile}, {k}, {self.row});"
            elif any(i.name == o.name and i.optional for i in self.op.inputs):
                self.symbols[present_member(o.name)] = None
                pointer = f"*opc::row<const {kind}>({self.tile}, {k}, {self.row})"
                yield f"{self.margin}const {kind} {name} = {present_member(o.name)} ? {pointer} : {kind}(0);"
            else:
                yield f"{self.margin}const {kind} {name} = *opc::row<const {kind}>({self.tile}, {k}, {self.row});"

    def _pass(self, p: Pass) -> Iterator[str]:
        if not p.prologue and not p.body:
            return
        sources = dict.fromkeys(format_assign(a.source) for a in (*p.prologue, *p.body))
        for text in sources:
            yield comment(text, len(self.margin))
        for early in p.prologue:
            yield from self._action(early, self.margin, "[0]")
        if not p.body:
            return
        yield from self._inverses(p)
        if p.apart is not None:
            yield from self._loops_around(p, p.apart)
        elif self.stage.streams and puts(p):
            yield from self._putting_loop(p)
        else:
            folds = [a for a in p.body if isinstance(a, Fold)]
            yield from self._loop_head(folds)
            yield from self._loop_body(p)
            yield from self._loop_end(p, folds)
        self._know(p)

    def _know(self, p: Pass) -> None:
        """Take in how the passes behind read what a pass has folded and kept."""
        for a in p.body:
            match a:
                case Fold():
                    self.values[a.name] = Text(a.name, 8, a.type)
                case Keep():
                    self.values[a.name] = Text(f"{self._buffer(a)}[{self.place}]", 8, a.type)

    def _inverses(self, p: Pass) -> Iterator[str]:
        """Take in what a pass folds and keeps, and yield the inverses of sums that it divides by."""
        self.expr.kept = {**self.expr.kept, **{a.name: a.value for a in p.body if isinstance(a, Keep)}}
        found = dict.fromkeys(self.expr.inverted(e) for a in p.body for e in walk(a.value))
        self.expr.inverses = {name: self.names.fresh(f"{name}_inverse") for name in found if name is not None}
        for name, inverse in self.expr.inverses.items():
            kind = c_compute(self.values[name].type)
            yield f"{self.margin}const {kind} {inverse} = {kind}(1) / {name};"
        for a in p.body:
            if isinstance(a, Fold):
                self.expr.learn(a)

    def _loop_body(self, p: Pass, deeper: str = "  ") -> Iterator[str]:
        margin = self.margin + deeper
        self.expr.varying = self.varying
        yield from self._loads(p, margin)
        for a in p.body:
            yield from self._action(a, margin, f"[{self.place}]")
        self.expr.varying = None

    def _putting_loop(self, p: Pass) -> Iterator[str]:
        """Yield the loop of a pass that only puts: a function of the place and of the elements there, which may be streamed."""
        targets = {a.name: self.stage.operand(a.name).type for a in p.body if isinstance(a, Put)}
        self.here = {name: self.names.fresh(f"{name}_here") for name in targets}
        streams = {name: self.names.fresh(f"{name}_put") for name in targets}
        for name, of in targets.items():
            needed = f"want_{name}" if self.stage.optional else "true"
            yield f"{self.margin}opc::row_put<{c_compute(of)}, {needed}> {streams[name]}({self.pointers[name]});"
        parameters = ", ".join(f"{c_compute(of)} &{self.here[name]}" for name, of in targets.items())
        still = [name for name in self.stage.still if any(r.operand == name for a in p.body for r in reads(a.value))]
        if still:
            yield from self._step_of_stretch(p, parameters, still, list(streams.values()))
        else:
            step = self.names.fresh("step")
            yield f"{self.margin}const auto {step} = [&](int64_t {self.index}, {parameters}) OPC_INLINED {{"
            yield from self._loop_body(p)
            yield f"{self.margin}}};"
            yield f"{self.margin}opc::put_row({self.tile}, {self.ahead}, {step}, {', '.join(streams.values())});"
        self.here = {}

    def _step_of_stretch(self, p: Pass, parameters: str, still: list[str], streams: list[str]) -> Iterator[str]:
        """Yield the loop of a pass as a function of the operands that stand still, which makes the function of a place."""
        step_at, stretch = self.names.fresh("step_at"), self.names.fresh("stretch")
        yield f"{self.margin}const auto {step_at} = [&](int64_t {stretch}) OPC_INLINED {{"
        place, self.place = self.place, stretch
        yield from self._loads(p, f"{self.margin}  ", still=True)
        self.place = place
        yield f"{self.margin}  return [&, {', '.join(still)}](int64_t {self.index}, {parameters}) OPC_INLINED {{"
        yield from self._loop_body(p, "    ")
        yield f"{self.margin}  }};"
        yield f"{self.margin}}};"
        yield f"{self.margin}opc::put_stretches({self.tile}, {self.ahead}, {step_at}, {', '.join(streams)});"

    def _loops_around(self, p: Pass, apart: Expr) -> Iterator[str]:
        """Yield the loops of a pass that has a point apart: that point, and the points before and behind it."""
        found = point_apart(apart, self.index_of_row)
        assert found is not None, "the condition holds at one point"
        offset, value = found
        one, side, begin, end = (self.names.fresh(n) for n in ("one", "side", "begin", "end"))
        at = f"int64_t({self.expr.expr(value).text})" + ("" if offset == Affine.of(0) else f" - ({self.expr.affine(offset)})")
        yield f"{self.margin}const opc::place_apart {one}({at}, {self.tile}.columns);"
        yield f"{self.margin}for (int64_t {self.index} = {one}.begin; {self.index} < {one}.end; ++{self.index}) {{"
        yield from self._loop_body(replace(p, body=where(p, True)))
        yield f"{self.margin}}}"
        yield f"{self.margin}for (int {side} = 0; {side} < 2; ++{side}) {{"
        yield f"{self.margin}  const int64_t {begin} = {side} == 0 ? 0 : {one}.end;"
        yield f"{self.margin}  const int64_t {end} = {side} == 0 ? {one}.begin : {self.tile}.columns;"
        yield f"{self.margin}  OPC_SIMD"
        yield f"{self.margin}  for (int64_t {self.index} = {begin}; {self.index} < {end}; ++{self.index}) {{"
        yield from self._loop_body(replace(p, body=where(p, False)), "    ")
        yield f"{self.margin}  }}"
        yield f"{self.margin}}}"

    def _loop_head(self, folds: list[Fold]) -> Iterator[str]:
        """Yield the head of a loop along the row. One that folds is a function of the place and of partial results."""
        if not folds:
            yield f"{self.margin}OPC_SIMD"
            yield f"{self.margin}for (int64_t {self.index} = 0; {self.index} < {self.tile}.columns; ++{self.index}) {{"
            return
        for f in folds:
            self.folds[f.name] = self.names.fresh(f"{f.name}_fold")
            yield f"{self.margin}{fold_type(f, lanes(folds))} {self.folds[f.name]};"
        self.step = self.names.fresh("step")
        parameters = ", ".join(map(parameter, folds))
        yield f"{self.margin}const auto {self.step} = [&](int64_t {self.index}, {parameters}) OPC_INLINED {{"

    def _loop_end(self, p: Pass, folds: list[Fold]) -> Iterator[str]:
        """Yield the end of a loop along the row, and the results of its folds."""
        if not folds:
            yield f"{self.margin}}}"
            return
        yield f"{self.margin}}};"
        names = ", ".join(self.folds[f.name] for f in folds)
        quick = ", true" if not any(is_slow(e) for a in p.body for e in walk(a.value)) else ""
        yield f"{self.margin}opc::fold_row<{lanes(folds)}{quick}>({self.tile}.columns, {self.ahead}, {self.step}, {names});"
        for f in folds:
            kind, value = c_compute(f.type), f"{self.folds[f.name]}.{'result()' if is_extreme(f) else 'value'}"
            value = f"opc::key_value<{kind}>({value})" if f.kind in ("max", "min") and not is_extreme(f) else value
            yield f"{self.margin}const {kind} {f.name} = {value};"
