"""The loop IR as C++: functions of a kernel, statement by statement. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, ClassVar

from opc.emit.cpp.expressions import CppText, ExprText, c_compute, number
from opc.emit.cpp.layout import ARGUMENTS, present_member, size_member, spec_names, wrap
from opc.emit.cpp.text import comment, message_literal
from opc.emit.dtypes import c_storage
from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak
from opc.ir.expr import ELLIPSIS, NOTHING, STATEMENTS, Const, Expr, Extension, IndexValue, StrConst, traits, walk
from opc.ir.op import AttributeKind, Op
from opc.loops.intrinsics import HEADER, HEADER_OF_FORM
from opc.loops.names import PARAMETERS
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
    statements,
    values_of,
)
from opc.loops.values import (
    Address,
    As,
    Axes,
    Block,
    Construct,
    Deref,
    Init,
    IntegerChoice,
    Intrinsic,
    Kind,
    Lambda,
    Load,
    Local,
    Member,
    Named,
    Pointer,
    Product,
    Rank,
    ReferenceType,
    Static,
    Sum,
    Word,
)
from opc.lower.build.context import Nest

_TERNARY, _OR, _SUM, _PRODUCT, _ATOM = 0, 1, 5, 6, 8
_OPERATOR = {"sum": "+", "prod": "*", "any": "||", "all": "&&", "max": "max", "min": "min"}
_BITS = {"any": "|", "all": "&"}
_PRAGMA = {How.VECTOR: "OPC_SIMD", How.UNROLLED: "OPC_UNROLLED"}
_HEADS = {
    "tile": ("void ", "(const opc::tile &tile, const void *call) {"),
    "row_nest": ("OPC_ROW_NEST void ", "(const opc::row_nest &nest, const void *call, int64_t begin, int64_t end) {"),
    "nest": ("void ", "(const opc::nest &nest, const void *call, int64_t begin, int64_t end) {"),
}
"""What stands before and after the name of a function of each form."""


def axes_member(name: str, of: str | None) -> str:
    """Return the member of the arguments struct that points to a group's sizes."""
    return f"axes_{'ellipsis' if name == ELLIPSIS else name}" + ("" if of is None else f"_of_{of}")


def symbol_type(member: str) -> str:
    """Return the C++ type of a member of the arguments struct."""
    if member.startswith("has_"):
        return "int32_t"
    return "const opc::extents *" if member.startswith("axes_") else "int64_t"


