"""Conditions and sizes of a spec as C++ text over a call's attributes and sizes.

Integers are `opc::integer` of "opc/core/shape.h", which marks overflow and division by zero; floating values are double.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.emit.cpp.text import string_literal, whole_number
from opc.emit.scalar.expressions import BoundText, ScalarDialect
from opc.ir.affine import Affine, AttrInt, FloorDiv, Mod
from opc.ir.dtypes import INT64_MIN, Weak
from opc.ir.expr import AttrRef, Call, Const, Expr, Select, StrConst
from opc.ir.functions import FUNCTIONS
from opc.ir.op import AttributeKind, Op
from opc.ir.precedence import CPP


class CppScalarText(ScalarDialect):
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
        text = self.value(e).text
        return text[1:-1] if isinstance(e, Call) and text.startswith("(") else text

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        text = whole_number(value)
        return f"opc::integer({text})" if value == INT64_MIN and not alone else text

    def size_of_dim(self, name: str) -> str:
        """As `ScalarDialect.size_of_dim` says."""
        return f"opc::integer({self.dim(name)})"

    def points_of(self, group: str) -> str:
        """As `ScalarDialect.points_of` says."""
        return f"opc::size({self.group(group)})"

    def integer_attribute(self, atom: AttrInt) -> str:
        """As `ScalarDialect.integer_attribute` says."""
        return f"opc::integer({self._attribute(atom.name, atom.element)})"

    def quotient(self, atom: FloorDiv | Mod, factor: bool) -> str:
        """As `ScalarDialect.quotient` says."""
        function = "floordiv" if isinstance(atom, FloorDiv) else "mod"
        return f"opc::{function}({self.integer(atom.numerator, True)}, {self.integer(atom.denominator, True)})"

    def lesser(self, left: Affine, right: Affine) -> str:
        """As `ScalarDialect.lesser` says."""
        return f"opc::minimum({self.integer(left)}, {self.integer(right)})"

    def _attribute(self, name: str, element: int) -> str:
        attribute = self.op.attribute(name)
        if attribute.kind is AttributeKind.AXIS:
            return self.axis(name)
        if attribute.length is None:
            return f"attributes->{name}"
        return f"attributes->{name}[{element}]"

    def constant(self, e: Const) -> BoundText:
        """As `ScalarDialect.constant` says."""
        return _atom(_constant(e))

    def string(self, value: str) -> BoundText:
        """As `ScalarDialect.string` says."""
        return _atom(string_literal(value))

    def attribute(self, e: AttrRef) -> BoundText:
        """As `ScalarDialect.attribute` says."""
        kind = self.op.attribute(e.name).kind
        text = self._attribute(e.name, e.element)
        if kind in (AttributeKind.INT, AttributeKind.AXIS):
            return _atom(f"opc::integer({text})")
        return _atom(f"({text} != 0)" if kind is AttributeKind.BOOL else text)

    def index_value(self, value: Affine) -> BoundText:
        """As `ScalarDialect.index_value` says."""
        return _atom(self.integer(value))

    def presence(self, operand: str, given: bool) -> BoundText:
        """As `ScalarDialect.presence` says."""
        names = [o.name for o in self.op.inputs]
        return _atom(f"(inputs[{names.index(operand)}] {'!=' if given else '=='} nullptr)")

    def choice(self, e: Select) -> BoundText:
        """As `ScalarDialect.choice` says."""
        return _atom(f"({self.value(e.cond).text} ? {self._as(e.then, e.type)} : {self._as(e.other, e.type)})")

    def _as(self, e: Expr, t: object) -> str:
        """Return `e` as a double where the operation's type is floating and `e` is an integer."""
        text = self.value(e).text
        if t is Weak.FLOAT and e.type is Weak.INT:
            return f"{text}.0" if isinstance(e, Const) else f"opc::real({text})"
        return text

    def call(self, e: Call) -> BoundText:
        """As `ScalarDialect.call` says."""
        if e.fn in ("eq", "ne") and any(isinstance(a, StrConst) for a in e.args):
            return _atom(self._compare_strings(e))
        floating = Weak.FLOAT if Weak.FLOAT in (e.type, *(a.type for a in e.args)) else Weak.INT
        args = [self._as(a, floating) for a in e.args]
        if floating is Weak.INT and isinstance(e.args[0], Const) and e.type is not Weak.FLOAT:
            args[0] = f"opc::integer({args[0]})"
        pattern = FUNCTIONS[e.fn].c
        return _atom(pattern.format(*args) if pattern.startswith(("opc::", "(")) else f"({pattern.format(*args)})")

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


def _atom(text: str) -> BoundText:
    return BoundText(text, CPP.atom)


def _constant(e: Const) -> str:
    if isinstance(e.value, bool):
        return "true" if e.value else "false"
    if isinstance(e.value, float):
        if e.value != e.value:
            return '__builtin_nan("")'
        if abs(e.value) == float("inf"):
            return "__builtin_huge_val()" if e.value > 0 else "-__builtin_huge_val()"
    return whole_number(e.value) if isinstance(e.value, int) else repr(e.value)
