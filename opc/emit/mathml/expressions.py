"""Expressions as presentation MathML (MathML Core), which browsers draw without a script.

The text is of the typed tree, so a derived gradient has a formula as a body has. A quotient is a fraction, a power stands above,
a condition is a brace of cases. Every index begins at 0, so a sum's index has its extent alone below the sign: k < K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from html import escape

from opc.emit.scalar.affine import AffineDialect, AffineTerm, BoundText, terms_of
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.expr import (
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    Extension,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    StrConst,
    TypeIs,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.precedence import COMPARISONS, CONDITIONAL, Precedence
from opc.records import dataclass

BIG = "reduce"
"""The name that a sum over indices has beside the operators."""
MATHEMATICS = Precedence.of(
    ("or",), ("and",), ("not",), COMPARISONS, ("bit_or",), ("bit_xor",), ("bit_and",), ("shift_left", "shift_right"),
    ("add", "sub", "neg", "bit_not"), (BIG,), ("mul", "mod"), ("pow",), chained=COMPARISONS,
)  # fmt: skip
"""Mathematical notation: a sign binds as a sum does, and a sum over indices takes the products behind it."""

_SUM, _BIG, _PRODUCT, _ATOM = (*(MATHEMATICS.strength[fn] for fn in ("add", BIG, "mul")), MATHEMATICS.atom)

_SIGNS = {
    "add": "+", "sub": "−", "mul": "⋅", "neg": "−", "lt": "<", "le": "≤", "gt": ">", "ge": "≥", "eq": "=", "ne": "≠", "and": "∧",
    "or": "∨", "not": "¬", "bit_and": "&", "bit_or": "|", "bit_xor": "⊕", "shift_left": "≪", "shift_right": "≫", "bit_not": "~",
}  # fmt: skip
_FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
_NAMES = {"maximum": "max", "minimum": "min", "log": "ln", "sigmoid": "σ", "digamma": "ψ", "asin": "arcsin", "acos": "arccos"}
_NAMES |= {"atan": "arctan", "asinh": "arsinh", "acosh": "arcosh", "atanh": "artanh", "sign": "sgn", "i0": "I₀", "i1": "I₁"}
_NAMES |= {"log2": "log₂", "log10": "log₁₀"}
_REDUCTIONS = {"sum": "∑", "prod": "∏"}


_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε", "theta": "θ", "tau": "τ", "mu": "μ"}


def element(tag: str, *inner: str, **attributes: str) -> str:
    """Return an element with others inside."""
    given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>{''.join(inner)}</{tag}>"


def operator(sign: str) -> str:
    """Return an operator's sign."""
    return element("mo", escape(sign))


def name(text: str) -> str:
    """Return a name: of one letter in italics, as mathematics has it, longer ones upright."""
    return element("mi", escape(_GREEK.get(text, text)))


def row(*inner: str) -> str:
    """Return elements that stand beside each other as one."""
    return inner[0] if len(inner) == 1 else element("mrow", *inner)


def fenced(text: str, left: str = "(", right: str = ")") -> str:
    """Return something between parentheses or other fences."""
    return element("mrow", operator(left), text, operator(right))


def listed(texts: list[str]) -> str:
    """Return texts with commas between them."""
    return row(*[part for t in texts for part in (operator(","), t)][1:])


def applied(function: str, *arguments: str) -> str:
    """Return a function's name with its arguments in parentheses."""
    return element("mrow", function, operator("\N{FUNCTION APPLICATION}"), fenced(listed(list(arguments))))


@dataclass(frozen=True, slots=True)
class Bound(BoundText):
    """An element, and how strongly its outermost operator binds."""

    def at(self, strength: int) -> str:
        """Return the element, in parentheses where it binds weaker."""
        return self.text if self.strength >= strength else fenced(self.text)


