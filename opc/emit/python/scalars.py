"""Conditions and sizes of a spec as Python text over local variables, with the meaning of `opc.analysis.shapes.scalar`."""

from __future__ import annotations

import math
from collections.abc import Callable

from opc.emit.python.carried import names_in_row
from opc.emit.python.text import literal, quoted
from opc.emit.scalar.affine import terms_of
from opc.emit.scalar.expressions import BoundText, ScalarDialect
from opc.ir.affine import Affine, AttrInt, FloorDiv, Mod
from opc.ir.expr import AttrRef, Call, Const, Expr, Select
from opc.ir.functions import FUNCTIONS
from opc.ir.precedence import PYTHON

_SUM, _PRODUCT, _UNARY, _ATOM = (*(PYTHON.strength[fn] for fn in ("add", "mul", "neg")), PYTHON.atom)


class PythonScalarText(ScalarDialect):
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

    def size_of_dim(self, name: str) -> str:
        """As `ScalarDialect.size_of_dim` says."""
        return self.dim(name)

    def points_of(self, group: str) -> str:
        """As `ScalarDialect.points_of` says."""
        return self.points(group)

    def integer_attribute(self, atom: AttrInt) -> str:
        """As `ScalarDialect.integer_attribute` says."""
        return _element(atom.name, atom.element)

    def quotient(self, atom: FloorDiv | Mod, factor: bool) -> str:
        """As `ScalarDialect.quotient` says."""
        left, right = self.index_value(atom.numerator).at(_PRODUCT), self.index_value(atom.denominator).at(_ATOM)
        return BoundText(f"{left} {'//' if isinstance(atom, FloorDiv) else '%'} {right}", _PRODUCT).at(
            _ATOM if factor else _PRODUCT
        )

    def lesser(self, left: Affine, right: Affine) -> str:
        """As `ScalarDialect.lesser` says."""
        self.uses.add("_lesser")
        return f"_lesser({self.affine(left)}, {self.affine(right)})"

    def constant(self, e: Const) -> BoundText:
        """As `ScalarDialect.constant` says."""
        text = f'float("{e.value}")' if isinstance(e.value, float) and not math.isfinite(e.value) else literal(e.value)
        return BoundText(text, _UNARY if text.startswith("-") else _ATOM)

    def string(self, value: str) -> BoundText:
        """As `ScalarDialect.string` says."""
        return BoundText(quoted(value), _ATOM)

    def attribute(self, e: AttrRef) -> BoundText:
        """As `ScalarDialect.attribute` says."""
        return BoundText(_element(e.name, e.element), _ATOM)

    def index_value(self, value: Affine) -> BoundText:
        """As `ScalarDialect.index_value` says."""
        terms = list(terms_of(value))
        strength = _SUM if len(terms) > 1 else _ATOM
        if len(terms) == 1:
            (term,) = terms
            strength = _PRODUCT if term.is_product or term.is_quotient else _UNARY if (value.constant or 0) < 0 else _ATOM
        return BoundText(self.affine(value), strength)

    def presence(self, operand: str, given: bool) -> BoundText:
        """As `ScalarDialect.presence` says."""
        text = self.present(operand)
        return BoundText(text if given else text.replace(" is not ", " is "), PYTHON.strength["ne"])

    def choice(self, e: Select) -> BoundText:
        """As `ScalarDialect.choice` says."""
        then, cond, other = (self.value(part).at(PYTHON.strength["or"]) for part in (e.then, e.cond, e.other))
        return BoundText(f"({then} if {cond} else {other})", _ATOM)

    def call(self, e: Call) -> BoundText:
        """As `ScalarDialect.call` says."""
        text, args = FUNCTIONS[e.fn].python, [self.value(a) for a in e.args]
        self.uses |= names_in_row(text)
        if e.fn not in PYTHON.strength or "(" in text:
            # A function's text may have an operator beside an argument.
            return BoundText(text.format(*(a.at(_ATOM) if "{0} " in text else a.text for a in args)), _ATOM)
        sides = PYTHON.sides(e.fn) if len(args) == 2 else (PYTHON.strength[e.fn],)
        return BoundText(text.format(*(a.at(side) for a, side in zip(args, sides))), PYTHON.strength[e.fn])


def _element(name: str, element: int) -> str:
    return name if element < 0 else f"{name}[{element}]"
