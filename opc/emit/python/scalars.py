"""Conditions and sizes of a spec as Python text over local variables, with the meaning of `opc.analysis.shapes.scalar`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from opc.emit.python.text import literal, quoted
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.functions import FUNCTIONS

_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 9)
_OPERATORS: Mapping[str, tuple[str, int]] = {
    "or": ("or", _OR), "and": ("and", _AND), "lt": ("<", _COMPARE), "le": ("<=", _COMPARE), "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE), "eq": ("==", _COMPARE), "ne": ("!=", _COMPARE), "add": ("+", _SUM), "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT), "floordiv": ("//", _PRODUCT), "mod": ("%", _PRODUCT),
}  # fmt: skip


class ScalarText:
    """Writes scalar expressions; `dim`, `group` and `present` give the text of a size, of a group's points and of a presence."""

    def __init__(self, dim: Callable[[str], str], points: Callable[[str], str], present: Callable[[str], str]) -> None:
        self.dim, self.points, self.present = dim, points, present

    def size(self, size: Affine) -> str:
        """Return an expression over sizes and integer attributes."""
        return self._sum(size)[0]

    def condition(self, e: Expr) -> str:
        """Return a condition."""
        return self._value(e)[0]

    def _sum(self, size: Affine) -> tuple[str, int]:
        if size.constant is not None:
            return str(size.constant), _ATOM if size.constant >= 0 else _UNARY
        text, strength = "", _ATOM
        for monomial, coefficient in size.terms:
            term, strength = self._term(monomial, abs(coefficient))
            if not text and coefficient == -1 and len(monomial) == 1 and isinstance(monomial[0], FloorDiv | Mod):
                term = f"({term})"  # A sign binds tighter than a division.
            sign = "-" if coefficient < 0 else "+"
            text = f"{text} {sign} {term}" if text else term if coefficient > 0 else f"-{term}"
        return text, strength if len(size.terms) == 1 else _SUM

    def _term(self, monomial: tuple[Atom, ...], coefficient: int) -> tuple[str, int]:
        factors = [] if coefficient == 1 and monomial else [str(coefficient)]
        atoms = [self._atom(a) for a in monomial]
        if len(atoms) == 1 and not factors:
            return atoms[0]
        factors += [_at(a, _ATOM) for a in atoms]
        return " * ".join(factors), _PRODUCT if len(factors) > 1 else _ATOM

    def _atom(self, atom: Atom) -> tuple[str, int]:
        match atom:
            case Dim():
                return self.dim(atom.name), _ATOM
            case GroupSize():
                return self.points(atom.name), _ATOM
            case AttrInt():
                return _element(atom.name, atom.element), _ATOM
            case FloorDiv() | Mod():
                operator = "//" if isinstance(atom, FloorDiv) else "%"
                left, right = _at(self._sum(atom.numerator), _PRODUCT), _at(self._sum(atom.denominator), _ATOM)
                return f"{left} {operator} {right}", _PRODUCT
            case Minimum():
                return f"_lesser({self.size(atom.left)}, {self.size(atom.right)})", _ATOM
            case Index():
                raise TypeError(f"a size may not use the index {atom}")

    def _value(self, e: Expr) -> tuple[str, int]:
        match e:
            case Const():
                text = f'float("{e.value}")' if isinstance(e.value, float) and not math.isfinite(e.value) else literal(e.value)
                return text, _UNARY if text.startswith("-") else _ATOM
            case StrConst():
                return quoted(e.value), _ATOM
            case AttrRef():
                return _element(e.name, e.element), _ATOM
            case IndexValue():
                return self._sum(e.value)
            case Present():
                return self.present(e.operand), _COMPARE
            case Cast():
                return self._value(e.arg)
            case Select():
                branches = [_at(self._value(x), _OR) for x in (e.then, e.cond, e.other)]
                return f"({branches[0]} if {branches[1]} else {branches[2]})", _ATOM
            case Call():
                return self._call(e)
            case _:
                raise TypeError(f"a condition may not read tensors: {e}")

    def _call(self, e: Call) -> tuple[str, int]:
        args = [self._value(a) for a in e.args]
        if e.fn == "not" and isinstance(e.args[0], Present):
            return args[0][0].replace(" is not ", " is "), _COMPARE
        if e.fn == "not":
            return f"not {_at(args[0], _NOT)}", _NOT
        if e.fn == "neg":
            return f"-{_at(args[0], _UNARY)}", _UNARY
        if e.fn in _OPERATORS:
            symbol, own = _OPERATORS[e.fn]
            return f"{_at(args[0], own + (own == _COMPARE))} {symbol} {_at(args[1], own + 1)}", own
        text = FUNCTIONS[e.fn].python
        return text.format(*(_at(a, _ATOM) if "{0} " in text else a[0] for a in args)), _ATOM


def _at(value: tuple[str, int], strength: int) -> str:
    return value[0] if value[1] >= strength else f"({value[0]})"


def _element(name: str, element: int) -> str:
    return name if element < 0 else f"{name}[{element}]"
