"""The loop IR as C++: functions of a kernel, statement by statement. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.emit.cpp.expressions import CppText, ExprText, c_compute, number
from opc.emit.cpp.layout import ARGUMENTS, present_member, size_member, spec_names, wrap
from opc.emit.cpp.text import comment, message_literal
from opc.emit.dtypes import c_storage
from opc.ir.affine import Dim, GroupSize, Index
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak
from opc.ir.expr import ELLIPSIS, NOTHING, Const, Expr, Extension, IndexValue, Read, StrConst
from opc.ir.op import AttributeKind, Op
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

    def __init__(self, op: Op, kernel: Kernel, temporaries: frozenset[str] = NOTHING, nest: Nest | None = None) -> None:
        super().__init__(op, self._no_read, self._attribute, self._symbol, self._present)
        self.nest = nest
        self.kernel, self.types, self.temporaries = kernel, kernel.types, temporaries
        self.attributes: dict[tuple[str, int, str], str] = {}
        self.symbols: dict[str, None] = {}
        self.declared = PARAMETERS.union(_names(kernel.body))
        self.used = {*self.declared, *spec_names(op)}
        self.block: ValueType | None = None
        self.forms = [(f, KernelText(op, f.kernel)) for f in kernel.forms]
        body = [*self._body(kernel.body, "  ")]
        for _, text in self.forms:
            self.symbols |= text.symbols
        lines = [*self._prologue(), *self._views(), *body, "}"]
        self.after = [line for text in lines for line in wrap(text)]

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
        if self.kernel.form != "cuda" and not self.attributes and not self.symbols:
            if not self.forms:
                yield "  static_cast<void>(call);"
            return
        if self.kernel.form != "cuda":
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
        read = set(_views_of(self.kernel.body))
        for v in self.kernel.views:
            if v.name not in read:
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

    def _attribute(self, name: str, element: int, target: str) -> str:
        """Return the local that holds an attribute as a C++ type."""
        key = (name, element, target)
        if key not in self.attributes:
            taken = any(k[:2] == key[:2] for k in self.attributes) or element >= 0 or name in self.declared
            self.attributes[key] = self._fresh(name if element < 0 else f"{name}_{element}") if taken else name
        return self.attributes[key]

    def _fresh(self, wanted: str) -> str:
        name, count = wanted, 2
        while name in self.used:
            name, count = f"{wanted}_{count}", count + 1
        self.used.add(name)
        return name

    def _symbol(self, symbol: Dim | GroupSize | Index) -> str:
        return symbol.name if isinstance(symbol, Index) else self._of_call(size_member(symbol))

    def _present(self, operand: str) -> str:
        return self._of_call(present_member(operand))

    def _of_call(self, member: str) -> str:
        self.symbols[member] = None
        return member

    def _no_read(self, e: Read) -> CppText:
        raise TypeError(f"{e.operand} is read in the loop IR, which has loads")

    # Values.

    def expr(self, e: Expr) -> CppText:
        """Return a value in its own type."""
        match e:
            case Local():
                at = "" if e.index is None else f"[{self.integer(e.index)}]"
                return CppText(f"{e.name}{'.' if e.member else ''}{e.member}{at}", _ATOM, e.type)
            case Load():
                return CppText(self._load(e), _ATOM, e.type)
            case Member():
                entry = "" if e.entry is None else f"[{e.entry if isinstance(e.entry, int) else self.integer(e.entry)}]"
                return CppText(f"{e.owner}.{e.field}{entry}", _ATOM, e.type)
            case Rank() | Axes():
                axes = self._of_call(axes_member(e.group, e.of))
                return CppText(f"{axes}->rank" if isinstance(e, Rank) else f"*{axes}", _ATOM, e.type)
            case Sum():
                return CppText(" + ".join(self.integer(t) for t in e.terms), _SUM, e.type)
            case Product():
                return CppText(" * ".join(self._integer(f).at(_ATOM) for f in e.factors), _PRODUCT, e.type)
            case IntegerChoice():
                cond, then, other = self.expr(e.cond), self._bare(e.then), self._bare(e.other)
                return CppText(f"{cond.at(_OR)} ? {then} : {other}", _TERNARY, e.type)
            case Construct():
                kind = self._kind(e.kind)
                value = self.integer(e.value) if isinstance(e.kind, Named | Pointer) else self._within(e.value, e.kind)
                return CppText(f"{kind}({value})", _ATOM, e.type)
            case Static():
                return CppText(f"{self._kind(e.owner)}{'::' if e.name else ''}{e.name}", _ATOM, e.type)
            case Init():
                return CppText(f"{{{', '.join(map(self.integer, e.members))}}}", _ATOM, e.type)
            case Address():
                offset = "" if e.offset is None else f" + ({self.integer(e.offset)})"
                return CppText(f"{e.view}.data{offset}", _SUM, e.type)
            case Intrinsic():
                return CppText(self._intrinsic(e), _ATOM, e.type)
            case Word():
                return CppText(e.word, _ATOM, e.type)
            case Block():
                return CppText(self._inline(e), _ATOM, e.type)
            case Lambda():
                captures = "".join(f", {c}" for c in e.captures)
                lines = self._body(e.body, "  ")
                head = f"[&{captures}]({self._params(e.params)}) OPC_INLINED {{"
                return CppText("\n".join([head, *lines, "}"]), _ATOM, e.type)
            case As():
                return self.convert(e.value, e.type)
            case Deref():
                return CppText(f"*{self.expr(e.pointer).text}", _ATOM, e.type)
            case StrConst():
                return CppText(message_literal(e.value), _ATOM, e.type)
            case _:
                return super().expr(e)

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

    def _load(self, e: Load) -> str:
        view, offset = e.view, self.integer(e.offset)
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

    def _intrinsic(self, e: Intrinsic, *last: str) -> str:
        """Return a call; its `last` arguments are text."""
        prefix = "" if "." in e.name else "opc::"
        types = f"<{', '.join(self._kind(t) for t in e.types)}>" if e.types else ""
        return f"{prefix}{e.name}{types}({', '.join([*map(self.integer, e.args), *last])})"

    def _kind(self, kind: Kind | ReferenceType | Extension | str | int) -> str:
        match kind:
            case str() | int():
                return str(kind)
            case Named(name="const", of=(of,)):
                return f"const {self._kind(of)}"
            case Named():
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

    def _body(self, body: Body, margin: str) -> Iterator[str]:
        for s in body:
            yield from (f"{margin}{line}" for text in self._statement(s) for line in text.split("\n"))

    def _statement(self, s: Statement) -> Iterator[str]:
        match s:
            case Comment():
                yield from (line.removeprefix("  ") for line in comment(s.text, 2).split("\n"))
            case Let():
                yield f"{self._declared(s.kind, s.name, True)}{self._started(s.value, s.kind)};"
            case Var():
                yield f"{self._declared(s.kind, s.name, False)}{'' if s.value is None else self._started(s.value, s.kind)};"
            case Buffer():
                aligned = "alignas(opc::line_bytes) " if s.aligned else ""
                size = s.size if isinstance(s.size, str) else self.integer(s.size)
                yield f"{aligned}{self._kind(s.kind)} {s.name}[{size}];"
            case Alias():
                yield f"using {s.name} = decltype({s.variable});"
            case Store():
                target, kind = self.expr(s.target).text, s.target.type
                yield f"{target} = {self._initial(s.value, kind)};"
            case Accumulate():
                yield self._accumulate(s)
            case Do():
                yield f"{self.expr(s.call).text};"
            case Refuse():
                back = "return;" if self.block is None else f"return {c_compute(self.block)}(0);"
                yield f"if ({self.expr(s.cond).text}) {{"
                yield f"  {self.expr(s.report).text};"
                yield f"  {back}"
                yield "}"
            case Yield():
                assert self.block is not None, "a block has a result"
                yield f"return {self.convert(s.value, self.block).text};"
            case Continue():
                yield "continue;"
            case Return():
                yield "return;"
            case _:
                yield from self._nested(s)

    def _nested(self, s: Statement) -> Iterator[str]:
        """Yield the lines of a statement with a body."""
        match s:
            case Loop():
                if s.how is How.REDUCTION:
                    yield f"OPC_SIMD_REDUCTION({_OPERATOR[s.carried_kind]} : {s.carried})"
                elif s.how in _PRAGMA:
                    yield _PRAGMA[s.how]
                yield from self._block(self._loop_head(s), s.body)
            case PassGroup():
                yield from self._body(s.body, "")
            case GroupPoints():
                over = ", ".join(map(self.integer, s.over))
                yield from self._block(f"for (opc::group_points {s.name}({over}); {s.name}.inside; {s.name}.next())", s.body)
            case While():
                yield from self._block(f"while ({self.expr(s.cond).text})", s.body)
            case If():
                static = "constexpr " if s.static else ""
                yield from self._block(f"if {static}({self.expr(s.cond).text})", s.then)
                if s.other:
                    yield from self._block("else", s.other)
            case CallWithBody():
                result = "" if not s.result else f"{s.result} = " if s.assigns else f"const bool {s.result} = "
                body = "".join(f"{line}\n" for line in self._body(s.body, "  "))
                block = f"[&]({self._params(s.params)}) {'OPC_INLINED ' if s.inlined else ''}{{\n{body}}}"
                yield f"{result}{self._intrinsic(s.call, block)};"
            case LocalFunction():
                returns = "" if s.returns is None else f" -> {c_compute(s.returns)}"
                inlined = " OPC_INLINED" if s.inlined else ""
                yield f"const auto {s.name} = [&]({self._params(s.params)}){inlined}{returns} {{"
                yield from self._body(s.body, "  ")
                if s.result is not None:
                    value = self._bare(s.result) if s.returns in (None, Weak.INT) else self.convert(s.result, s.returns).text
                    yield f"  return {value};"
                yield "};"
            case _:
                raise TypeError(f"{type(s).__name__} is no statement of the loop IR")

    def _block(self, head: str, body: Body) -> Iterator[str]:
        if len(body) == 1 and isinstance(body[0], Continue | Return | Yield):
            yield f"{head} {next(self._statement(body[0]))}"
            return
        yield f"{head} {{"
        yield from self._body(body, "  ")
        yield "}"

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


def _views_of(body: Body) -> Iterator[str]:
    """Yield the operands whose views a body uses."""
    for e in _all_values(body):
        if isinstance(e, Load | Address):
            yield e.view
        elif isinstance(e, Member):
            yield e.owner
        elif isinstance(e, Local):
            yield e.name


def _all_values(body: Body) -> Iterator[Expr]:
    from opc.ir.expr import walk

    for v in values_of(body):
        yield from walk(v)


def _names(body: Body) -> Iterator[str]:
    """Yield the names of the variables that a body declares."""
    for s in statements(body):
        match s:
            case Let(name=name) | Var(name=name) | Buffer(name=name) | LocalFunction(name=name) | GroupPoints(name=name):
                yield name
            case Loop(index=name):
                yield name
        if isinstance(s, CallWithBody | LocalFunction):
            yield from (name for _, name in s.params)
    for e in _all_values(body):
        if isinstance(e, Block):
            yield from _names(e.body)
