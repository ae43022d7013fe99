"""Conditions and sizes of a spec as C++ text over a call's attributes and sizes.

Integers are `opc::integer` of "opc/core/integer.h", which marks overflow and division by zero; floating values are double.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.emit.cpp.text import string_literal, whole_number
from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import INT64_MIN, Weak
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.functions import FUNCTIONS
from opc.ir.op import AttributeKind, Op


class CppScalarText(AffineDialect):
    """Writes the scalar expressions of one op.

    `dim`, `group` and `axis` give the C++ text of a dimension's size, of a group and of an axis attribute's position. What has
    operators stands in parentheses.
    """

    def __init__(self, op: Op, dim: Callable[[str], str], group: Callable[[str], str], axis: Callable[[str], str]) -> None:
        self.op, self.dim, self.group, self.axis = op, dim, group, axis

    def integer(self, size: Affine, bare: bool = False) -> str:
        """Return an expression over sizes and integer attributes, as an `opc::integer`; `bare` without outer parentheses."""
        if size.constant is not None:
            return f"opc::integer({whole_number(size.constant)})"
        text = self.affine(size)
        return text if bare or len(size.terms) == 1 else f"({text})"

    def number(self, size: Affine) -> str:
        """Return the value of such an expression, as an int64_t."""
        text = self.integer(size)
        is_product = len(size.terms) == 1 and len(size.terms[0][0]) > 1
        return f"({text}).value" if is_product else f"{text}.value"

    def condition(self, e: Expr) -> str:
        """Return a condition, without outer parentheses."""
        text = self.value(e)
        return text[1:-1] if isinstance(e, Call) and text.startswith("(") else text

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        text = whole_number(value)
        return f"opc::integer({text})" if value == INT64_MIN and not alone else text

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says.

        Raises:
            TypeError: for an index variable, which no size has.
        """
        match atom:
            case Dim():
                return f"opc::integer({self.dim(atom.name)})"
            case GroupSize():
                return f"opc::size({self.group(atom.name)})"
            case AttrInt() if atom.text is not None:
                position = self.op.attribute(atom.name).values.index(atom.text)
                return f"opc::integer({self._attribute(atom.name, atom.element)} == {position})"
            case AttrInt():
                return f"opc::integer({self._attribute(atom.name, atom.element)})"
            case FloorDiv() | Mod():
                function = "floordiv" if isinstance(atom, FloorDiv) else "mod"
                return f"opc::{function}({self.integer(atom.numerator, True)}, {self.integer(atom.denominator, True)})"
            case Minimum():
                return f"opc::minimum({self.integer(atom.left)}, {self.integer(atom.right)})"
            case Index():
                raise TypeError(f"a size may not use the index {atom}")

    def _attribute(self, name: str, element: int) -> str:
        attribute = self.op.attribute(name)
        if attribute.kind is AttributeKind.AXIS:
            return self.axis(name)
        if attribute.length is None:
            return f"attributes->{name}"
        return f"attributes->{name}[{element}]"

    def value(self, e: Expr) -> str:
        """Return an expression.

        Raises:
            TypeError: for one that reads tensors.
        """
        match e:
            case Const():
                return _constant(e)
            case StrConst():
                return string_literal(e.value)
            case AttrRef():
                kind, text = self.op.attribute(e.name).kind, self._attribute(e.name, e.element)
                if kind in (AttributeKind.INT, AttributeKind.AXIS):
                    return f"opc::integer({text})"
                return f"({text} != 0)" if kind is AttributeKind.BOOL else text
            case IndexValue():
                return self.integer(e.value)
            case Present():
                return self._presence(e, "!=")
            case Cast():
                return self.value(e.arg)
            case Select():
                return f"({self.value(e.cond)} ? {self._as(e.then, e.type)} : {self._as(e.other, e.type)})"
            case Call(fn="not", args=(Present() as inner,)):
                return self._presence(inner, "==")
            case Call():
                return self._call(e)
            case _:
                raise TypeError(f"a condition may not read tensors: {e}")

    def _presence(self, e: Present, operator: str) -> str:
        position = [o.name for o in self.op.inputs].index(e.operand)
        return f"(inputs[{position}] {operator} nullptr)"

    def _as(self, e: Expr, t: object) -> str:
        """Return `e` as a double where the operation's type is floating and `e` is an integer."""
        text = self.value(e)
        if t is Weak.FLOAT and e.type is Weak.INT:
            return f"{text}.0" if isinstance(e, Const) else f"opc::real({text})"
        return text

    def _call(self, e: Call) -> str:
        if e.fn in ("eq", "ne") and any(isinstance(a, StrConst) for a in e.args):
            return self._compare_strings(e)
        floating = Weak.FLOAT if Weak.FLOAT in (e.type, *(a.type for a in e.args)) else Weak.INT
        args = [self._as(a, floating) for a in e.args]
        if floating is Weak.INT and isinstance(e.args[0], Const) and e.type is not Weak.FLOAT:
            args[0] = f"opc::integer({args[0]})"
        pattern = FUNCTIONS[e.fn].c
        return pattern.format(*args) if pattern.startswith(("opc::", "(")) else f"({pattern.format(*args)})"

    def _compare_strings(self, e: Call) -> str:
        refs = [a for a in e.args if isinstance(a, AttrRef)]
        strings = [a.value for a in e.args if isinstance(a, StrConst)]
        if not refs:
            return "true" if (strings[0] == strings[1]) == (e.fn == "eq") else "false"
        attribute = self.op.attribute(refs[0].name)
        text, operator = self._attribute(refs[0].name, refs[0].element), "==" if e.fn == "eq" else "!="
        if attribute.values:
            position = attribute.values.index(strings[0]) if strings[0] in attribute.values else -1
            return f"({text} {operator} {position})"
        return f"(strcmp({text}, {string_literal(strings[0])}) {operator} 0)"


def _constant(e: Const) -> str:
    if isinstance(e.value, bool):
        return "true" if e.value else "false"
    if isinstance(e.value, float):
        if e.value != e.value:
            return '__builtin_nan("")'
        if abs(e.value) == float("inf"):
            return "__builtin_huge_val()" if e.value > 0 else "-__builtin_huge_val()"
    return whole_number(e.value) if isinstance(e.value, int) else repr(e.value)
