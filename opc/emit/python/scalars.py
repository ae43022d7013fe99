"""Conditions and sizes of a spec as Python text over local variables, with the meaning of `opc.analysis.shapes.scalar`."""

from __future__ import annotations

import math
from collections.abc import Callable

from opc.emit.python.carried import names_in_row
from opc.emit.python.text import literal, quoted
from opc.emit.scalar.affine import AffineDialect, BoundText, terms_of
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.functions import FUNCTIONS
from opc.ir.precedence import PYTHON

_SUM, _PRODUCT, _UNARY, _ATOM = (*(PYTHON.strength[fn] for fn in ("add", "mul", "neg")), PYTHON.atom)


class PythonScalarText(AffineDialect):
    """Writes scalar expressions.

    `dim`, `points` and `present` give the text of a size, of a group's number of points and of an operand that may be None.
    """

    def __init__(self, dim: Callable[[str], str], points: Callable[[str], str], present: Callable[[str], str]) -> None:
        self.dim, self.points, self.present = dim, points, present
        self.uses: set[str] = set()
        """The functions and modules that the texts name."""

    def size(self, size: Affine) -> str:
        """Return an expression over sizes and integer attributes."""
        return self.affine(size)

    def condition(self, e: Expr) -> str:
        """Return a condition."""
        return self.value(e).text

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        return str(value)

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says.

        Raises:
            TypeError: for an index variable, which no size has.
        """
        match atom:
            case Dim():
                return self.dim(atom.name)
            case GroupSize():
                return self.points(atom.name)
            case AttrInt():
                value = _element(atom.name, atom.element)
                return value if atom.text is None else f"int({value} == {quoted(atom.text)})"
            case FloorDiv() | Mod():
                left, right = self._integer(atom.numerator).at(_PRODUCT), self._integer(atom.denominator).at(_ATOM)
                text = BoundText(f"{left} {'//' if isinstance(atom, FloorDiv) else '%'} {right}", _PRODUCT)
                return text.at(_ATOM if factor else _PRODUCT)
            case Minimum():
                self.uses.add("_lesser")
                return f"_lesser({self.affine(atom.left)}, {self.affine(atom.right)})"
            case Index():
                raise TypeError(f"a size may not use the index {atom}")

    def value(self, e: Expr) -> BoundText:
        """Return an expression.

        Raises:
            TypeError: for one that reads tensors.
        """
        match e:
            case Const():
                text = f'float("{e.value}")' if isinstance(e.value, float) and not math.isfinite(e.value) else literal(e.value)
                return BoundText(text, _UNARY if text.startswith("-") else _ATOM)
            case StrConst():
                return BoundText(quoted(e.value), _ATOM)
            case AttrRef():
                return BoundText(_element(e.name, e.element), _ATOM)
            case IndexValue():
                return self._integer(e.value)
            case Present():
                return BoundText(self.present(e.operand), PYTHON.strength["ne"])
            case Cast():
                return self.value(e.arg)
            case Select():
                then, cond, other = (self.value(part).at(PYTHON.strength["or"]) for part in (e.then, e.cond, e.other))
                return BoundText(f"({then} if {cond} else {other})", _ATOM)
            case Call(fn="not", args=(Present() as inner,)):
                return BoundText(self.present(inner.operand).replace(" is not ", " is "), PYTHON.strength["ne"])
            case Call():
                return self._call(e)
            case _:
                raise TypeError(f"a condition may not read tensors: {e}")

    def _integer(self, value: Affine) -> BoundText:
        terms = terms_of(value)
        strength = _SUM if len(terms) > 1 else _ATOM
        if len(terms) == 1:
            (term,) = terms
            strength = _PRODUCT if term.is_product or term.is_quotient else _UNARY if (value.constant or 0) < 0 else _ATOM
        return BoundText(self.affine(value), strength)

    def _call(self, e: Call) -> BoundText:
        text, args = FUNCTIONS[e.fn].python, [self.value(a) for a in e.args]
        self.uses |= names_in_row(text)
        if e.fn not in PYTHON.strength or "(" in text:
            # A function's text may have an operator beside an argument.
            return BoundText(text.format(*(a.at(_ATOM) if "{0} " in text else a.text for a in args)), _ATOM)
        sides = PYTHON.sides(e.fn) if len(args) == 2 else (PYTHON.strength[e.fn],)
        return BoundText(text.format(*(a.at(side) for a, side in zip(args, sides))), PYTHON.strength[e.fn])


def _element(name: str, element: int) -> str:
    return name if element < 0 else f"{name}[{element}]"
