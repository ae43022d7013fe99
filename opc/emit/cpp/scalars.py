"""Conditions and sizes of a spec as C++ text over a call's attributes and sizes.

Integers are `opc::integer` of "opc/shape.h", which marks overflow and division by zero; floating values are double.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from opc.emit.cpp.text import string_literal, whole_number
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import INT64_MIN, Weak
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.functions import FUNCTIONS
from opc.ir.op import AttributeKind, Op


class ScalarText:
    """Writes the scalar expressions of one op.

    `dim`, `group` and `axis` give the C++ text of a dimension's size, of a group and of an axis attribute's position.
    """

    def __init__(self, op: Op, dim: Callable[[str], str], group: Callable[[str], str], axis: Callable[[str], str]) -> None:
        self.op, self.dim, self.group, self.axis = op, dim, group, axis

    def integer(self, size: Affine, bare: bool = False) -> str:
        """Return an expression over sizes and integer attributes, as an `opc::integer`; `bare` without outer parentheses."""
        if size.constant is not None:
            return f"opc::integer({whole_number(size.constant)})"
        text = _sum([self._term(m, c) for m, c in size.terms])
        return text if bare or len(size.terms) == 1 else f"({text})"

    def number(self, size: Affine) -> str:
        """Return the value of such an expression, as an int64_t."""
        text = self.integer(size)
        is_product = len(size.terms) == 1 and len(size.terms[0][0]) > 1
        return f"({text}).value" if is_product else f"{text}.value"

    def _term(self, monomial: tuple[Atom, ...], coefficient: int) -> str:
        if not monomial:
            return whole_number(coefficient)
        factors = [self._atom(a) for a in monomial]
        if coefficient == INT64_MIN:
            return " * ".join([f"opc::integer({whole_number(coefficient)})", *factors])
        if abs(coefficient) != 1:
            factors.insert(0, str(abs(coefficient)))
        text = " * ".join(factors)
        return f"-{text}" if coefficient < 0 else text

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Dim():
                return f"opc::integer({self.dim(atom.name)})"
            case GroupSize():
                return f"opc::size({self.group(atom.name)})"
            case AttrInt():
                return f"opc::integer({self._attribute(atom.name, atom.element)})"
            case FloorDiv():
                return f"opc::floordiv({self.integer(atom.numerator, True)}, {self.integer(atom.denominator, True)})"
            case Mod():
                return f"opc::mod({self.integer(atom.numerator, True)}, {self.integer(atom.denominator, True)})"
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

    def condition(self, e: Expr) -> str:
        """Return a condition, without outer parentheses."""
        text = self._value(e)
        return text[1:-1] if isinstance(e, Call) and text.startswith("(") else text

    def _value(self, e: Expr) -> str:
        match e:
            case Const():
                return _constant(e)
            case StrConst():
                return string_literal(e.value)
            case AttrRef():
                return self._attribute_value(e)
            case IndexValue():
                return self.integer(e.value)
            case Present():
                names = [o.name for o in self.op.inputs]
                return f"(inputs[{names.index(e.operand)}] != nullptr)"
            case Cast():
                return self._value(e.arg)
            case Select():
                branches = (self._as(e.then, e.type), self._as(e.other, e.type))
                return f"({self._value(e.cond)} ? {branches[0]} : {branches[1]})"
            case Call():
                return self._call(e)
            case _:
                raise TypeError(f"a condition may not read tensors: {e}")

    def _attribute_value(self, e: AttrRef) -> str:
        kind = self.op.attribute(e.name).kind
        text = self._attribute(e.name, e.element)
        if kind in (AttributeKind.INT, AttributeKind.AXIS):
            return f"opc::integer({text})"
        return f"({text} != 0)" if kind is AttributeKind.BOOL else text

    def _as(self, e: Expr, t: object) -> str:
        """Return `e` as a double where the operation's type is floating and `e` is an integer."""
        text = self._value(e)
        if t is Weak.FLOAT and e.type is Weak.INT:
            return f"{text}.0" if isinstance(e, Const) else f"opc::real({text})"
        return text

    def _call(self, e: Call) -> str:
        if e.fn == "not" and isinstance(e.args[0], Present):
            return self._value(e.args[0]).replace("!=", "==")
        if e.fn in ("eq", "ne") and any(isinstance(a, StrConst) for a in e.args):
            return self._compare_strings(e)
        floating = Weak.FLOAT if Weak.FLOAT in (e.type, *(a.type for a in e.args)) else Weak.INT
        args = [self._as(a, floating) for a in e.args]
        if floating is Weak.INT and isinstance(e.args[0], Const) and e.type is not Weak.FLOAT:
            args[0] = f"opc::integer({args[0]})"
        pattern = FUNCTIONS[e.fn].c
        return pattern.format(*args) if pattern.startswith("opc::") else f"({pattern.format(*args)})"

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


def _sum(terms: list[str]) -> str:
    def join(left: str, right: str) -> str:
        return f"{left} - {right[1:]}" if right.startswith("-") else f"{left} + {right}"

    return reduce(join, terms)
