"""Arithmetic that simplifies as it builds; what derivatives are assembled with.

The rules are those of real arithmetic, applied to *derivative* factors only: a product with a symbolic zero is zero, `a * b / b`
is `a`, and products move inside a conditional, so that only the chosen side passes a gradient on. They may change rounding and
the sign of a zero, so they are not applied to a user's own expressions; `opc.transform.simplify` holds the rules that are exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

from opc.analysis.shapes.scalar import function
from opc.ir.dtypes import Weak, is_floating
from opc.ir.expr import Call, Const, Expr, Select, size
from opc.ir.functions import FUNCTIONS
from opc.transform.scalar import (
    COMPARES,
    ONE,
    ZERO,
    any_reads,
    compare,
    conjunction,
    is_leaf,
    is_number,
    is_zero,
    number,
    raw,
    select,
)


def call(fn: str, *args: Expr) -> Expr:
    """Return the call of a function, simplified."""
    rule = _RULES.get(fn)
    return rule(*args) if rule else _folded(fn, args)


def _folded(fn: str, args: tuple[Expr, ...]) -> Expr:
    """Evaluate functions of literals that derivatives hold, such as `log(2.0)`; weak arithmetic is float64 arithmetic."""
    if FUNCTIONS[fn].types == "float" and len(args) == 1 and isinstance(args[0], Const) and isinstance(args[0].type, Weak):
        value = function(fn)(float(args[0].value))
        if isinstance(value, float) and math.isfinite(value):
            return number(value)
    return raw(fn, *args)


def negated(e: Expr) -> Expr | None:
    """Return `-e` when `e` is visibly negative all over (so that a sum can be written as a difference), else None."""
    match e:
        case Const(value=value) if not isinstance(value, bool) and value < 0:
            return Const(-value, e.type)
        case Call(fn="neg"):
            return e.args[0]
        case Select():
            then, other = (ZERO if is_zero(side) else negated(side) for side in (e.then, e.other))
            if then is None or other is None or (is_zero(e.then) and is_zero(e.other)):
                return None
            return select(e.cond, then, other)
        case _:
            return None


def neg(a: Expr) -> Expr:
    """Return `-a`."""
    if is_zero(a):
        return ZERO
    if isinstance(a, Const):
        return Const(-a.value, a.type)
    positive = negated(a)
    if positive is not None:
        return positive
    match a:
        case Call(fn="sub", args=(left, right)):
            return sub(right, left)
        case Select() if is_zero(a.then) or is_zero(a.other):
            return select(a.cond, neg(a.then), neg(a.other))
        case _:
            return raw("neg", a)


def add(a: Expr, b: Expr) -> Expr:
    """Return `a + b`; conditionals under one condition are joined, equal terms collected, negative ones subtracted."""
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if isinstance(a, Select) and isinstance(b, Select) and a.cond == b.cond:
        return select(a.cond, add(a.then, b.then), add(a.other, b.other))
    total = _Sum()
    total.add(a)
    total.add(b)
    return total.build()


def sub(a: Expr, b: Expr) -> Expr:
    """Return `a - b`, simplified as a sum."""
    if is_zero(a):
        return neg(b)
    if isinstance(a, Select) and isinstance(b, Select) and a.cond == b.cond:
        return select(a.cond, sub(a.then, b.then), sub(a.other, b.other))
    total = _Sum()
    total.add(a)
    total.add(b, -1)
    return total.build()


def total(parts: Iterable[Expr]) -> Expr:
    """Return the sum of expressions, 0 for none: what `add` makes of one after the other, in a time linear in their number."""
    found: Expr = ZERO
    terms: _Sum | None = None
    for part in parts:
        if terms is not None and terms.is_open_to(part):
            terms.add(part)
            terms.settle()
            continue
        before = found if terms is None else terms.build()
        terms = None
        found = add(before, part)
        if not is_zero(before) and isinstance(found, Call) and found.fn in ("add", "sub"):
            terms = _Sum()
            terms.add(found)
    return found if terms is None else terms.build()


class _Sum:
    """A sum of terms with literal coefficients; building it has merged terms that differ by their coefficient only."""

    def __init__(self) -> None:
        # By what they multiply and divide, in any order. A derivative may have as many terms as its op has statements.
        self.terms: dict[object, _Quotient] = {}

    def add(self, e: Expr, sign: int = 1) -> None:
        """Take in `e`, or `-e` when `sign` is -1."""
        match e:
            case Call(fn="add", args=(x, y)):
                self.add(x, sign)
                self.add(y, sign)
            case Call(fn="sub", args=(x, y)):
                self.add(x, sign)
                self.add(y, -sign)
            case Call(fn="neg", args=(x,)):
                self.add(x, -sign)
            case Select() if (positive := negated(e)) is not None:
                self.add(positive, -sign)
            case _:
                term = _Quotient()
                term.multiply(e)
                term.coefficient = sign * term.coefficient
                self._merge(term)

    def _merge(self, term: _Quotient) -> None:
        key = frozenset(Counter(term.over).items()), frozenset(Counter(term.under).items())
        known = self.terms.setdefault(key, term)
        if known is not term:
            known.coefficient = known.coefficient + term.coefficient

    def is_open_to(self, e: Expr) -> bool:
        """Whether `e` may be added without building first: what would be built is a sum of one floating type, without casts."""
        kinds = {e.type, *(f.type for t in self.terms.values() for f in (*t.over, *t.under)[:1])}
        return len(self.terms) > 1 and not is_zero(e) and len(kinds) == 1 and is_floating(e.type)

    def settle(self) -> None:
        """Put the terms in the order in which what is built has them."""
        first = next((key for key, t in self.terms.items() if t.coefficient > 0), None)
        kept = {key: t for key, t in self.terms.items() if t.coefficient != 0 and key != first}
        self.terms = kept if first is None else {first: self.terms[first], **kept}

    def build(self) -> Expr:
        """Return the expression: a positive term first, the others added or subtracted in order."""
        terms = [t for t in self.terms.values() if t.coefficient != 0]
        first = next((t for t in terms if t.coefficient > 0), None)
        if first is None:
            return neg(self._build(terms, -1)) if terms else ZERO
        terms.remove(first)
        return self._build([first, *terms], 1)

    def _build(self, terms: list[_Quotient], sign: int) -> Expr:
        total: Expr | None = None
        for t in terms:
            negative = sign * t.coefficient < 0
            t.coefficient = abs(t.coefficient)
            e = t.build()
            total = e if total is None else raw("sub" if negative else "add", total, e)
        return ZERO if total is None else total


def mul(a: Expr, b: Expr) -> Expr:
    """Return `a * b`, with conditionals that stop a gradient outermost, the sign and the literal in front, and one quotient."""
    if is_zero(a) or is_zero(b):
        return ZERO
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    # A condition with a zero side guards the whole product; the guard of the second factor (the adjoint) goes outermost.
    if isinstance(b, Select) and _pushes(b, a):
        return select(b.cond, mul(a, b.then), mul(a, b.other))
    if isinstance(a, Select) and _pushes(a, b):
        return select(a.cond, mul(a.then, b), mul(a.other, b))
    quotient = _Quotient()
    quotient.multiply(a)
    quotient.multiply(b)
    return quotient.build()


class _Quotient:
    """A product of factors over a product of factors, times a number; building it cancels equal factors."""

    def __init__(self) -> None:
        self.coefficient: int | float = 1
        self.over: list[Expr] = []
        self.under: list[Expr] = []

    def multiply(self, e: Expr) -> None:
        """Take in a factor."""
        match e:
            case Const(type=Weak.INT | Weak.FLOAT):
                self.coefficient = self.coefficient * e.value
            case Call(fn="neg", args=(x,)):
                self.coefficient = -self.coefficient
                self.multiply(x)
            case Call(fn="mul", args=(x, y)):
                self.multiply(x)
                self.multiply(y)
            case Call(fn="div", args=(x, y)):
                self.multiply(x)
                self.divide(y)
            case _ if e in self.under:
                self.under.remove(e)
            case _:
                self.over.append(e)

    def divide(self, e: Expr) -> None:
        """Take in a divisor."""
        match e:
            case Call(fn="neg", args=(x,)):
                self.coefficient = -self.coefficient
                self.divide(x)
            case Call(fn="mul", args=(x, y)):
                self.divide(x)
                self.divide(y)
            case Call(fn="div", args=(x, y)):
                self.divide(x)
                self.multiply(y)
            case _ if e in self.over:
                self.over.remove(e)
            case _:
                self.under.append(e)

    def build(self) -> Expr:
        """Return the expression: the literal first, then factors in order, then divisions."""
        if self.coefficient == 0:
            return ZERO
        size = abs(self.coefficient)
        factors = list(self.over) if size == 1 and self.over else [number(size), *self.over]
        total = factors[0]
        for f in factors[1:]:
            total = raw("mul", total, f)
        for d in self.under:
            total = raw("div", total, d)
        if self.coefficient > 0:
            return total
        return Const(-total.value, total.type) if isinstance(total, Const) else raw("neg", total)


def _pushes(s: Select, factor: Expr) -> bool:
    """Whether a product with conditional `s` is better written inside it: where a side vanishes, or little is written twice."""
    if is_zero(s.then) or is_zero(s.other):
        return True
    return is_leaf(factor) or (size(factor) <= 6 and (_simplifies(s) or not any_reads(s.cond)))


def _simplifies(s: Select) -> bool:
    """Whether a side of `s` makes a product shorter."""
    sides = (s.then, s.other)
    return any(is_number(side, v) for side in sides for v in (0, 1, -1)) or any(
        isinstance(side, Select) and _simplifies(side) for side in sides
    )


def div(a: Expr, b: Expr) -> Expr:
    """Return `a / b`; factors on both sides cancel."""
    if is_zero(a):
        return ZERO
    if is_number(b, 1):
        return a
    if isinstance(a, Select) and _pushes(a, b):
        return select(a.cond, div(a.then, b), div(a.other, b))
    if isinstance(a, Const) and isinstance(b, Const) and b.value != 0:
        return number(a.value / b.value)
    quotient = _Quotient()
    quotient.multiply(a)
    quotient.divide(b)
    return quotient.build()


def product_factors(e: Expr) -> list[Expr]:
    """Return the factors of a product of calls of `mul`, in order."""
    if isinstance(e, Call) and e.fn == "mul":
        return [*product_factors(e.args[0]), *product_factors(e.args[1])]
    return [e]


def product(factors: Iterable[Expr]) -> Expr:
    """Return the product of expressions, 1 for none."""
    total: Expr = ONE
    for f in factors:
        total = mul(total, f)
    return total


def power(a: Expr, b: Expr) -> Expr:
    """Return `a ** b`; exponents 0 and 1 vanish, and a square of something cheap is a product."""
    if is_number(b, 0):
        return ONE
    if is_number(b, 1):
        return a
    if is_number(b, 2) and is_leaf(a):
        return mul(a, a)
    return raw("pow", a, b)


_RULES: dict[str, Callable[..., Expr]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "neg": neg,
    "pow": power,
    "and": conjunction,
    **{fn: (lambda a, b, fn=fn: compare(fn, a, b)) for fn in COMPARES},
}