class MathmlText(AffineDialect):
    """Writes expressions of one op.

    `operand` gives what an operand is called, by default its name. With `plain` subscripts of a whole group are left out: of an
    elementwise op, whose operands all have the same one. What is `small`, in a subscript, has quotients on one line.
    """

    def __init__(self, operand: Callable[[str], str] = name, plain: bool = False, small: bool = False) -> None:
        self.operand, self.plain, self.small = operand, plain, small
        self.below = self if small else MathmlText(operand, plain, small=True)

    # ---- sizes and indices -------------------------------------------------------------------------------------------

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        return number(value).text

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says."""
        match atom:
            case Index() | Dim():
                return name(atom.name)
            case GroupSize():
                return fenced(group(atom.name), "|", "|")
            case AttrInt():
                text = _attribute(atom.name, atom.element)
                if atom.text is not None:
                    text = element("mrow", text, operator("="), element("mtext", f"“{escape(' '.join(atom.text.split()))}”"))
                return fenced(text, "[", "]") if atom.flag else text
            case FloorDiv():
                return fenced(self.quotient(self.integer(atom.numerator), self.integer(atom.denominator)), "⌊", "⌋")
            case Mod():
                left, right = self.integer(atom.numerator).at(_PRODUCT), self.integer(atom.denominator).at(_ATOM)
                text = element("mrow", left, operator("mod"), right)
                return fenced(text) if factor else text
            case Minimum():
                return applied(name("min"), self.affine(atom.left), self.affine(atom.right))

    def affine(self, value: Affine) -> str:
        """Return a form as one element."""
        return element("mrow", super().affine(value)) if len(value.terms) > 1 else super().affine(value)

    def terms(self, value: Affine) -> list[AffineTerm]:
        """Return the terms, those that are subtracted last: N − i − 1."""
        return sorted(terms_of(value), key=lambda t: t.negative)

    def product(self, term: AffineTerm, factor: bool) -> str:
        """As `AffineDialect.product` says."""
        text = super().product(term, factor)
        return element("mrow", text) if term.is_product else text

    def times(self, left: str, right: str) -> str:
        """As `AffineDialect.times` says."""
        return f"{left}{operator('⋅')}{right}"

    def first(self, term: str, negative: bool) -> str:
        """As `AffineDialect.first` says."""
        return element("mrow", operator("−"), term) if negative else term

    def joined(self, total: str, term: str, negative: bool) -> str:
        """As `AffineDialect.joined` says."""
        return f"{total}{operator('−' if negative else '+')}{term}"

    def quotient(self, above: Bound, below: Bound) -> str:
        """Return a fraction."""
        if self.small:
            return row(above.at(_PRODUCT), operator("/"), below.at(_ATOM))
        return element("mfrac", above.text, below.text)

    def integer(self, value: Affine) -> Bound:
        """Return a form, and how strongly it binds."""
        terms = terms_of(value)
        strength = _SUM if len(terms) > 1 or any(t.negative or (t.literal or 0) < 0 for t in terms) else _ATOM
        if strength == _ATOM and terms and (terms[0].is_product or isinstance(value.single, Mod)):
            strength = _PRODUCT
        return Bound(self.affine(value), strength)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> Bound:
        """Return an expression as one element, and how strongly it binds.

        Raises:
            TypeError: for an expression of a lower IR.
        """
        match e:
            case Const():
                return number(e.value)
            case StrConst():
                # On one line: in Markdown, a blank one ends the block of HTML.
                return Bound(element("mtext", f"“{escape(' '.join(e.value.split()))}”"), _ATOM)
            case AttrRef():
                return Bound(_attribute(e.name, e.element), _ATOM)
            case IndexValue():
                return self.integer(e.value)
            case GroupIndex():
                return Bound(applied(name("position"), group(e.group)), _ATOM)
            case Read():
                return Bound(self._read(e), _ATOM)
            case Call():
                return self._call(e)
            case Select():
                return Bound(self._cases(e), CONDITIONAL)
            case Reduce():
                return self._reduce(e)
            case Cast():
                return Bound(applied(name(str(e.type)), self.value(e.arg).text), _ATOM)
            case Present():
                return Bound(
                    row(self.operand(e.operand), element("mtext", "\N{NO-BREAK SPACE}is given")), MATHEMATICS.strength["eq"]
                )
            case TypeIs():
                among = listed([name(str(d)) for d in e.dtypes])
                return Bound(row(name(e.variable), operator("\N{ELEMENT OF}"), fenced(among)), MATHEMATICS.strength["eq"])
            case Extension():
                raise TypeError(f"no expression of an op: {e}")

    def subscripted(self, operand: str, indices: list[str]) -> str:
        """Return an operand with its indices."""
        text = self.operand(operand)
        return element("msub", text, listed(indices)) if indices else text

    def index(self, i: str | Affine | GroupRef | Expr) -> str:
        """Return one index of a subscript."""
        match i:
            case str():
                return name(i)
            case Affine():
                return self.below.affine(i)
            case GroupRef():
                return group(i.name)
            case _:
                return self.below.value(i).text

    def indices(self, given: tuple[str | Affine | GroupRef | Expr, ...]) -> list[str]:
        """Return the indices of a subscript."""
        return [] if self.plain else [self.index(i) for i in given]

    def _read(self, e: Read) -> str:
        text = self.subscripted(e.operand, self.indices(e.indices))
        return text if e.pad is None else applied(element("msub", name("pad"), self.value(e.pad).text), text)

    def _call(self, e: Call) -> Bound:
        fn, args = FUNCTIONS[e.fn], [self.value(a) for a in e.args]
        texts = [a.text for a in args]
        match e.fn:
            case "div":
                return Bound(self.quotient(*args), _PRODUCT if self.small else _ATOM)
            case "floordiv":
                return Bound(fenced(self.quotient(*args), "⌊", "⌋"), _ATOM)
            case "pow":
                return Bound(element("msup", args[0].at(_ATOM), texts[1]), MATHEMATICS.strength["pow"])
            case "exp":
                # An exponent of several lines would be too small to read.
                is_short = all(tag not in texts[0] for tag in ("<mfrac", "<mtable", "<munder", "<msup"))
                if is_short:
                    return Bound(element("msup", name("e"), texts[0]), MATHEMATICS.strength["pow"])
                return Bound(applied(name("exp"), texts[0]), _ATOM)
            case "exp2":
                return Bound(element("msup", element("mn", "2"), texts[0]), MATHEMATICS.strength["pow"])
            case "sqrt":
                return Bound(element("msqrt", texts[0]), _ATOM)
            case "rsqrt":
                return Bound(element("mfrac", element("mn", "1"), element("msqrt", texts[0])), _ATOM)
            case "cbrt":
                return Bound(element("mroot", texts[0], element("mn", "3")), _ATOM)
        if e.fn in _FENCES:
            return Bound(fenced(texts[0], *_FENCES[e.fn]), _ATOM)
        if fn.symbol is None:
            return Bound(applied(name(_NAMES.get(e.fn, e.fn)), *texts), _ATOM)
        sign, own = operator(_SIGNS.get(e.fn, e.fn)), MATHEMATICS.strength[e.fn]
        if fn.arity == 1:
            return Bound(row(sign, args[0].at(own + 1)), own)
        left, right = MATHEMATICS.sides(e.fn)
        # A sign in the middle of a product or sum needs parentheses, and of `mod` it is not said how it groups.
        left = _ATOM if e.fn == "mod" else left
        return Bound(element("mrow", args[0].at(left), sign, args[1].at(right)), own)

    def _cases(self, e: Select) -> str:
        rows: list[str] = []
        rest: Expr = e
        while isinstance(rest, Select):
            rows.append(_case(self.value(rest.then).text, element("mtext", "if\N{NO-BREAK SPACE}"), self.value(rest.cond).text))
            rest = rest.other
        rows.append(_case(self.value(rest).text, element("mtext", "otherwise")))
        return element("mrow", operator("{"), element("mtable", *rows, **{"class": "cases"}))

    def _reduce(self, e: Reduce) -> Bound:
        below = listed([self._axis(a) for a in e.axes])
        if e.kind in _REDUCTIONS:
            sign = element("munder", element("mo", _REDUCTIONS[e.kind], movablelimits="false"), below)
            return Bound(element("mrow", sign, self.value(e.body).at(_BIG)), _BIG)
        sign = element("munder", element("mo", e.kind, movablelimits="false"), below)
        return Bound(applied(sign, self.value(e.body).text), _ATOM)

    def _axis(self, axis: ReduceAxis) -> str:
        match axis:
            case Axis():
                return element("mrow", name(axis.index), operator("<"), self.below.affine(axis.extent))
            case BroadcastAxis():
                return element("mrow", element("mtext", "broadcast\N{NO-BREAK SPACE}"), self.operand(axis.operand))
            case _:
                return group(axis.name)


def number(value: int | float | bool) -> Bound:
    """Return a literal; some well-known constants as what they are."""
    if isinstance(value, bool):
        return Bound(element("mtext", str(value).lower()), _ATOM)
    if value < 0 or (value == 0 and math.copysign(1, value) < 0):
        return Bound(element("mrow", operator("−"), number(-value).text), _SUM)
    if isinstance(value, float) and not math.isfinite(value):
        return Bound(element("mi", "NaN") if math.isnan(value) else element("mn", "∞"), _ATOM)
    if isinstance(value, float) and value in CONSTANTS:
        return Bound(CONSTANTS[value], _ATOM)
    digits, _, exponent = repr(value).partition("e")
    text = element("mn", digits.removesuffix(".0"))
    if not exponent:
        return Bound(text, _ATOM)
    power = element("msup", element("mn", "10"), number(int(exponent)).text)
    return Bound(power if digits == "1" else element("mrow", text, operator("⋅"), power), _PRODUCT)


def group(text: str) -> str:
    """Return a group of axes: dots, or its name in bold."""
    return operator("…") if text == "..." else element("mi", escape(text), style="font-weight: bold")


def _attribute(text: str, place: int) -> str:
    own = name(text)
    return own if place < 0 else element("msub", own, element("mn", str(place)))


def _case(*parts: str) -> str:
    value, *condition = parts
    return element("mtr", element("mtd", value), element("mtd", *condition))


def _fraction(above: str, below: str) -> str:
    return element("mfrac", above, below)


_ONE, _TWO, _PI = element("mn", "1"), element("mn", "2"), name("π")
_ROOT_OF_TWO_PI = element("msqrt", element("mrow", _TWO, operator("⋅"), _PI))
CONSTANTS: Mapping[float, str] = {
    math.pi: _PI,
    math.sqrt(0.5): _fraction(_ONE, element("msqrt", _TWO)),
    math.sqrt(2 / math.pi): element("msqrt", _fraction(_TWO, _PI)),
    2 / math.sqrt(math.pi): _fraction(_TWO, element("msqrt", _PI)),
    1 / math.sqrt(2 * math.pi): _fraction(_ONE, _ROOT_OF_TWO_PI),
    math.log(2): element("mrow", name("ln"), operator("\N{FUNCTION APPLICATION}"), _TWO),
}
"""Numbers that readers know by their formulas, as doubles; a literal with fewer digits is another number."""
