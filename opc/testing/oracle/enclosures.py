"""What every function of the table may return on a set of arguments: one rule a function, each by its monotonicity.

The rules know the mathematics only: error bounds in units in the last place come from `opc.ir.functions`, so the oracle stays
independent of how a target computes a function. Ends are evaluated in a type wider than the one under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.bounds import (
    Array,
    Bounds,
    Precision,
    add,
    corners,
    divide,
    has_minus_zero,
    has_plus_zero,
    holds,
    hull,
    multiply,
    narrow,
    negate,
    spread,
)

_INF = np.inf


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a unary function behaves: its values, and where it is defined; it rises or falls over all of that domain.

    But an `even` function falls up to 0 and rises after it. `own` is the error of `value` in roundoffs of the wide type, taken as
    4 units in the last place, the bound glibc's manual and NumPy's own tests keep to.
    """

    value: Callable[[Array], Array]
    low: float = -_INF
    high: float = _INF
    even: bool = False
    exact: bool = False
    own: float = 8.0


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + e), e / (1 + e)))


def _scalar(fn: Callable[[float], float]) -> Callable[[Array], Array]:
    vector = np.vectorize(fn, otypes=[np.float64])

    def apply(x: Array) -> Array:
        return np.asarray(vector(x.astype(np.float64))).astype(x.dtype) if x.size else x

    return apply


# math.erf and math.erfc work in double, within 1 and 5 units in the last place (glibc manual); in roundoffs of long double:
_ERF_OWN = 2 * 1 * float(np.finfo(np.float64).eps / np.finfo(np.longdouble).eps)
_ERFC_OWN = 5 * _ERF_OWN

_RULES: Mapping[str, _Rule] = {
    "sqrt": _Rule(np.sqrt, low=0.0, own=1.0),
    "rsqrt": _Rule(lambda x: 1 / np.sqrt(x), low=0.0, own=3.0),
    "exp": _Rule(np.exp),
    "expm1": _Rule(np.expm1),
    "exp2": _Rule(np.exp2),
    "log": _Rule(np.log, low=0.0),
    "log1p": _Rule(np.log1p, low=-1.0),
    "log2": _Rule(np.log2, low=0.0),
    "log10": _Rule(np.log10, low=0.0),
    "asin": _Rule(np.arcsin, low=-1.0, high=1.0),
    "acos": _Rule(np.arccos, low=-1.0, high=1.0),
    "atan": _Rule(np.arctan),
    "sinh": _Rule(np.sinh),
    "cosh": _Rule(np.cosh, even=True),
    "tanh": _Rule(np.tanh),
    "asinh": _Rule(np.arcsinh),
    "acosh": _Rule(np.arccosh, low=1.0),
    "atanh": _Rule(np.arctanh, low=-1.0, high=1.0),
    "erf": _Rule(_scalar(math.erf), own=_ERF_OWN),
    "erfc": _Rule(_scalar(math.erfc), own=_ERFC_OWN),
    "sigmoid": _Rule(_sigmoid, own=16.0),
    "abs": _Rule(np.abs, even=True, exact=True),
    "sign": _Rule(np.sign, exact=True),
    "floor": _Rule(np.floor, exact=True),
    "ceil": _Rule(np.ceil, exact=True),
    "trunc": _Rule(np.trunc, exact=True),
    "round": _Rule(np.rint, exact=True),
}


def unary(name: str, a: Bounds, p: Precision) -> Bounds:
    """Return what the function `name` of one floating argument may return on `a`.

    Raises:
        KeyError: when the table has a function this module does not know.
    """
    if name == "neg":
        return negate(a)
    if name == "stop_gradient":
        return a
    if name in ("sin", "cos", "tan"):
        return _periodic(name, a, p)
    rule = _RULES[name]
    nan = a.nan | (~a.empty & ((a.low < rule.low) | (a.high > rule.high)))
    gone = a.empty | (a.high < rule.low) | (a.low > rule.high)
    # `where` and not `maximum`: a zero end of the domain keeps its sign, and a set from below zero holds -0.
    low = np.where(a.low < rule.low, rule.low if rule.low else -0.0, a.low).astype(p.wide)
    high = low if a.high is a.low else np.where(a.high > rule.high, rule.high, a.high).astype(p.wide)
    ends = [rule.value(low)] if high is low else [rule.value(low), rule.value(high)]
    if rule.even:
        ends = [*ends, np.where((a.low <= 0) & (a.high >= 0), rule.value(np.zeros_like(low)), ends[0])]
    if name == "rsqrt":
        ends = [*ends, np.where(has_plus_zero(a), p.wide(_INF), ends[0])]
    least, most = hull(ends)
    if not rule.exact:
        least, most = spread(least, most, p, FUNCTIONS[name].ulp, rule.own)
    return narrow(np.where(gone, _INF, least), np.where(gone, -_INF, most), nan)


