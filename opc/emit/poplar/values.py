"""Expressions on the values of a stage as C++: sums, comparisons and functions of `opc::ipu::value`.

What a call fixes, attributes, sizes and presence, stays plain C++ until it meets a value.
"""

from __future__ import annotations

import math

from opc.emit.cpp.expressions import small_power
from opc.emit.cpp.text import string_literal
from opc.emit.poplar.host import HostText
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, candidates, is_floating
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, GroupIndex, GroupRef, IndexValue, Present, Read, Select, StrConst
from opc.ir.functions import FUNCTIONS
from opc.ir.op import AttributeKind
from opc.ir.precedence import CPP
from opc.records import dataclass

_ATOM = CPP.atom
_SYMBOLS = {"and": "&&", "or": "||"}


@dataclass(frozen=True, slots=True)
class ValueText:
    """C++ text, how strongly its outermost operator binds, and whether it is a value rather than a plain number or bool."""

    text: str
    strength: int = _ATOM
    is_value: bool = True

    def at(self, strength: int) -> str:
        """Return the text as an operand of an operator of this strength."""
        return self.text if self.strength >= strength else f"({self.text})"


class Values:
    """Writes the expressions of one stage; `names` are the variables of its values."""

    def __init__(self, host: HostText, names: dict[str, str]) -> None:
        self.host, self.names = host, names

    def text(self, e: Expr) -> str:
        """Return an expression, as a value or what becomes one."""
        return self.of(e).text

    def condition(self, e: Expr) -> str:
        """Return a condition that a call fixes, as a bool."""
        found = self.of(e)
        return f"ipu::is_true({found.text})" if found.is_value else found.text

    def branch(self, e: Expr, wanted: ValueType) -> str:
        """Return an expression; a literal as one of a floating type, where that is wanted: its zero has a sign."""
        if isinstance(e, Const) and is_floating(wanted) and not isinstance(e.value, bool):
            return _number(float(e.value)).text
        return self.text(e)

    def converted(self, e: Expr, wanted: ValueType) -> str:
        """Return an expression as a value of a type that it is kept in."""
        if isinstance(e, Const) or isinstance(wanted, Weak) or e.type == wanted:
            return self.branch(e, wanted)
        if is_floating(e.type) and is_floating(wanted):
            return self.text(e)
        return f"ipu::cast({self.host.type(wanted)}, {self.text(e)})"

    def of(self, e: Expr) -> ValueText:
        """Return an expression."""
        match e:
            case Const():
                return _number(e.value)
            case AttrRef():
                text = self.host.attribute(e.name, e.element)
                if self.host.op.attribute(e.name).kind is AttributeKind.BOOL:
                    return ValueText(f"{text} != 0", CPP.strength["ne"], False)
                return ValueText(text, _ATOM, False)
            case IndexValue():
                strength = _ATOM if e.value.single is not None or (e.value.constant or -1) >= 0 else CPP.strength["add"]
                return ValueText(self.host.affine(e.value), strength, bool(e.value.indices()))
            case GroupIndex():
                return ValueText(self.names[str(GroupRef(e.group))])
            case Read():
                return ValueText(self.names[e.operand])
            case Present():
                return ValueText(self.host.present(e.operand), _ATOM, False)
            case Select():
                parts = ", ".join((self.text(e.cond), *(self.branch(x, e.type) for x in (e.then, e.other))))
                return ValueText(f"ipu::select({parts})")
            case Cast():
                return ValueText(f"ipu::cast({self.host.type(e.type)}, {self.text(e.arg)})")
            case Call():
                return self._call(e)
            case _:
                raise TypeError(f"{type(e).__name__} is no value of a stage")

    def _call(self, e: Call) -> ValueText:
        if any(isinstance(a, StrConst) for a in e.args):
            return self._text_comparison(e)
        if e.fn == "stop_gradient":
            return self.of(e.args[0])
        if e.fn == "pow" and (power := small_power(e.args[1])) is not None:
            return ValueText(f"ipu::power({self._first([self.of(e.args[0])])[0].text}, {power})")
        args = [self._argument(a, e) for a in e.args]
        if e.fn in ("not", "neg"):
            text = f"{'!' if e.fn == 'not' else '-'}{args[0].at(CPP.strength['neg'] + 1)}"
            return ValueText(text, CPP.strength["neg"], args[0].is_value)
        if e.fn in CPP.strength:
            if e.fn == "div":
                args = self._first(args)
            symbol = _SYMBOLS.get(e.fn) or FUNCTIONS[e.fn].symbol
            left, right = CPP.sides(e.fn)
            if e.fn in _SYMBOLS:
                # Compilers warn of `&&` beside `||` without parentheses.
                left = right = CPP.strength["eq"]
            text = f"{args[0].at(left)} {symbol} {args[1].at(right)}"
            return ValueText(text, CPP.strength[e.fn], any(a.is_value for a in args))
        return ValueText(f"ipu::{e.fn}({', '.join(a.text for a in self._first(args))})")

    def _argument(self, a: Expr, e: Call) -> ValueText:
        """Return an argument, widened where a narrow integer is computed with in a wider type."""
        found = self.of(a)
        if FUNCTIONS[e.fn].types == "number" and _is_wide(e.type) and _may_be_narrow(a.type):
            return ValueText(f"ipu::cast({self.host.type(e.type)}, {found.text})")
        if isinstance(a, Const) and isinstance(a.value, float) and any(self._is_float_attribute(x) for x in e.args):
            # Frameworks hold such attributes as float.
            return ValueText(f"{found.text}f", found.strength, False) if math.isfinite(a.value) else found
        return found

    def _is_float_attribute(self, e: Expr) -> bool:
        return isinstance(e, AttrRef) and self.host.op.attribute(e.name).kind is AttributeKind.FLOAT

    @staticmethod
    def _first(args: list[ValueText]) -> list[ValueText]:
        """Return arguments of which one at least is a value."""
        if any(a.is_value for a in args):
            return args
        return [ValueText(f"ipu::value({args[0].text})"), *args[1:]]

    def _text_comparison(self, e: Call) -> ValueText:
        attribute, constant = e.args if isinstance(e.args[1], StrConst) else (e.args[1], e.args[0])
        assert isinstance(attribute, AttrRef), "strings are only compared with attributes"
        assert isinstance(constant, StrConst), "strings are only compared with attributes"
        text = f"{self.host.attribute(attribute.name, attribute.element)} {'==' if e.fn == 'eq' else '!='} "
        return ValueText(text + string_literal(constant.value), CPP.strength["eq"], False)


def _is_wide(t: ValueType) -> bool:
    return isinstance(t, DType | Weak) and not is_floating(t)


def _may_be_narrow(t: ValueType) -> bool:
    return isinstance(t, DType | TypeVar) and any(not d.is_floating and d.bits < 32 for d in candidates(t))


def _number(value: int | float | bool) -> ValueText:
    """Return a literal."""
    if isinstance(value, bool):
        return ValueText("true" if value else "false", _ATOM, False)
    if isinstance(value, int):
        text = str(value) if abs(value) < 2**31 else f"INT64_C({value})"
        return ValueText(text, CPP.strength["neg"] if value < 0 else _ATOM, False)
    if not math.isfinite(value):
        name = "quiet_NaN" if math.isnan(value) else "infinity"
        text = f"{'-' if value < 0 else ''}std::numeric_limits<double>::{name}()"
        return ValueText(text, CPP.strength["neg"] if value < 0 else _ATOM, False)
    return ValueText(repr(value), CPP.strength["neg"] if math.copysign(1, value) < 0 else _ATOM, False)
