"""Typed scalar expressions as C++ text.

Values are computed in C++ types named by type variables: a template parameter `T` is the compute type of the type
variable T, float for float16. Weak values are int64_t and double until they meet a typed one, and are then converted.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from opc.analysis.value_types import within_64_bits
from opc.emit.cpp.text import string_literal, whole_number
from opc.emit.dtypes import c_compute as c_compute_dtype
from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import INT64_MIN, Acc, DType, TypeVar, ValueType, Weak, accumulated, candidates, is_floating
from opc.ir.expr import (
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Present,
    Select,
    StrConst,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.node import memoised
from opc.ir.op import AttributeKind, Op
from opc.ir.precedence import CONDITIONAL, CPP
from opc.ir.promotion import join
from opc.records import dataclass

_TERNARY, _OR, _EQUAL, _SUM, _UNARY = CONDITIONAL, *(CPP.strength[fn] for fn in ("or", "eq", "add", "neg"))
_ATOM = CPP.atom
_LARGEST_POWER = 16


@memoised
def c_compute(t: ValueType) -> str:
    """Return the C++ type values of type `t` are computed in, inside a template over the type variables."""
    match t:
        case Weak.INT:
            return "int64_t"
        case Weak.FLOAT:
            return "double"
        case DType():
            return c_compute_dtype(t)
        case TypeVar():
            return t.name
        case Acc():
            if isinstance(t.of, DType):
                return c_compute_dtype(t.of.accumulator)
            if is_floating(t.of):
                return t.of.name
            whole = accumulated(t.of)
            return c_compute_dtype(whole) if isinstance(whole, DType) else f"opc::accumulator<{t.of.name}>"


def compute_types(t: TypeVar) -> tuple[DType, ...]:
    """Return the distinct compute dtypes of a type variable, in the order of the spec."""
    return tuple(dict.fromkeys(d.compute for d in t.dtypes))


@memoised
def _narrow(t: ValueType) -> bool:
    """Whether C++ promotes arithmetic on `t` to int, so that results must be cut back to wrap."""
    return not isinstance(t, Weak) and any(not d.is_floating and d.bits < 32 for d in candidates(t))


@dataclass(frozen=True, slots=True)
class CppText:
    """C++ text of a value, the binding strength of its outermost operator, and its value type.

    `exact` says that the text has exactly the C++ type of that, which a literal may not.
    """

    text: str
    strength: int
    type: ValueType
    exact: bool = False

    def at(self, strength: int) -> str:
        """Return the text as an operand of an operator of this strength."""
        return self.text if self.strength >= strength else f"({self.text})"

    def of_type(self, t: ValueType) -> CppText:
        """Return the text as a value of another type, that is the same in C++."""
        return self if t is self.type else CppText(self.text, self.strength, t, self.exact)


class ExprText(AffineDialect):
    """Writes expressions of one op."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.given: frozenset[str] = frozenset()
        """The optional operands known to be present where an expression is being written."""

    @property
    def integer_type(self) -> str:
        """The C++ type that whole numbers are computed in, places and sizes among them."""
        return "int64_t"

    def computed(self, t: ValueType) -> str:
        """Return the C++ type that values of a type are computed in here."""
        found = c_compute(t)
        return self.integer_type if found == "int64_t" else found

    @abstractmethod
    def attribute(self, name: str, element: int, target: str) -> str:
        """Return an attribute, or an element of one, as a C++ type."""

    @abstractmethod
    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """Return a size, or an index."""

    @abstractmethod
    def present(self, operand: str) -> str:
        """Return whether an operand was given."""

    def convert(self, e: Expr, wanted: ValueType) -> CppText:
        """Return `e` as a value of type `wanted`, which it mixes with or is cast to."""
        target = self.computed(wanted)
        if isinstance(e, Const):
            return number(e.value, wanted)
        if isinstance(e, AttrRef) and not self._is_text(e):
            return CppText(self.attribute(e.name, e.element, target), _ATOM, wanted)
        own = self.expr(e)
        if self.computed(own.type) == target:
            return own.of_type(wanted)
        return CppText(f"{target}({own.text})", _ATOM, wanted, True)

    def branch(self, e: Expr, wanted: ValueType) -> CppText:
        """Return `e` where it counts only under a condition; here that makes no difference."""
        return self.convert(e, wanted)

    def _is_text(self, e: AttrRef) -> bool:
        return self.op.attribute(e.name).kind is AttributeKind.STR

    WRITERS: ClassVar[Mapping[type, Callable[[Any, Any], CppText]]] = {}
    """What writes each class of expressions: they are too many to ask one after the other."""

    def expr(self, e: Expr) -> CppText:
        """Return `e` in its own type."""
        write = self.WRITERS.get(e.__class__)
        if write is None:
            raise TypeError(f"{type(e).__name__} has no C++ text here")
        return write(self, e)

    def _select(self, e: Select) -> CppText:
        # Both sides of a choice are pure, so the compiler may compute both and blend.
        cond, other = self.expr(e.cond), self.branch(e.other, e.type)
        before, self.given = self.given, self.given | presences(e.cond)
        then = self.branch(e.then, e.type)
        self.given = before
        return CppText(f"{cond.at(_OR)} ? {then.at(_OR)} : {other.at(_TERNARY)}", _TERNARY, e.type)

    def _cast(self, e: Cast) -> CppText:
        own = self.expr(e.arg)
        target = self.computed(e.type)
        if self.computed(own.type) == target:
            return own.of_type(e.type)
        if isinstance(e.arg, Const):
            if _saturates(e.arg.value, e.type):
                return CppText(f"opc::cast<{target}>({number(e.arg.value, Weak.FLOAT).text})", _ATOM, e.type)
            return number(e.arg.value, e.type)
        return CppText(f"opc::cast<{target}>({own.text})", _ATOM, e.type)

    def _call(self, e: Call) -> CppText:
        if (same := within_64_bits(e)) is not None:
            e = same
        fn = FUNCTIONS[e.fn]
        if e.fn in ("eq", "ne") and any(isinstance(a, StrConst) for a in e.args):
            return self._text_comparison(e)
        if e.fn == "pow" and (power := small_power(e.args[1])) is not None:
            base = self.convert(e.args[0], e.type)
            return CppText(f"opc::power<{power}>({self._argument(e.args[0], base)})", _ATOM, e.type)
        common: ValueType = DType.BOOL if fn.types == "logic" else e.type
        if fn.types in ("compare", "test"):
            common = e.args[0].type
            for a in e.args[1:]:
                joined = join(common, a.type)
                assert joined is not None, "the typed IR only compares values that mix"
                common = joined
        args = [self.convert(e.args[0], common)]
        args += [self.branch(a, common) if fn.types == "logic" else self.convert(a, common) for a in e.args[1:]]
        if e.fn == "sub" and is_floating(e.type) and _is_zero(e.args[0]) and _shows_its_sign(e.args[1]):
            return CppText(f"opc::zero_minus<{self.computed(e.type)}>({args[1].text})", _ATOM, e.type)
        if fn.types in ("number", "integer", "float") and all(map(_is_loose, e.args)):
            args[0] = self._exact(args[0])
        if fn.c == "{0}":
            return args[0].of_type(e.type)
        strength = CPP.strength.get(e.fn)
        if strength is None:
            text = fn.c.format(*(self._argument(a, arg) for a, arg in zip(e.args, args)))
            return CppText(text, _ATOM, e.type)
        if fn.arity == 1:
            text = fn.c.format(args[0].at(_UNARY + 1))
        else:
            left, right = CPP.sides(e.fn)
            text = fn.c.format(args[0].at(left), args[1].at(right))
        if fn.types in ("number", "integer") and _narrow(e.type):
            return CppText(f"{self.computed(e.type)}({text})", _ATOM, e.type, True)
        return CppText(text, strength, e.type)

    def _argument(self, e: Expr, text: CppText) -> str:
        """Return an argument of an overloaded function, where a literal must have the exact type."""
        return self._exact(text).text if isinstance(e, Select) or _is_loose(e) else text.text

    def _exact(self, text: CppText) -> CppText:
        """Return a value in a text of exactly its type."""
        return text if text.exact else CppText(f"{self.computed(text.type)}({text.text})", _ATOM, text.type, True)

    def _text_comparison(self, e: Call) -> CppText:
        attribute, constant = e.args if isinstance(e.args[1], StrConst) else (e.args[1], e.args[0])
        assert isinstance(attribute, AttrRef), "strings are only compared with attributes"
        assert isinstance(constant, StrConst), "strings are only compared with attributes"
        declared = self.op.attribute(attribute.name)
        operator = "==" if e.fn == "eq" else "!="
        name = self.attribute(attribute.name, attribute.element, "")
        if declared.values:
            return CppText(f"{name} {operator} {declared.values.index(constant.value)}", _EQUAL, DType.BOOL)
        return CppText(f"strcmp({name}, {string_literal(constant.value)}) {operator} 0", _EQUAL, DType.BOOL)

    def _index_value(self, value: Affine) -> CppText:
        """Return the value of an index; where it is known, as along an axis of one point, its literal has the exact type too."""
        text = CppText(self.affine(value), _ATOM if value.single is not None else _SUM, Weak.INT)
        return self._exact(text) if value.constant is not None else text

    def affine(self, value: Affine) -> str:
        """Return an integer expression over indices, sizes and attributes, as int64_t."""
        return whole_number(value.constant) if value.constant is not None else super().affine(value)

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        return whole_number(value)

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says."""
        return self._atom(atom)

    def _atom(self, atom: Atom) -> str:
        match atom:
            case FloorDiv():
                return f"opc::floordiv<{self.integer_type}>({self.affine(atom.numerator)}, {self.affine(atom.denominator)})"
            case Mod():
                return f"opc::mod<{self.integer_type}>({self.affine(atom.numerator)}, {self.affine(atom.denominator)})"
            case Minimum():
                return f"opc::minimum<{self.integer_type}>({self.affine(atom.left)}, {self.affine(atom.right)})"
            case AttrInt() if atom.text is not None:
                name = self.attribute(atom.name, atom.element, "")
                return f"{self.integer_type}({name} == {self.op.attribute(atom.name).values.index(atom.text)})"
            case AttrInt():
                return self.attribute(atom.name, atom.element, self.integer_type)
            case _:
                return self.symbol(atom)


ExprText.WRITERS = {
    Const: lambda text, e: number(e.value, e.type),
    AttrRef: lambda text, e: CppText(text.attribute(e.name, e.element, text.computed(e.type)), _ATOM, e.type),
    IndexValue: lambda text, e: text._index_value(e.value),
    Call: ExprText._call,
    Select: ExprText._select,
    Cast: ExprText._cast,
    Present: lambda text, e: CppText(text.present(e.operand), _ATOM, DType.BOOL),
}


def _is_loose(e: Expr) -> bool:
    """Whether an expression is made of literals alone, whose text may be an integer where a floating value is meant."""
    if isinstance(e, Select):
        return _is_loose(e.then) and _is_loose(e.other)
    return isinstance(e.arg if isinstance(e, Cast) else e, Const)


def _is_zero(e: Expr) -> bool:
    """Whether an expression is a literal 0, but not -0."""
    number = e.arg if isinstance(e, Cast) else e
    return isinstance(number, Const) and number.value == 0 and math.copysign(1, number.value) > 0


def _shows_its_sign(e: Expr) -> bool:
    """Whether g++ sees that a floating value is not -0: of a conversion, or a conditional with such a side or literals."""
    if isinstance(e, Select):
        sides = (e.then, e.other)
        return all(isinstance(side, Const) for side in sides) or any(map(_shows_its_sign, sides))
    return not is_floating(e.type) and not isinstance(e, Const)


def presences(condition: Expr) -> frozenset[str]:
    """Return the operands that are present wherever the condition holds."""
    match condition:
        case Present():
            return frozenset([condition.operand])
        case Call(fn="and"):
            return frozenset().union(*(presences(a) for a in condition.args))
        case _:
            return frozenset()


def _negative(value: int | float | bool) -> bool:
    return not isinstance(value, bool) and value < 0


def small_power(e: Expr) -> int | None:
    """Return the exponent when it is a small constant integer, so that the power is a few multiplications."""
    if isinstance(e, Const) and not isinstance(e.value, bool) and float(e.value).is_integer() and abs(e.value) <= _LARGEST_POWER:
        return int(e.value)
    return None


def _saturates(value: int | float | bool, t: ValueType) -> bool:
    """Whether a number with a point is outside of an integer type that `t` may stand for, to which C++ defines no conversion."""
    if not isinstance(value, float) or isinstance(t, Weak):
        return False
    integers = [d for d in candidates(t) if d.is_integer]
    return any(not math.isfinite(value) or not d.least <= math.trunc(value) <= d.most for d in integers)


def written(value: int | float) -> str:
    """Return a number that an attribute is compared with as a C++ literal: infinity and NaN have none of their own."""
    return str(value) if isinstance(value, int) or math.isfinite(value) else number(value, Weak.FLOAT).text


def number(value: int | float | bool, t: ValueType) -> CppText:
    """Return a literal as a C++ value of type `t`; an integer in a floating context stays a plain integer where it is exact."""
    target = c_compute(t)
    strength = _UNARY if _negative(value) else _ATOM
    if isinstance(value, bool):
        return CppText(("true" if value else "false") if t is DType.BOOL else str(int(value)), _ATOM, t)
    if isinstance(value, float) and math.isinf(value) and not isinstance(t, Weak) and any(d.is_integer for d in candidates(t)):
        # A reduction of integers starts at an end of their type.
        return CppText(f"opc::limits<{target}>::{'lowest' if value < 0 else 'highest'}", _ATOM, t, True)
    if isinstance(value, float) and not math.isfinite(value):
        text = '__builtin_nan("")' if math.isnan(value) else "__builtin_inf()"
        return CppText(f"{'-' if value < 0 else ''}{target}({text})", strength, t, True)
    if isinstance(value, int) or value.is_integer():
        if t is Weak.FLOAT:
            return CppText(repr(float(value)), strength, t)
        if abs(value) < 1 << 11 and not (value == 0 and math.copysign(1, value) < 0):
            return CppText(str(int(value)), strength, t)
        if isinstance(value, int) and t is Weak.INT:
            return CppText(whole_number(value) if value == INT64_MIN else f"INT64_C({value})", _ATOM, t)
        if value == INT64_MIN:
            return CppText(f"{target}(INT64_MIN)", _ATOM, t, True)
    return CppText(repr(value), strength, t) if t is Weak.FLOAT else CppText(f"{target}({value!r})", _ATOM, t, True)