class KernelText(ExprText):
    """The text of one function. `symbols` are the members of the arguments struct that it reads."""

    HEAD: Mapping[str, tuple[str, str]] = _HEADS
    ATTRIBUTES = "arguments.attributes->"
    STATEMENTS: ClassVar[Mapping[type, Callable[[Any, Any], str]]] = {}
    """What writes each class of statements without a body, each of which is one text."""

    def __init__(self, op: Op, kernel: Kernel, temporaries: frozenset[str] = NOTHING, nest: Nest | None = None) -> None:
        super().__init__(op)
        self.nest = nest
        self.kernel, self.types, self.temporaries = kernel, kernel.types, temporaries
        self.attributes: dict[tuple[str, int, str], str] = {}
        self.symbols: dict[str, None] = {}
        self.read: set[str] = set()
        """The variables and operands that have been written."""
        self.runtime = {HEADER_OF_FORM[kernel.form]}
        """The headers of what has been written of the runtime's."""
        self.block: ValueType | None = None
        self._integers: dict[Affine, str] = {}
        self.forms = [(f, KernelText(op, f.kernel)) for f in kernel.forms]
        body = self._body(kernel.body, "  ")
        for _, text in self.forms:
            self.symbols |= text.symbols
            self.runtime |= text.runtime
        lines = [*self._prologue(), *self._views(), *body, "}"]
        self.after = [line for text in lines for line in wrap(text)]

    def of_stage(self, op: Op, kernel: Kernel, nest: Nest | None) -> KernelText:
        """Return the text as that of a stage that computes alike, whose operands may have other names."""
        other = copy(self)
        other.op, other.kernel, other.nest = op, kernel, nest
        return other

    def text(self, name: str) -> str:
        """Return the definition of the function under a name: stages that compute alike are written once."""
        stored = "_stored" if self.kernel.form == "nest" else ""
        flags = self.kernel.flags
        template = ", ".join([*(f"typename {t.name}{stored}" for t in self.types), *(f"bool {f}" for f in flags)])
        lines = [f"template <{template}>"] if template else []
        lines.append(name.join(self.HEAD[self.kernel.form]))
        chosen = ", ".join([*(t.name for t in self.types), *flags])
        for form in self.kernel.forms:
            callee = f"{form.prefix}{name}{form.suffix}" + (f"<{chosen}>" if chosen else "")
            lines.append(f"  if ({self.expr(form.cond).text}) return {callee}(tile, call);")
        own = "\n".join([*(line for text in lines for line in wrap(text)), *self.after])
        return "\n\n".join([*(text.text(f"{f.prefix}{name}{f.suffix}") for f, text in self.forms), own])

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
        for member in self.symbols:
            kind = symbol_type(member)
            declaration = f"{kind}const {member}" if kind.endswith("*") else f"const {kind} {member}"
            yield f"  {declaration} = arguments.{member};"

    def _views(self) -> Iterator[str]:
        """Yield the locals that hold the operands that the function reads."""
        for v in self.kernel.views:
            if v.name not in self.read:
                continue
            if self.kernel.form == "nest":
                const = "" if v.entry == len(self.kernel.operands) - 1 else "const "
                kind = f"opc::view<{const}{self._stored(v)}>"
                yield f"  const {kind} {v.name} = opc::view_of<{const}{self._stored(v)}>(nest, {v.entry});"
            else:
                form, kind = "stored_flat" if v.stored else "flat", c_compute(v.type)
                yield f"  const opc::{form}<{kind}> {v.name} = opc::{form}_of<{kind}>(nest, {v.entry});"

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

    @cached_property
    def declared(self) -> frozenset[str]:
        """The names of the function's variables."""
        return PARAMETERS.union(_names(self.kernel.body))

    @cached_property
    def used(self) -> set[str]:
        """The names that no attribute can have."""
        return {*self.declared, *spec_names(self.op)}

    def _fresh(self, wanted: str) -> str:
        name, count = wanted, 2
        while name in self.used:
            name, count = f"{wanted}_{count}", count + 1
        self.used.add(name)
        return name

    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """As `ExprText.symbol` says."""
        return symbol.name if isinstance(symbol, Index) else self._of_call(size_member(symbol))

    def present(self, operand: str) -> str:
        """As `ExprText.present` says."""
        return self._of_call(present_member(operand))

    def _of_call(self, member: str) -> str:
        self.symbols[member] = None
        return member

    # Values.

    def affine(self, value: Affine) -> str:
        """As `AffineDialect.affine` says: the same text wherever it stands in the function."""
        text = self._integers.get(value)
        if text is None:
            text = self._integers[value] = super().affine(value)
        return text

    def _local(self, e: Local) -> CppText:
        self.read.add(e.name)
        at = "" if e.index is None else f"[{self.integer(e.index)}]"
        return CppText(f"{e.name}{'.' if e.member else ''}{e.member}{at}", _ATOM, e.type)

    def _member(self, e: Member) -> CppText:
        self.read.add(e.owner)
        entry = "" if e.entry is None else f"[{e.entry if isinstance(e.entry, int) else self.integer(e.entry)}]"
        return CppText(f"{e.owner}.{e.field}{entry}", _ATOM, e.type)

    def _axes(self, e: Rank | Axes) -> CppText:
        axes = self._of_call(axes_member(e.group, e.of))
        return CppText(f"{axes}->rank" if isinstance(e, Rank) else f"*{axes}", _ATOM, e.type)

    def _sum(self, e: Sum) -> CppText:
        return CppText(" + ".join([self.integer(t) for t in e.terms]), _SUM, e.type)

    def _product(self, e: Product) -> CppText:
        return CppText(" * ".join([self._integer(f).at(_ATOM) for f in e.factors]), _PRODUCT, e.type)

    def _choice(self, e: IntegerChoice) -> CppText:
        cond, then, other = self.expr(e.cond), self._bare(e.then), self._bare(e.other)
        return CppText(f"{cond.at(_OR)} ? {then} : {other}", _TERNARY, e.type)

    def _construct(self, e: Construct) -> CppText:
        kind = self._kind(e.kind)
        value = self.integer(e.value) if isinstance(e.kind, Named | Pointer) else self._within(e.value, e.kind)
        return CppText(f"{kind}({value})", _ATOM, e.type)

    def _static(self, e: Static) -> CppText:
        return CppText(f"{self._kind(e.owner)}{'::' if e.name else ''}{e.name}", _ATOM, e.type)

    def _init(self, e: Init) -> CppText:
        return CppText(f"{{{', '.join(map(self.integer, e.members))}}}", _ATOM, e.type)

    def _address(self, e: Address) -> CppText:
        self.read.add(e.view)
        offset = "" if e.offset is None else f" + ({self.integer(e.offset)})"
        return CppText(f"{e.view}.data{offset}", _SUM, e.type)

    def _lambda(self, e: Lambda) -> CppText:
        captures = "".join([f", {c}" for c in e.captures])
        head = f"[&{captures}]({self._params(e.params)}) OPC_INLINED {{"
        return CppText("\n".join([head, *self._body(e.body, "  "), "}"]), _ATOM, e.type)

    def _within(self, e: Expr, kind: ValueType) -> str:
        """Return a value inside of a conversion to a type: a literal has none of its own."""
        return number(e.value, kind).text if isinstance(e, Const) else self.expr(e).text

    def _bare(self, e: Expr) -> str:
        return self.integer(e) if isinstance(e, IndexValue) else self.expr(e).at(_TERNARY)

    def integer(self, e: Expr) -> str:
        """Return an integer, or an argument that has no value type."""
        return self._integer(e).text

    def _integer(self, e: Expr) -> CppText:
        if not isinstance(e, IndexValue):
            return self.expr(e)
        is_atom = e.value.single is not None or (e.value.constant is not None and e.value.constant >= 0)
        return CppText(self.affine(e.value), _ATOM if is_atom else _SUM, Weak.INT)

    def _load(self, e: Load) -> CppText:
        return CppText(self._element(e), _ATOM, e.type)

    def _element(self, e: Load) -> str:
        view, offset = e.view, self.integer(e.offset)
        self.read.add(view)
        if self.kernel.form == "nest":
            return f"opc::load({view}.data + {offset})"
        if e.along is None:
            return f"{view}.at({offset})" if e.stored else f"{view}.data[{offset}]"
        zero = isinstance(e.offset, IndexValue) and e.offset.value.constant == 0
        whole = self.integer(e.along) if zero else f"{offset} + {self.integer(e.along)}"
        if e.stored:
            return f"{view}.at({whole})"
        if isinstance(e.along, IndexValue):
            return f"{view}.data[{whole}]"
        return f"opc::element({view}.data, {offset}, {self.integer(e.along)})"

    def _intrinsic(self, e: Intrinsic) -> str:
        """Return a call."""
        return f"{self._callee(e)}({', '.join([self.integer(a) for a in e.args])})"

    def _opened(self, e: Intrinsic, last: str) -> str:
        """Return a call up to its last argument, of which `last` is the first line."""
        return f"{self._callee(e)}({', '.join([*map(self.integer, e.args), last])}"

    def _callee(self, e: Intrinsic) -> str:
        prefix = "" if "." in e.name else "opc::"
        if prefix:
            self.runtime.add(HEADER[e.name])
        types = f"<{', '.join([self._kind(t) for t in e.types])}>" if e.types else ""
        return f"{prefix}{e.name}{types}"

    def _kind(self, kind: Kind | ReferenceType | Extension | str | int) -> str:
        match kind:
            case str() | int():
                return str(kind)
            case Named(name="const", of=(of,)):
                return f"const {self._kind(of)}"
            case Named():
                if kind.name.startswith("opc::"):
                    self.runtime.add(HEADER[kind.name.removeprefix("opc::")])
                return kind.name + (f"<{', '.join(map(self._kind, kind.of))}>" if kind.of else "")
            case Pointer():
                return f"{c_compute(kind.to)} *"
            case ReferenceType():
                return f"{self._kind(kind.to)} &"
            case Extension():
                return self.integer(kind)
            case _:
                return c_compute(kind)

    def _inline(self, e: Block) -> str:
        """Return statements as a function called in place."""
        before, self.block = self.block, e.type
        lines = list(self._body(e.body, "  "))
        value = self.convert(e.value, e.type).text
        self.block = before
        return "\n".join([f"[&]() -> {c_compute(e.type)} {{", *lines, f"  return {value};", "}()"])

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
                back = "return;" if self.block is None else f"return {c_compute(self.block)}(0);"
                _add(f"if ({self.expr(s.cond).text}) {{", margin, lines)
                _add(f"  {self.expr(s.report).text};", margin, lines)
                lines += [f"{margin}  {back}", f"{margin}}}"]
            case CallWithBody():
                result = "" if not s.result else f"{s.result} = " if s.assigns else f"const bool {s.result} = "
                head = f"[&]({self._params(s.params)}) {'OPC_INLINED ' if s.inlined else ''}{{"
                body = self._body(s.body, f"{margin}  ")
                _add(f"{result}{self._opened(s.call, head)}", margin, lines)
                lines += [*body, f"{margin}}});"]
            case GroupPoints():
                over = ", ".join(map(self.integer, s.over))
                head = f"for (opc::group_points {s.name}({over}); {s.name}.inside; {s.name}.next())"
                self._block(head, s.body, margin, lines)
            case While():
                self._block(f"while ({self.expr(s.cond).text})", s.body, margin, lines)
            case LocalFunction():
                returns = "" if s.returns is None else f" -> {c_compute(s.returns)}"
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
            return f"for (int64_t {i} = {high} - 1; {i} >= {low}; --{i})"
        after = "" if s.after is None else f", {self.expr(s.after).text}"
        step = f"++{i}" if s.step is None else f"{i} += {self.integer(s.step)}"
        return f"for (int64_t {i} = {low}; {i} < {high}; {step}{after})"

    def _params(self, params: tuple[tuple[Kind | ReferenceType | str, str], ...]) -> str:
        return ", ".join(self._declared(of, name, not isinstance(of, str | Pointer)) for of, name in params)

    def _declared(self, kind: Kind | ReferenceType | str, name: str, const: bool) -> str:
        if isinstance(kind, str):
            return f"{kind}{'' if kind.endswith('&') else ' '}{name}"
        if isinstance(kind, ReferenceType):
            return f"{self._kind(kind.to)} &{name}"
        if isinstance(kind, Pointer):
            constant = "const " if kind.constant else ""
            return f"{constant}{c_compute(kind.to)} *{'const ' if const else ''}{name}"
        return f"{'const ' if const else ''}{self._kind(kind)} {name}"

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
            return f"{target} = opc::{s.kind}imum({target}, {c_compute(kind)}({self.convert(s.value, kind).text}));"
        value = self.convert(s.value, kind)
        if s.by == "bits":
            return f"{target} {_BITS[s.kind]}= {value.text};"
        if s.kind in ("any", "all"):
            return f"{target} = {target} {_OPERATOR[s.kind]} {value.at(3)};"
        whole = kind is Weak.INT and isinstance(s.value, IndexValue)
        return f"{target} {_OPERATOR[s.kind]}= {self.integer(s.value) if whole else value.text};"


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

