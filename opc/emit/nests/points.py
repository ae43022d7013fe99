"""Loop nests as C++: one function a statement, for accesses that are not bare indices.

Reductions become loops before the value that uses them. Under a conditional, where they must not run unless they are chosen,
they become lambdas that are called in place, and so do reads that may fall outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opc.emit.cpp.expressions import ExprText, Text, c_compute
from opc.emit.cpp.text import comment, string_literal
from opc.emit.dtypes import c_storage
from opc.emit.nests.base import NestWriter, parenthesised
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak
from opc.ir.expr import EXTREMES, Axis, BroadcastAxis, Expr, GroupAxis, GroupRef, Place, Read, Reduce, free_indices
from opc.ir.op import Group, Op
from opc.ir.printer import format_assign
from opc.lower.loop_ir import NestStage

_ATOM = 8


_OWN_NAMES = frozenset(("nest", "call", "begin", "end", "at", "point", "arguments"))
"""The parameters and variables of every nest's function."""


class NestText(NestWriter):
    """The function of one nest, point by point."""

    def __init__(self, op: Op, stage: NestStage, temporaries: frozenset[str]) -> None:
        super().__init__(op, stage, _OWN_NAMES)
        self.temporaries = temporaries
        self.groups: dict[str, tuple[str, str]] = {}
        self.margin = "    "
        self.conditional = False
        self.expr = _LazyText(self)
        self._function()

    def _stored(self, name: str) -> str:
        """Return the C++ type an operand is stored as; temporaries are stored as they are computed."""
        t = self.op.operand(name).type
        if name in self.temporaries:
            return c_compute(t)
        match t:
            case DType():
                return c_storage(t)
            case TypeVar():
                return f"{t.name}_stored"
            case _:
                return c_compute(t)

    def _function(self) -> None:
        assign = self.stage.assign
        target = self.op.operand(assign.target)
        for n, (entry, dim) in enumerate(zip(assign.indices, target.dims, strict=True)):
            if isinstance(entry, GroupRef) and isinstance(dim, Group):
                self.groups[entry.name] = (f"at + nest.start[{n}]", f"{self.axes(dim)}->rank")
            else:
                name = self.indices[str(entry)] = self.names.fresh(str(entry))
                if str(entry) in free_indices(assign.value):
                    self.lines.append(f"    const int64_t {name} = at[nest.start[{n}]];")
        value = self.expr.convert(assign.value, target.type)
        place = f"{self.view(assign.target)}.data + point"
        head = [f"  using {t.name} = opc::compute<{t.name}_stored>;" for t in self.types]
        head += self.prologue()
        for n, name in enumerate(self.operands):
            const = "" if name == assign.target else "const "
            stored = self._stored(name)
            head.append(f"  const opc::view<{const}{stored}> {self.view(name)} = opc::view_of<{const}{stored}>(nest, {n});")
        body = [
            "  int64_t at[opc::max_axes];",
            "  opc::locate(nest, begin, at);",
            comment(format_assign(assign), 2),
            "  for (int64_t point = begin; point < end; ++point, opc::advance(nest, at)) {",
            *self.lines,
            f"    opc::store({place}, {c_compute(target.type)}({value.text}));",
            "  }",
            "}",
        ]
        self.define(("void ", "(const opc::nest &nest, const void *call, int64_t begin, int64_t end) {"), [*head, *body])

    @property
    def template(self) -> tuple[str, ...]:
        """The types as which operands are stored."""
        return tuple(f"{t.name}_stored" for t in self.types)

    def read(self, e: Read) -> Text:
        """Return a read; one that may fall outside is a lambda that decides."""
        declared = self.op.operand(e.operand)
        view = self.view(e.operand)
        offsets: list[str] = []
        checks: list[tuple[str, str]] = []
        locals_: list[str] = []
        for n, (index, dim) in enumerate(zip(e.indices, declared.dims, strict=True)):
            axis = self.axis_of(declared, n)
            if isinstance(index, GroupRef) and isinstance(dim, Group):
                at, rank = self.groups[index.name]
                offsets.append(f"opc::group_offset({view}, {axis}, *{self.axes(dim)}, {at}, {rank})")
                continue
            guarded = e.pad is not None or n in e.checked or not isinstance(index, Affine)
            text = self.expr.affine(index) if isinstance(index, Affine) else self.expr.convert(index, Weak.INT).text  # type: ignore[arg-type]  # groups go with groups, above
            if guarded:
                name = self.names.fresh(f"at_{n}")
                locals_.append(f"const int64_t {name} = {text};")
                checks.append((name, axis))
                text = name
            offsets.append(f"{parenthesised(text)} * {view}.stride[{axis}]")
        element = f"opc::load({' + '.join([f'{view}.data', *offsets])})"
        optional = declared.optional and any(i.name == e.operand for i in self.op.inputs)
        if optional and e.operand not in self.expr.given:
            element = f"({self.present(e.operand)} ? {element} : {c_compute(e.type)}(0))"
        if not checks:
            return Text(element, _ATOM, e.type)
        return Text(self._guarded(e, element, checks, locals_), _ATOM, e.type)

    def _guarded(self, e: Read, element: str, checks: list[tuple[str, str]], locals_: list[str]) -> str:
        kind = c_compute(e.type)
        parts = [f"[&]() -> {kind} {{", *locals_]
        for name, axis in checks:
            outside = f"opc::outside({name}, {self.view(e.operand)}.shape[{axis}])"
            if e.pad is not None:
                parts.append(f"if ({outside}) return {kind}({self.expr.lazy(e.pad, e.type).text});")
            else:
                report = f"opc::report(nest, {string_literal(e.operand)}, {axis}, {name}, {self.view(e.operand)}.shape[{axis}]);"
                parts.append(f"if ({outside}) {{ {report} return {kind}(0); }}")
        parts += [f"return {element};", "}()"]
        inner = self.margin + "    "
        return "\n".join([parts[0], *(f"{inner}{p}" for p in parts[1:-1]), f"{self.margin}{parts[-1]}"])

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Write deeper, unconditionally, with the indices and groups of the loops entered here going out of scope after it."""
        indices, groups, margin, conditional = dict(self.indices), dict(self.groups), self.margin, self.conditional
        self.conditional = False
        yield
        self.indices, self.groups, self.margin, self.conditional = indices, groups, margin, conditional

    def reduce(self, e: Reduce) -> Text:
        """Return a reduction: the name of the variable its loops fill, or a lambda where it may not be chosen."""
        if not self.conditional:
            result = self._loops(e)
            return Text(result, _ATOM, e.type)
        lines, self.lines = self.lines, []
        margin, self.margin = self.margin, self.margin + "    "
        result = self._loops(e)
        body, self.lines, self.margin = self.lines, lines, margin
        text = "\n".join([f"[&]() -> {c_compute(e.type)} {{", *body, f"{margin}    return {result};", f"{margin}}}()"])
        return Text(text, _ATOM, e.type)

    def _loops(self, e: Reduce) -> str:
        """Write the loops of a reduction and return the name of its result."""
        kind = c_compute(e.type)
        value_kind = c_compute(e.body.type)
        result = self.names.fresh({"sum": "total", "prod": "product"}.get(e.kind, e.kind))
        search = e.kind in ("argmax", "argmin")
        starts = {"sum": "0", "prod": "1", "any": "false", "all": "true"}
        start = starts.get(e.kind) or f"opc::limits<{value_kind}>::{'lowest' if e.kind == 'max' else 'highest'}"
        best = count = ""
        if search:
            best, start = self.names.fresh("best"), "0"
            self.lines.append(f"{self.margin}{value_kind} {best} = 0;")
        if e.kind in EXTREMES:
            count = self.names.fresh("count")
            self.lines.append(f"{self.margin}int64_t {count} = 0;")
        self.lines.append(f"{self.margin}{kind} {result} = {start};")
        with self._inside():
            opened = 0
            for axis in e.axes:
                self.lines.append(f"{self.margin}{self._loop(axis)}")
                self.margin += "  "
                opened += 1
            if not opened:
                self.lines.append(f"{self.margin}{{")
                self.margin += "  "
                opened = 1
            value = self.expr.convert(e.body, e.body.type if search else e.type)
            match e.kind:
                case "sum" | "prod":
                    self.lines.append(f"{self.margin}{result} {'+' if e.kind == 'sum' else '*'}= {value.text};")
                case "any" | "all":
                    self.lines.append(f"{self.margin}{result} = {result} {'||' if e.kind == 'any' else '&&'} {value.at(3)};")
                case "max" | "min":
                    fn = "maximum" if e.kind == "max" else "minimum"
                    self.lines.append(f"{self.margin}{result} = opc::{fn}({result}, {kind}({value.text}));")
                    self.lines.append(f"{self.margin}++{count};")
                case _:
                    here = self.names.fresh("here")
                    better = f"{here} {'>' if e.kind == 'argmax' else '<'} {best} || ({here} != {here} && {best} == {best})"
                    self.lines.append(f"{self.margin}const {value_kind} {here} = {value.text};")
                    self.lines.append(f"{self.margin}if ({count} == 0 || {better}) {{")
                    self.lines.append(f"{self.margin}  {best} = {here};")
                    self.lines.append(f"{self.margin}  {result} = {kind}({count});")
                    self.lines.append(f"{self.margin}}}")
                    self.lines.append(f"{self.margin}++{count};")
            for depth in range(opened):
                self.lines.append(f"{self.margin[: len(self.margin) - 2 * (depth + 1)]}}}")
        if count:
            over = ", ".join(a.index if isinstance(a, Axis) else str(a) for a in e.axes)
            message = string_literal(f"{self.op.name}: {e.kind} over {over}")
            self.lines.append(f"{self.margin}if ({count} == 0) opc::report(nest, {message}, -1, 0, 0);")
        return result

    def _loop(self, axis: Axis | GroupAxis | BroadcastAxis) -> str:
        if isinstance(axis, Axis):
            extent = self.expr.affine(axis.extent)
            name = self.indices[axis.index] = self.names.fresh(axis.index)
            return f"for (int64_t {name} = 0; {name} < {extent}; ++{name}) {{"
        joint = self.axes(Group(axis.name))
        points = self.names.fresh("points")
        if isinstance(axis, BroadcastAxis):
            at, _ = self.groups[axis.name]
            begin = f"opc::group_points {points}(*{joint}, *{self.axes(Group(axis.name, axis.operand))}, {at})"
        else:
            begin = f"opc::group_points {points}(*{joint})"
        self.groups[axis.name] = (f"{points}.at", f"{joint}->rank")
        return f"for ({begin}; {points}.inside; {points}.next()) {{"


class _LazyText(ExprText):
    """Expressions of a nest, where only the chosen side of a conditional may run."""

    def __init__(self, nest: NestText) -> None:
        super().__init__(nest.op, nest.read, nest.attribute, nest.symbol, nest.present, nest.reduce)
        self.nest = nest

    def place(self, e: Place) -> Text:
        """Return which point of a group this is."""
        at, _ = self.nest.groups[e.group]
        return Text(f"opc::group_place(*{self.nest.axes(Group(e.group))}, {at})", _ATOM, Weak.INT)

    def lazy(self, e: Expr, wanted: ValueType) -> Text:
        """Return `e` as a value that is computed only where the text stands."""
        before, self.nest.conditional = self.nest.conditional, True
        text = self.convert(e, wanted)
        self.nest.conditional = before
        return text

    def branch(self, e: Expr, wanted: ValueType) -> Text:
        """Return one side of a conditional."""
        return self.lazy(e, wanted)
