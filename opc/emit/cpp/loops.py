"""The loop IR as C++: functions of a kernel, statement by statement. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, ClassVar

from opc.emit.cpp.expressions import c_compute
from opc.emit.cpp.layout import ARGUMENTS, spec_names, wrapped
from opc.emit.cpp.text import comment
from opc.emit.cpp.values import ValueText
from opc.emit.dtypes import c_storage
from opc.ir.dtypes import DType, TypeVar, Weak
from opc.ir.expr import NOTHING, Expr, IndexValue
from opc.ir.op import AttributeKind, Op
from opc.loops.names import parameters_of
from opc.loops.nodes import (
    Accumulate,
    Alias,
    Body,
    Buffer,
    CallWithBody,
    Comment,
    Continue,
    Do,
    GroupPoints,
    How,
    If,
    Kernel,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Refuse,
    Return,
    Statement,
    Store,
    Var,
    View,
    While,
    Yield,
    declared_in,
)
from opc.loops.values import (
    Init,
    IntegerChoice,
    Kind,
    Named,
    Pointer,
    Product,
    Sum,
)
from opc.lower.build.context import Nest
from opc.names import unused

_OPERATOR = {"sum": "+", "prod": "*", "any": "||", "all": "&&", "max": "max", "min": "min"}
_BITS = {"any": "|", "all": "&"}
_PRAGMA = {How.VECTOR: "OPC_SIMD", How.UNROLLED: "OPC_UNROLLED", How.ROLLED: "OPC_ROLLED"}
_HEADS = {
    "tile": ("void ", "(const opc::tile &tile, const void *call) {"),
    "row_nest": ("OPC_ROW_NEST void ", "(const opc::row_nest &nest, const void *call, int64_t begin, int64_t end) {"),
    "nest": ("void ", "(const opc::nest &nest, const void *call, int64_t begin, int64_t end) {"),
}
"""What stands before and after the name of a function of each form."""


def symbol_type(member: str) -> str:
    """Return the C++ type of a member of the arguments struct."""
    if member.startswith("has_"):
        return "int32_t"
    return "const opc::extents *" if member.startswith("axes_") else "int64_t"


class KernelText(ValueText):
    """The text of one function. `symbols` are the locals of the members of the arguments struct that it reads."""

    HEAD: Mapping[str, tuple[str, str]] = _HEADS
    ATTRIBUTES = "arguments.attributes->"
    STATEMENTS: ClassVar[Mapping[type, Callable[[Any, Any], str]]] = {}
    """What writes each class of statements without a body, each of which is one text."""

    def __init__(self, op: Op, kernel: Kernel, temporaries: frozenset[str] = NOTHING, nest: Nest | None = None) -> None:
        super().__init__(op, kernel)
        self.nest = nest
        self.head = ""
        """What stands before the function."""
        self.types, self.temporaries = kernel.types, temporaries
        self.attributes: dict[tuple[str, int, str], str] = {}
        self.forms = [(f, KernelText(op, f.kernel)) for f in kernel.forms]
        body = self._body(kernel.body, "  ")
        for _, text in self.forms:
            for member in text.symbols:
                self._of_call(member)
            self.runtime |= text.runtime
        lines = [*self._prologue(), *self._views(), *body, "}"]
        self.after = wrapped(lines)

    def of_stage(self, op: Op, kernel: Kernel, nest: Nest | None) -> KernelText:
        """Return the text as that of a stage that computes alike, whose operands may have other names."""
        other = copy(self)
        other.op, other.kernel, other.nest = op, kernel, nest
        return other

    def mark_seldom(self) -> None:
        """Have the function compiled as one that training seldom calls."""
        self.head = "OPC_SELDOM "
        for _, text in self.forms:
            text.mark_seldom()

    def text(self, name: str) -> str:
        """Return the definition of the function under a name: stages that compute alike are written once."""
        stored = "_stored" if self.kernel.form == "nest" else ""
        flags = self.kernel.flags
        of = self.kernel.converts
        types = [*(f"typename {t.name}{stored}" for t in self.types), *(f"bool {f}" for f in flags)]
        template = ", ".join([*types, *([] if of is None else [f"typename {of.name}_stored = {of.name}"])])
        lines = [f"template <{template}>"] if template else []
        lines.append(self.head + name.join(self.HEAD[self.kernel.form]))
        chosen = ", ".join([*(t.name for t in self.types), *flags, *([] if of is None else [f"{of.name}_stored"])])
        for form in self.kernel.forms:
            callee = f"{form.prefix}{name}{form.suffix}" + (f"<{chosen}>" if chosen else "")
            lines.append(f"  if ({self.expr(form.cond).text}) return {callee}(tile, call);")
        own = "\n".join([*wrapped(lines), *self.after])
        return "\n\n".join([*(text.text(f"{f.prefix}{name}{f.suffix}") for f, text in self.forms), own])

    @property
    def extremes(self) -> Mapping[str, str]:
        """The functions that a larger or a smaller value is found by."""
        return {"max": "maximum", "min": "minimum"}

    # What the function is called with.

    def _prologue(self) -> Iterator[str]:
        """Yield the locals that hold attributes and sizes."""
        if self.kernel.form == "nest":
            yield from (f"  using {t.name} = opc::compute<{t.name}_stored>;" for t in self.types)
        if not self.attributes and not self.symbols:
            if not self.forms:
                yield "  static_cast<void>(call);"
            return
        yield f"  const {ARGUMENTS} &arguments = *static_cast<const {ARGUMENTS} *>(call);"
        for (name, element, target), local in self.attributes.items():
            place = f"{self.ATTRIBUTES}{name}" + ("" if element < 0 else f"[{element}]")
            declared = self.op.attribute(name)
            if declared.kind is AttributeKind.STR and not declared.values:
                yield f"  const char *const {local} = {place};"
            else:
                yield f"  const {target or 'int64_t'} {local} = {target or 'int64_t'}({place});"
        for member, local in self.symbols.items():
            kind = symbol_type(member)
            declaration = f"{kind}const {local}" if kind.endswith("*") else f"const {kind} {local}"
            yield f"  {declaration} = arguments.{member};"

    def _views(self) -> Iterator[str]:
        """Yield the locals that hold the operands that the function reads."""
        for v in self.kernel.views:
            if v.name not in self.read:
                continue
            if self.kernel.form == "nest":
                const = "" if v.entry == len(self.kernel.operands) - 1 else "const "
                kind = self._view_type(f"{const}{self._stored(v)}")
                yield f"  const {kind} {v.name} = opc::view_of<{const}{self._stored(v)}>(nest, {v.entry});"
            else:
                form, kind = "stored_flat" if v.stored else "flat", c_compute(v.type)
                yield f"  const opc::{form}<{kind}> {v.name} = opc::{form}_of<{kind}>(nest, {v.entry});"

    def _view_type(self, stored: str) -> str:
        """Return the type of the local that holds an operand of a nest."""
        return f"opc::view<{stored}>"

    def _stored(self, v: View) -> str:
        """Return the C++ type an operand is stored as; temporaries are stored as they are computed."""
        if self.kernel.operands[v.entry] not in self.temporaries and isinstance(v.type, DType):
            return c_storage(v.type)
        if self.kernel.operands[v.entry] not in self.temporaries and isinstance(v.type, TypeVar):
            return f"{v.type.name}_stored"
        return c_compute(v.type)

    def attribute(self, name: str, element: int, target: str) -> str:
        """Return the local that holds an attribute as a C++ type."""
        key = (name, element, target)
        if key not in self.attributes:
            taken = any(k[:2] == key[:2] for k in self.attributes) or element >= 0 or name in self.declared
            self.attributes[key] = self._fresh(name if element < 0 else f"{name}_{element}") if taken else name
        return self.attributes[key]

    def _local_of(self, member: str) -> str:
        # Under the name of a variable it would be another value where that is known.
        return self._fresh(member) if member in self.declared else member

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the function's parameters."""
        return parameters_of(self.kernel)

    @cached_property
    def declared(self) -> frozenset[str]:
        """The names of the function's variables."""
        return self.parameters.union(declared_in(self.kernel.body))

    @cached_property
    def used(self) -> set[str]:
        """The names that no attribute can have."""
        return {*self.declared, *spec_names(self.op)}

    def _fresh(self, wanted: str) -> str:
        name = unused(wanted, self.used)
        self.used.add(name)
        return name

    # Statements.

    def _body(self, body: Body, margin: str) -> list[str]:
        lines: list[str] = []
        for s in body:
            self._statement(s, margin, lines)
        return lines

    def _statement(self, s: Statement, margin: str, lines: list[str]) -> None:
        """Add the lines of a statement."""
        rule = self.STATEMENTS.get(s.__class__)
        if rule is not None:
            _add(rule(self, s), margin, lines)
        else:
            self._nested(s, margin, lines)

    def _let(self, s: Let) -> str:
        return f"{self._declared(s.kind, s.name, True)}{self._started(s.value, s.kind)};"

    def _var(self, s: Var) -> str:
        return f"{self._declared(s.kind, s.name, False)}{'' if s.value is None else self._started(s.value, s.kind)};"

    def _buffer(self, s: Buffer) -> str:
        aligned = "alignas(opc::line_bytes) " if s.aligned else ""
        size = s.size if isinstance(s.size, str) else self.integer(s.size)
        return f"{aligned}{self._kind(s.kind)} {s.name}[{size}];"

    def _store(self, s: Store) -> str:
        return f"{self.expr(s.target).text} = {self._initial(s.value, s.target.type)};"

    def _yield(self, s: Yield) -> str:
        assert self.block is not None, "a block has a result"
        return f"return {self.convert(s.value, self.block).text};"

    def _nested(self, s: Statement, margin: str, lines: list[str]) -> None:
        """Add the lines of a statement with a body."""
        match s:
            case Loop():
                if s.how is How.REDUCTION:
                    lines.append(f"{margin}OPC_SIMD_REDUCTION({_OPERATOR[s.carried_kind]} : {s.carried})")
                elif s.how in _PRAGMA:
                    lines.append(margin + _PRAGMA[s.how])
                self._block(self._loop_head(s), s.body, margin, lines)
            case If():
                static = "constexpr " if s.static else ""
                self._block(f"if {static}({self.expr(s.cond).text})", s.then, margin, lines)
                if s.other:
                    self._block("else", s.other, margin, lines)
            case PassGroup():
                for inner in s.body:
                    self._statement(inner, margin, lines)
            case Refuse():
                back = "return;" if self.block is None else f"return {self.computed(self.block)}(0);"
                _add(f"if ({self.expr(s.cond).text}) {{", margin, lines)
                _add(f"  {self.expr(s.report).text};", margin, lines)
                lines += [f"{margin}  {back}", f"{margin}}}"]
            case CallWithBody():
                head = f"[&]({self._params(s.params)}) {'OPC_INLINED ' if s.inlined else ''}{{"
                body = self._body(s.body, f"{margin}  ")
                _add(self._opened(s.call, head), margin, lines)
                lines += [*body, f"{margin}}});"]
            case GroupPoints():
                over = ", ".join(map(self.integer, s.over))
                head = f"for (opc::group_points {s.name}({over}); {s.name}.inside; {s.name}.next())"
                self._block(head, s.body, margin, lines)
            case While():
                self._block(f"while ({self.expr(s.cond).text})", s.body, margin, lines)
            case LocalFunction():
                returns = "" if s.returns is None else f" -> {self.computed(s.returns)}"
                inlined = " OPC_INLINED" if s.inlined else ""
                lines.append(f"{margin}const auto {s.name} = [&]({self._params(s.params)}){inlined}{returns} {{")
                lines += self._body(s.body, f"{margin}  ")
                if s.result is not None:
                    value = self._bare(s.result) if s.returns in (None, Weak.INT) else self.convert(s.result, s.returns).text
                    _add(f"  return {value};", margin, lines)
                lines.append(f"{margin}}};")
            case Comment():
                lines += [margin + line.removeprefix("  ") for line in comment(s.text, 2).split("\n")]
            case _:
                raise TypeError(f"{type(s).__name__} is no statement of the loop IR")

    def _block(self, head: str, body: Body, margin: str, lines: list[str]) -> None:
        if len(body) == 1 and isinstance(body[0], Continue | Return | Yield):
            _add(f"{head} {self.STATEMENTS[body[0].__class__](self, body[0])}", margin, lines)
            return
        _add(f"{head} {{", margin, lines)
        for s in body:
            self._statement(s, f"{margin}  ", lines)
        lines.append(f"{margin}}}")

    def _loop_head(self, s: Loop) -> str:
        low, high, i = self.integer(s.low), self.integer(s.high), s.index
        if s.down:
            return f"for ({self.integer_type} {i} = {high} - 1; {i} >= {low}; --{i})"
        after = "" if s.after is None else f", {self.expr(s.after).text}"
        step = f"++{i}" if s.step is None else f"{i} += {self.integer(s.step)}"
        return f"for ({self.integer_type} {i} = {low}; {i} < {high}; {step}{after})"

    def _started(self, value: Expr, kind: Kind) -> str:
        """Return the value of a variable as it is declared; a struct gets its members."""
        return self.expr(value).text if isinstance(value, Init) else f" = {self._initial(value, kind)}"

    def _initial(self, value: Expr, kind: Kind) -> str:
        """Return a value of a type, as it is assigned."""
        if isinstance(kind, Named | Pointer):
            return self._bare(value)
        if isinstance(value, IndexValue | IntegerChoice | Sum | Product) and kind is Weak.INT:
            return self._bare(value)
        return self.convert(value, kind).text

    def _accumulate(self, s: Accumulate) -> str:
        target, kind = self.expr(s.target).text, s.target.type
        if s.kind in ("max", "min"):
            value = f"{self.computed(kind)}({self.convert(s.value, kind).text})"
            return f"{target} = opc::{self.extremes[s.kind]}({target}, {value});"
        found = self.convert(s.value, kind)
        if s.by == "bits":
            return f"{target} {_BITS[s.kind]}= {found.text};"
        if s.kind in ("any", "all"):
            return f"{target} = {target} {_OPERATOR[s.kind]} {found.at(3)};"
        whole = kind is Weak.INT and isinstance(s.value, IndexValue)
        return f"{target} {_OPERATOR[s.kind]}= {self.integer(s.value) if whole else found.text};"


KernelText.STATEMENTS = {
    Let: KernelText._let,
    Var: KernelText._var,
    Store: KernelText._store,
    Accumulate: KernelText._accumulate,
    Buffer: KernelText._buffer,
    Alias: lambda text, s: f"using {s.name} = decltype({s.variable});",
    Do: lambda text, s: f"{text.expr(s.call).text};",
    Yield: KernelText._yield,
    Continue: lambda text, s: "continue;",
    Return: lambda text, s: "return;",
}


def _add(text: str, margin: str, lines: list[str]) -> None:
    """Add the lines of a text, each behind a margin."""
    if "\n" in text:
        lines += [margin + line for line in text.split("\n")]
    else:
        lines.append(margin + text)
