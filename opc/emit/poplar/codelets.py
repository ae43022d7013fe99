"""Codelets as C++14 for popc: a class of vertices a statement, a template over the types that operands are stored in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from opc import config
from opc.emit.cpp.expressions import CppText, c_compute
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.loops import KernelText
from opc.emit.cpp.text import comment
from opc.emit.poplar.dtypes import TYPES, carried
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.expr import AttrRef, Call, Expr, Extension, IndexValue, Present
from opc.ir.precedence import CPP
from opc.loops.nodes import Loop, Refuse, Return, Statement
from opc.loops.values import Address, Block, Kind, Load, Local, Member, ReferenceType
from opc.lower.poplar.codelet_nodes import STATUS, WORKER, CodeletOperand, CodeletStage, attribute_field
from opc.records import replace

_INTEGER = "int32_t"
_ATOM, _SUM, _OR = CPP.atom, CPP.strength["add"], CPP.strength["or"]
_VOID_SINCE = (3, 0)
"""The first SDK whose own codelets return nothing; those of the ones before say true."""
_NAME = "\0"
"""Stands for the name of a class."""
_KINDS = {"int": "int", "float": "float", "bool": "bool"}


class CodeletText(KernelText):
    """The text of one class of vertices."""

    HEAD: Mapping[str, tuple[str, str]] = {}

    def __init__(self, stage: CodeletStage, sdk: str = config.SDKS[-1]) -> None:
        self.codelet = stage
        void = tuple(map(int, sdk.split("."))) >= _VOID_SINCE
        self.returns, self.done = ("void", "return;") if void else ("bool", "return true;")
        self.names = {f.what: f for f in stage.fields}
        views = [v.name for v in stage.kernel.views]
        self.operands = dict(zip(views, [*stage.operands, stage.target], strict=True))
        super().__init__(stage.op, stage.kernel)

    def lines(self) -> Iterator[str]:
        """Yield the class and the instantiations of its template."""
        s = self.codelet
        types = ", ".join(f"typename {t.name}_stored" for t in s.types)
        if types:
            yield f"template <{types}>"
        yield f"class {s.name} : public poplar::MultiVertex {{"
        yield " public:"
        for t in s.types:
            yield f"  using {t.name} = opc::compute<{t.name}_stored>;"
        if s.types:
            yield ""
        for o in s.operands:
            yield f"  poplar::Input<poplar::Vector<{self.stored(o)}>> {o.field};"
        yield f"  poplar::Output<poplar::Vector<{self.stored(s.target)}>> {s.target.field};"
        if s.refusals:
            yield f"  poplar::Output<poplar::Vector<int>> {STATUS};"
        for f in s.fields:
            yield f"  {_KINDS[f.kind]} {f.name};"
        yield ""
        yield f"  {self.returns} compute(unsigned {WORKER}) {{"
        yield from (deeper for line in self.after[:-1] for deeper in wrap(f"  {line}"))
        if self.returns != "void":
            yield f"    {self.done}"
        yield "  }"
        yield "};"
        for chosen in product(*(carried(t) for t in s.types)) if s.types else ():
            yield f"template class {s.name}<{', '.join(TYPES[d].codelet for d in chosen)}>;"

    def stored(self, o: CodeletOperand) -> str:
        """Return the C++ type of an operand's elements."""
        if isinstance(o.type, TypeVar):
            return o.type.name if o.kept else f"{o.type.name}_stored"
        if isinstance(o.type, Acc) and isinstance(o.type.of, TypeVar):
            return f"opc::kept_sum<{o.type.of.name}>"
        if isinstance(o.type, DType):
            return TYPES[o.type].codelet if o.type in TYPES else self._kind(o.type)
        return self._kind(o.type)

    # What the class is given is read where it is used.

    def _prologue(self) -> Iterator[str]:
        yield from ()

    def _views(self) -> Iterator[str]:
        yield from ()

    def attribute(self, name: str, element: int, target: str) -> str:
        """Return the field that holds an attribute, or an element of one, as a C++ type."""
        field = self.names[attribute_field(name, element)]
        own = {"int": _INTEGER, "float": "float", "bool": "bool"}[field.kind]
        return field.name if target in (own, "") else f"{target}({field.name})"

    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """As `ExprText.symbol` says."""
        return symbol.name if isinstance(symbol, Index) else self.names[symbol].name

    def present(self, operand: str) -> str:
        """As `ExprText.present` says."""
        return self.names[Present(operand)].name

    # Whole numbers have 32 bits.

    def expr(self, e: Expr) -> CppText:
        """As `KernelText.expr` says."""
        text = super().expr(e)
        return text.of_type(_narrow(text.type))

    def _local(self, e: Local) -> CppText:
        if e.index is None or e.name not in self.operands:
            return super()._local(e)
        return CppText(f"{self.operands[e.name].field}[{self.integer(e.index)}]", _ATOM, e.type)

    def _member(self, e: Member) -> CppText:
        return CppText(self.names[e].name, _ATOM, e.type)

    def _address(self, e: Address) -> CppText:
        at = "0" if e.offset is None else self.integer(e.offset)
        return CppText(f"{self.operands[e.view].field}[{at}]", _ATOM, e.type)

    def _attribute(self, e: AttrRef) -> CppText:
        kind = self.computed(e.type) if self._is_text(e) else self._kind(e.type)
        return CppText(self.attribute(e.name, e.element, kind), _ATOM, e.type)

    def convert(self, e: Expr, wanted: ValueType) -> CppText:
        """As `ExprText.convert` says."""
        return super().convert(e, _narrow(wanted))

    def _call(self, e: Call) -> CppText:
        if e.fn != "or":
            return super()._call(e)
        # GCC warns of `&&` beside `||` without parentheses.
        sides = ((a, self.convert(a, DType.BOOL)) for a in e.args)
        text = (f"({t.text})" if isinstance(a, Call) and a.fn == "and" else t.at(_OR) for a, t in sides)
        return CppText(" || ".join(text), _OR, DType.BOOL)

    def _kind(self, kind: Kind | ReferenceType | Extension | str | int) -> str:
        return c_compute(_narrow(kind)) if isinstance(kind, Weak) else super()._kind(kind)

    def _index_value(self, value: Affine) -> CppText:
        text = CppText(self.affine(value), _ATOM if value.single is not None else _SUM, Weak.INT)
        return text if value.constant is None else CppText(f"{_INTEGER}({text.text})", _ATOM, Weak.INT, True)

    def _initial(self, value: Expr, kind: Kind) -> str:
        return self.integer(value) if isinstance(value, IndexValue) and kind is DType.INT32 else super()._initial(value, kind)

    def _inline(self, e: Block) -> str:
        return super()._inline(replace(e, type=_narrow(e.type)))

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says."""
        match atom:
            case FloorDiv() | Mod():
                name = "floordiv" if isinstance(atom, FloorDiv) else "mod"
                return f"opc::{name}<{_INTEGER}>({self.affine(atom.numerator)}, {self.affine(atom.denominator)})"
            case Minimum():
                return f"opc::minimum<{_INTEGER}>({self.affine(atom.left)}, {self.affine(atom.right)})"
            case AttrInt(text=None):
                return self.attribute(atom.name, atom.element, _INTEGER)
            case AttrInt():
                return super().atom(atom, factor)
            case _:
                return self.symbol(atom)

    def _load(self, e: Load) -> CppText:
        return CppText(f"opc::load({self.operands[e.view].field}[{self.integer(e.offset)}])", _ATOM, e.type)

    def _statement(self, s: Statement, margin: str, lines: list[str]) -> None:
        """Add the lines of a statement; a worker that ends early says that it ran, where the SDK asks for that."""
        if isinstance(s, Refuse) and self.block is None:
            head, report = f"if ({self.expr(s.cond).text}) {{", f"  {self.expr(s.report).text};"
            lines += [f"{margin}{line}" for text in (head, report, f"  {self.done}", "}") for line in text.splitlines()]
        else:
            super()._statement(s, margin, lines)

    def _loop_head(self, s: Loop) -> str:
        low, high, i = self.integer(s.low), self.integer(s.high), s.index
        if s.down:
            return f"for ({_INTEGER} {i} = {high} - 1; {i} >= {low}; --{i})"
        return f"for ({_INTEGER} {i} = {low}; {i} < {high}; ++{i})"


CodeletText.STATEMENTS = {**KernelText.STATEMENTS, Return: lambda text, s: text.done}
CodeletText.WRITERS = {
    **KernelText.WRITERS,
    Call: CodeletText._call,
    Load: CodeletText._load,
    Local: CodeletText._local,
    Member: CodeletText._member,
    Address: CodeletText._address,
    AttrRef: CodeletText._attribute,
}


def _narrow(t: ValueType) -> ValueType:
    return DType.INT32 if t is Weak.INT else DType.FLOAT32 if t is Weak.FLOAT else t


def codelet_classes(name: str, stages: Sequence[CodeletStage], sdk: str) -> tuple[str, dict[str, str]]:
    """Return the source of a family's codelets, for the popc of a version of the SDK, and the class of each stage by its name.

    `name` is that of the spec. Stages that differ in their names alone have one class, which is called after the op and target of
    the first, where no other has that name.
    """
    found: dict[str, list[CodeletStage]] = {}
    for s in stages:
        found.setdefault("\n".join(CodeletText(replace(s, name=_NAME), sdk).lines()), []).append(s)
    taken = {s.name for s in stages}
    classes: dict[str, str] = {}
    lines = [comment(f"Generated by opc from {name}; edits are lost."), '#include "opc/poplar/codelet.h"', ""]
    for text, alike in found.items():
        short = f"{alike[0].op.name}_{alike[0].target.name}"
        own = alike[0].name if len(alike) == 1 or short in taken else short
        taken.add(own)
        classes |= {s.name: own for s in alike}
        lines += [text.replace(_NAME, own), ""]
    return "\n".join(lines), classes