def _periodic(name: str, a: Bounds, p: Precision) -> Bounds:
    """sin, cos and tan: the ends, and the extremes (poles of tan) that lie between them."""
    fn = {"sin": np.sin, "cos": np.cos, "tan": np.tan}[name]
    infinite = np.isinf(a.low) | np.isinf(a.high)
    nan = a.nan | (~a.empty & infinite)
    gone = a.empty | (np.isinf(a.low) & (a.low == a.high))
    low = np.where(infinite, 0, a.low).astype(p.wide)
    high = low if a.high is a.low else np.where(infinite, 0, a.high).astype(p.wide)
    ends = [fn(low)] if high is low else [fn(low), fn(high)]
    least, most = spread(*hull(ends), p, FUNCTIONS[name].ulp, 8.0)
    if high is not low:
        first = {"sin": 0.5, "cos": 0.0, "tan": 0.5}[name]
        # Beyond 2^40 the position of an extreme is not known well enough any more: all values are possible.
        vague = (a.low != a.high) & ((np.abs(low) > 2.0**40) | (np.abs(high) > 2.0**40) | infinite)
        top = vague | _reaches(low, high, first, 2.0 if name != "tan" else 1.0)
        bottom = vague | _reaches(low, high, first + 1, 2.0 if name != "tan" else 1.0)
        reach = np.asarray(_INF if name == "tan" else 1 + 2 * FUNCTIONS[name].ulp * p.unit, p.wide)
        least, most = np.where(bottom, -reach, least), np.where(top, reach, most)
    return narrow(np.where(gone, _INF, least), np.where(gone, -_INF, most), nan)


def _reaches(low: Array, high: Array, first: float, period: float) -> Array:
    """Where low <= (first + k * period) * pi <= high for an integer k; a hair beyond the ends counts as inside."""
    hair = 2.0**-50 * (1 + np.maximum(np.abs(low), np.abs(high)))
    k = np.ceil(((low - hair) / np.pi - first) / period)
    return np.asarray((first + k * period) * np.pi <= high + hair)


