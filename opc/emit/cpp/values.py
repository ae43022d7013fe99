"""The values of the loop IR as C++: what a statement computes or is called with."""

from __future__ import annotations

from abc import abstractmethod

from opc.emit.cpp.expressions import CppText, ExprText, number
from opc.emit.cpp.layout import present_member, size_member
from opc.emit.cpp.text import message_literal
from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak
from opc.ir.expr import ELLIPSIS, Const, Expr, Extension, IndexValue, StrConst
from opc.ir.op import Op
from opc.ir.precedence import CONDITIONAL, CPP
from opc.loops.intrinsics import HEADER, HEADER_OF_FORM
from opc.loops.nodes import (
    Body,
    Kernel,
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

_TERNARY, _OR, _SUM, _PRODUCT = CONDITIONAL, *(CPP.strength[fn] for fn in ("or", "add", "mul"))
_ATOM = CPP.atom


def axes_member(name: str, of: str | None) -> str:
    """Return the member of the arguments struct that points to a group's sizes."""
    return f"axes_{'ellipsis' if name == ELLIPSIS else name}" + ("" if of is None else f"_of_{of}")


class ValueText(ExprText):
    """The text of the values of one function.

    `symbols` are the locals of the members of the arguments struct that it reads, `read` the variables and operands that have
    been written, and `runtime` the headers of what has been written of the runtime's.
    """

    def __init__(self, op: Op, kernel: Kernel) -> None:
        super().__init__(op)
        self.kernel = kernel
        self.symbols: dict[str, str] = {}
        self.read: set[str] = set()
        self.runtime = {HEADER_OF_FORM[kernel.form]}
        self.block: ValueType | None = None
        self._integers: dict[Affine, str] = {}

    @abstractmethod
    def _body(self, body: Body, margin: str) -> list[str]:
        """Return the lines of a body."""

    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """As `ExprText.symbol` says."""
        return symbol.name if isinstance(symbol, Index) else self._of_call(size_member(symbol))

    def present(self, operand: str) -> str:
        """As `ExprText.present` says."""
        return self._of_call(present_member(operand))

    def _of_call(self, member: str) -> str:
        """Return the local that holds a member of the arguments struct."""
        if member not in self.symbols:
            self.symbols[member] = self._local_of(member)
        return self.symbols[member]

    def _local_of(self, member: str) -> str:
        return member

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
        return self.affine(e.value) if isinstance(e, IndexValue) else self.expr(e).text

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
        if isinstance(kind, Weak | TypeVar | DType):  # it mostly is
            return self.computed(kind)
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
                return f"{self.computed(kind.to)} *"
            case ReferenceType():
                return f"{self._kind(kind.to)} &"
            case Extension():
                return self.integer(kind)
            case _:
                return self.computed(kind)

    def _inline(self, e: Block) -> str:
        """Return statements as a function called in place."""
        before, self.block = self.block, e.type
        lines = list(self._body(e.body, "  "))
        value = self.convert(e.value, e.type).text
        self.block = before
        return "\n".join([f"[&]() -> {self.computed(e.type)} {{", *lines, f"  return {value};", "}()"])

    def _params(self, params: tuple[tuple[Kind | ReferenceType | str, str], ...]) -> str:
        return ", ".join(self._declared(of, name, not isinstance(of, str | Pointer)) for of, name in params)

    def _declared(self, kind: Kind | ReferenceType | str, name: str, const: bool) -> str:
        if isinstance(kind, str):
            return f"{kind}{'' if kind.endswith('&') else ' '}{name}"
        if isinstance(kind, ReferenceType):
            return f"{self._kind(kind.to)} &{name}"
        if isinstance(kind, Pointer):
            constant = "const " if kind.constant else ""
            return f"{constant}{self.computed(kind.to)} *{'const ' if const else ''}{name}"
        return f"{'const ' if const else ''}{self._kind(kind)} {name}"


ValueText.WRITERS = {
    **ExprText.WRITERS,
    Local: ValueText._local,
    Load: ValueText._load,
    Member: ValueText._member,
    Rank: ValueText._axes,
    Axes: ValueText._axes,
    Sum: ValueText._sum,
    Product: ValueText._product,
    IntegerChoice: ValueText._choice,
    Construct: ValueText._construct,
    Static: ValueText._static,
    Init: ValueText._init,
    Address: ValueText._address,
    Intrinsic: lambda text, e: CppText(text._intrinsic(e), _ATOM, e.type),
    Word: lambda text, e: CppText(e.word, _ATOM, e.type),
    Block: lambda text, e: CppText(text._inline(e), _ATOM, e.type),
    Lambda: ValueText._lambda,
    As: lambda text, e: text.convert(e.value, e.type),
    Deref: lambda text, e: CppText(f"*{text.expr(e.pointer).text}", _ATOM, e.type),
    StrConst: lambda text, e: CppText(message_literal(e.value), _ATOM, e.type),
}