KernelText.WRITERS = {
    **ExprText.WRITERS,
    Local: KernelText._local,
    Load: KernelText._load,
    Member: KernelText._member,
    Rank: KernelText._axes,
    Axes: KernelText._axes,
    Sum: KernelText._sum,
    Product: KernelText._product,
    IntegerChoice: KernelText._choice,
    Construct: KernelText._construct,
    Static: KernelText._static,
    Init: KernelText._init,
    Address: KernelText._address,
    Intrinsic: lambda text, e: CppText(text._intrinsic(e), _ATOM, e.type),
    Word: lambda text, e: CppText(e.word, _ATOM, e.type),
    Block: lambda text, e: CppText(text._inline(e), _ATOM, e.type),
    Lambda: KernelText._lambda,
    As: lambda text, e: text.convert(e.value, e.type),
    Deref: lambda text, e: CppText(f"*{text.expr(e.pointer).text}", _ATOM, e.type),
    StrConst: lambda text, e: CppText(message_literal(e.value), _ATOM, e.type),
}


def _add(text: str, margin: str, lines: list[str]) -> None:
    """Add the lines of a text, each behind a margin."""
    if "\n" in text:
        lines += [margin + line for line in text.split("\n")]
    else:
        lines.append(margin + text)


def _names(body: Body) -> Iterator[str]:
    """Yield the names of the variables that a body declares."""
    for s in statements(body):
        match s:
            case Let(name=name) | Var(name=name) | Buffer(name=name) | GroupPoints(name=name) | Loop(index=name):
                yield name
            case LocalFunction():
                yield s.name
                yield from (name for _, name in s.params)
            case CallWithBody():
                yield from (name for _, name in s.params)
    for value in values_of(body):
        if traits(value) & STATEMENTS:
            yield from (name for e in walk(value) if isinstance(e, Block) for name in _names(e.body))