def power(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """a ** b as C's pow: monotone in each argument for a positive base, by parity of the exponent for a negative one."""
    negative, across = (a.low < 0) & ~a.empty, (a.low <= 0) & (a.high >= 0)
    whole = (b.low == b.high) & (np.floor(b.low) == b.low)
    odd = whole & (np.mod(b.low, 2) == 1)
    # The powers of the magnitudes of a.
    nearest = np.where(across, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    size = Bounds(nearest, np.maximum(np.abs(a.low), np.abs(a.high)), a.nan)
    least, most = hull(corners(np.power, size, b, p))
    # An odd power keeps the order and the sign, and goes to both infinities where a negative one meets zero.
    ends = corners(np.power, a, b, p)
    pole = across & (b.low < 0)
    ends += [np.where(pole, p.wide(_INF), ends[0]), np.where(pole, p.wide(-_INF), ends[0])]
    low_odd, high_odd = hull(ends)
    # Of a negative base and an exponent that may be any, the power may have either sign, or none.
    signed = negative | has_minus_zero(a)
    unsure = signed & ~whole
    low = np.where(signed & odd, low_odd, np.where(unsure, -most, least))
    high = np.where(signed & odd, high_odd, most)
    # A finite negative base has no power with an exponent that is no integer; infinite exponents count as even integers.
    fraction = (b.low != b.high) | (np.isfinite(b.low) & ~whole)
    nan = a.nan | b.nan | (negative & (a.high > -_INF) & fraction & ~b.empty)
    low, high = spread(low, high, p, FUNCTIONS["pow"].ulp, 8.0)
    # pow(1, y) and pow(x, 0) are 1 even for NaN.
    one = holds(b, 0.0) | holds(a, 1.0)
    surely = ((b.low == 0) & (b.high == 0) & ~b.nan) | ((a.low == 1) & (a.high == 1) & ~a.nan)
    gone = (a.empty | b.empty) & ~one
    low = np.where(surely, 1, np.where(one, np.minimum(low, 1), low))
    high = np.where(surely, 1, np.where(one, np.maximum(high, 1), high))
    return narrow(np.where(gone, _INF, low), np.where(gone, -_INF, high), nan & ~surely)


def maximum(a: Bounds, b: Bounds) -> Bounds:
    """The greater of two, NaN where either is; exact. Of two zeros either sign may come."""
    gone = a.empty | b.empty
    low, high = np.maximum(a.low, b.low), np.maximum(a.high, b.high)
    low = np.where((low == 0) & (has_minus_zero(a) | has_minus_zero(b)), -0.0, low)
    high = np.where((high == 0) & (has_plus_zero(a) | has_plus_zero(b)), 0.0, high)
    return Bounds(np.where(gone, _INF, low), np.where(gone, -_INF, high), a.nan | b.nan)


def minimum(a: Bounds, b: Bounds) -> Bounds:
    """The lesser of two, as `maximum`."""
    return negate(maximum(negate(a), negate(b)))


def floor_divide(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """Floor of the quotient; near an integer either neighbour, so the exact and the rounded quotient both fit."""
    q = divide(a, b, p)
    return Bounds(np.floor(q.low), np.floor(q.high), q.nan)


def modulo(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """a - floor(a / b) * b, with the sign of b: the exact remainder of points, else anything between 0 and b."""
    low, high = hull([np.mod(a.low.astype(p.wide), b.low.astype(p.wide))])
    low, high = spread(low, high, p, 0.5)
    certain = (a.low == a.high) & (b.low == b.high)
    general = add(a, negate(multiply(floor_divide(a, b, p), b, p)), p)
    zero_low, zero_high = np.minimum(b.low, 0), np.maximum(b.high, 0)
    general_low, general_high = np.maximum(general.low, zero_low), np.minimum(general.high, zero_high)
    nan = a.nan | b.nan | (~a.empty & ~b.empty & (holds(b, 0.0) | np.isinf(a.low) | np.isinf(a.high)))
    gone = a.empty | b.empty | (certain & (low > high))
    low = np.where(certain, low, np.where(general_low <= general_high, general_low, zero_low))
    high = np.where(certain, high, np.where(general_low <= general_high, general_high, zero_high))
    # Whether an exact multiple leaves +0 or -0 is left open.
    low, high = np.where(low == 0, -0.0, low), np.where(high == 0, 0.0, high)
    return narrow(np.where(gone, _INF, low), np.where(gone, -_INF, high), nan)


def binary(name: str, a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """Return what the floating operator or function `name` may return on `a` and `b`.

    Raises:
        KeyError: when the table has a function this module does not know.
    """
    match name:
        case "add":
            return add(a, b, p)
        case "sub":
            return add(a, negate(b), p)
        case "mul":
            return multiply(a, b, p)
        case "div":
            return divide(a, b, p)
        case "pow":
            return power(a, b, p)
        case "maximum":
            return maximum(a, b)
        case "minimum":
            return minimum(a, b)
        case "floordiv":
            return floor_divide(a, b, p)
        case "mod":
            return modulo(a, b, p)
        case _:
            raise KeyError(name)


def compare(name: str, a: Bounds, b: Bounds) -> Bounds:
    """Return (surely true, maybe true) of a comparison; with NaN every comparison but `!=` is false."""
    solid = ~(a.nan | b.nan)
    some = ~(a.empty | b.empty)
    match name:
        case "lt":
            sure, maybe = a.high < b.low, a.low < b.high
        case "le":
            sure, maybe = a.high <= b.low, a.low <= b.high
        case "gt":
            sure, maybe = a.low > b.high, a.high > b.low
        case "ge":
            sure, maybe = a.low >= b.high, a.high >= b.low
        case "eq" | "ne":
            sure = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
            maybe = (a.low <= b.high) & (b.low <= a.high)
        case _:
            raise KeyError(name)
    sure, maybe = np.asarray(sure & solid & some), np.asarray(maybe & some)
    if name == "ne":
        sure, maybe = ~maybe, ~sure
    return Bounds(sure, maybe, np.zeros(sure.shape, np.bool_))


def classify(name: str, a: Bounds) -> Bounds:
    """Return (surely true, maybe true) of isnan and isinf."""
    if name == "isnan":
        sure, maybe = a.empty, a.nan
    else:
        sure = np.isinf(a.low) & (a.low == a.high) & ~a.nan
        maybe = (np.isinf(a.low) | np.isinf(a.high)) & ~a.empty
    return Bounds(np.asarray(sure), np.asarray(maybe), np.zeros(np.shape(sure), np.bool_))
