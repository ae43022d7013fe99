"""What every function of the table may return on a set of arguments, by what its row says of its course.

The value is the row's NumPy text, in a type wider than the one under test where it can be. Between turns and poles the extreme
values are those at the ends of a set; elsewhere the derivative bounds how far they are from the value in the middle. Operators
have rules of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from opc.analysis.elaborate.typing import derivative_template
from opc.emit.numpy import helpers
from opc.ir import scalar_functions
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Const, Expr, Read, Select
from opc.ir.function import REALS, Function
from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.arithmetic import add, corners, divide, multiply, negate
from opc.testing.oracle.bounds import (
    UNKNOWN,
    Array,
    Bounds,
    Precision,
    between,
    choose,
    exact,
    has_minus_zero,
    has_plus_zero,
    holds,
    hull,
    some,
)
from opc.testing.oracle.rounding import narrow, spread

_INF = np.inf
_DEPTH = 2
"""How many orders of derivatives are bounded on a set; those beyond may be anything in their range."""


def unary(name: str, a: Bounds, p: Precision) -> Bounds:
    """Return what the function `name` of one floating argument may return on `a`."""
    return _function(FUNCTIONS[name], (a,), p)


def _function(row: Function, sets: tuple[Bounds, ...], p: Precision, depth: int = 0) -> Bounds:
    """Return what a function may return on sets of arguments, one an argument."""
    shape = np.broadcast_shapes(*(s.low.shape for s in sets))
    sets = tuple(s if s.low.shape == shape else s.map(lambda v: np.broadcast_to(v, shape)) for s in sets)
    nan = np.logical_or.reduce([s.nan for s in sets])
    if row.domain != REALS:
        nan = nan | (~sets[0].empty & ((sets[0].low < row.domain[0]) | (sets[0].high > row.domain[1])))
        sets = (_inside(sets[0], row.domain),)
    value = numpy_function(row.numpy)
    # The ends of a set without numbers are NaN, and so is mostly what comes of them: hypot is infinite beside an infinity.
    gone = [s.empty for s in sets]
    lows = [np.where(g, np.nan, s.low).astype(p.wide) for s, g in zip(sets, gone)]
    points = all(s.high is s.low for s in sets)
    highs = lows if points else [np.where(g, np.nan, s.high).astype(p.wide) for s, g in zip(sets, gone)]
    tuples = [lows] if points else list(itertools.product(*zip(lows, highs)))
    if len(sets) > 1 and any(s.nan.any() for s in sets):
        lost = [[*ends, np.where(s.nan, np.nan, ends[0])] for s, *ends in zip(sets, lows, highs)]
        tuples = list(itertools.product(*lost))
    ends = [np.asarray(value(*ends)) for ends in tuples]
    # A function may have no number at an infinite end, or at a pole.
    own_nan = [np.isnan(v) & ~np.logical_or.reduce([np.isnan(x) for x in at]) for v, at in zip(ends, tuples)]
    nan = np.logical_or.reduce([nan, *own_nan])
    if not points:
        ends += _at_turns(row, sets, lows, highs, value)
    least, most = hull(ends)
    if not points:
        least, most, at_pole = _between(row, sets, (least, most), value, p, depth)
        nan = nan | at_pole
    if not row.exact:
        least, most = _rounded(row, least, most, p)
    return narrow(least, most, nan)


def _inside(a: Bounds, domain: tuple[float, float]) -> Bounds:
    """Return the part of a set in a domain."""
    low, high = domain
    outside = (a.high < low) | (a.low > high)
    # `where` and not `maximum`: a zero end of the domain keeps its sign, and a set from below zero holds -0.
    least = np.where(outside, _INF, np.where(a.low < low, low if low else -0.0, a.low))
    if a.high is a.low:
        return a if not outside.any() else Bounds(np.where(outside, _INF, a.low), np.where(outside, -_INF, a.low), a.nan)
    return Bounds(least, np.where(outside, -_INF, np.where(a.high > high, high, a.high)), a.nan)


@cache
def numpy_function(text: str) -> Callable[..., Array]:
    """Return a NumPy text of the table as a function."""
    names = {"np": np, "math": math, **vars(scalar_functions), **vars(helpers)}
    made: Callable[..., Array] = eval(f"lambda x, y=None: {text.format('x', 'y')}", names)
    return made


def _rounded(row: Function, least: Array, most: Array, p: Precision) -> tuple[Array, Array]:
    """Return ends moved outward by the error of a kernel and that of the value itself."""
    own = 2 * row.numpy_ulp
    if row.numpy_in_double:
        own *= float(np.finfo(np.float64).eps / np.finfo(p.wide).eps)
    low, high = spread(least, most, p, row.ulp, own)
    if row.absolute:
        more = p.wide(row.absolute * 2 * p.unit)
        low, high = low - more, high + more
    return low, high


def _at_turns(
    row: Function, sets: Sequence[Bounds], lows: Sequence[Array], highs: Sequence[Array], value: Callable[..., Array]
) -> list[Array]:
    """Return the values at the turns that lie in the sets, and at other ends; of a turn at 0, at zeros of both signs."""
    if not row.turns:
        return []
    places = []
    for s, low, high in zip(sets, lows, highs):
        own = [low, high]
        for turn in row.turns:
            inside = [(holds(s, turn), turn)] if turn else [(has_plus_zero(s), 0.0), (has_minus_zero(s), -0.0)]
            own += [np.where(where, low.dtype.type(at), low) for where, at in inside]
        places.append(own)
    return [np.asarray(value(*at)) for at in itertools.product(*places)]


def _between(
    row: Function, sets: Sequence[Bounds], ends: tuple[Array, Array], value: Callable[..., Array], p: Precision, depth: int
) -> tuple[Array, Array, Array]:
    """Return the least and greatest value on sets, whose ends and turns have `ends`, and where a pole may have no number."""
    none = np.zeros(ends[0].shape, np.bool_)
    spans = np.logical_or.reduce([s.low < s.high for s in sets])
    crossed = none
    if row.poles is not None:
        count = numpy_function(row.poles)
        hairs = [2.0**-50 * np.abs(v) + p.wide(5e-324) for v in (sets[0].low, sets[0].high)]
        crossed = spans & ~(count(sets[0].low - hairs[0]) == count(sets[0].high + hairs[1]))
    steady = none
    if row.steady is not None:
        steady = np.logical_and.reduce([(s.low >= row.steady[0]) & (s.high <= row.steady[1]) for s in sets])
    unsteady = spans & ~steady & ~crossed
    least, most = ends
    if unsteady.any():
        low, high = _mean_value(row, sets, ends, value, p, depth)
        least, most = np.where(unsteady, low, least), np.where(unsteady, high, most)
    if crossed.any():
        least, most = np.where(crossed, p.wide(row.range[0]), least), np.where(crossed, p.wide(row.range[1]), most)
    return least, most, crossed


def _mean_value(
    row: Function, sets: Sequence[Bounds], ends: tuple[Array, Array], value: Callable[..., Array], p: Precision, depth: int
) -> tuple[Array, Array]:
    """Return the least and greatest value on sets by the derivatives there: where all keep their signs, those at the corners."""
    shape = ends[0].shape
    low, high = (np.full(shape, p.wide(v)) for v in row.range)
    if row.derivative is None or depth >= _DEPTH:
        return low, high
    result = between(low.astype(np.float64), high.astype(np.float64))
    names = dict(zip("xy", sets)) | {"r": result}
    slopes = [_evaluate(e, names, p, depth + 1) for e in _derivatives(row.derivative)]
    # The middle of a set that is infinite is any number in it.
    middles = [np.clip(0.5 * np.clip(s.low, -1e300, 1e300) + 0.5 * np.clip(s.high, -1e300, 1e300), s.low, s.high) for s in sets]
    middle = np.asarray(value(*(m.astype(p.wide) for m in middles)))
    reach, monotone = np.zeros(shape, p.wide), np.ones(shape, np.bool_)
    for s, slope, at in zip(sets, slopes, middles):
        steepest = np.maximum(np.abs(slope.low), np.abs(slope.high)).astype(p.wide)
        reach = reach + steepest * np.maximum(s.high - at, at - s.low).astype(p.wide)
        monotone &= ((slope.low >= 0) | (slope.high <= 0)) & ~slope.nan & ~slope.empty
    known = np.isfinite(reach) & np.isfinite(middle)
    reach = np.where(known, reach * 1.000001, 0)
    low = np.where(monotone, ends[0], np.where(known, np.maximum(middle - reach, low), low))
    high = np.where(monotone, ends[1], np.where(known, np.minimum(middle + reach, high), high))
    return low, high


@cache
def _derivatives(texts: tuple[str, ...]) -> tuple[Expr, ...]:
    """Return the derivatives of a row as expressions of `x`, `y` and the result `r`."""
    x, y, r = (Read(name, (), DType.FLOAT64) for name in "xyr")
    return tuple(derivative_template(text)(x, y if len(texts) == 2 else None, r) for text in texts)


def _evaluate(e: Expr, names: Mapping[str, Bounds], p: Precision, depth: int) -> Bounds:
    """Return what an expression of a derivative may be."""
    match e:
        case Const():
            return exact(np.broadcast_to(np.float64(e.value), names["x"].low.shape))
        case Read():
            return names[e.operand]
        case Select():
            cond, then, other = (_evaluate(part, names, p, depth) for part in (e.cond, e.then, e.other))
            return choose(cond, then, other)
        case Call(fn="and" | "or" as fn):
            a, b = (_evaluate(part, names, p, depth) for part in e.args)
            both = np.logical_and if fn == "and" else np.logical_or
            return Bounds(both(a.low, b.low), both(a.high, b.high), a.nan & b.nan)
        case Call(fn="not"):
            a = _evaluate(e.args[0], names, p, depth)
            return Bounds(~a.high, ~a.low, a.nan)
        case Call():
            args = [_evaluate(part, names, p, depth) for part in e.args]
            row = FUNCTIONS[e.fn]
            if row.types == "compare":
                return compare(e.fn, args[0], args[1])
            if row.types == "test":
                return classify(e.fn, args[0])
            return _function(row, (args[0],), p, depth) if row.arity == 1 else _binary(e.fn, args[0], args[1], p, depth)
        case _:
            raise TypeError(f"a derivative of the table has no {type(e).__name__}")


def power(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """a ** b as C's pow: monotone in each argument for a positive base, by parity of the exponent for a negative one."""
    negative, across = (a.low < 0) & ~a.empty, (a.low <= 0) & (a.high >= 0)
    whole = (b.low == b.high) & (np.floor(b.low) == b.low)
    odd = whole & (np.mod(b.low, 2) == 1)
    # The powers of the magnitudes of a.
    nearest = np.where(across, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    size = Bounds(nearest, nearest if a.high is a.low else np.maximum(np.abs(a.low), np.abs(a.high)), a.nan)
    least, most = hull(corners(np.power, size, b, p))
    # Of a negative base and an exponent that may be any, the power may have either sign, or none.
    signed = negative | has_minus_zero(a)
    low, high = np.where(signed & ~whole, -most, least), most
    if some(signed & odd):
        # An odd power keeps the order and the sign, and goes to both infinities where a negative one meets zero.
        ends = corners(np.power, a, b, p)
        pole = across & (b.low < 0)
        ends += [np.where(pole, p.wide(_INF), ends[0]), np.where(pole, p.wide(-_INF), ends[0])]
        low_odd, high_odd = hull(ends)
        low, high = np.where(signed & odd, low_odd, low), np.where(signed & odd, high_odd, high)
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
    """Return what the floating operator or function `name` may return on `a` and `b`."""
    return _binary(name, a, b, p, 0)


def _binary(name: str, a: Bounds, b: Bounds, p: Precision, depth: int) -> Bounds:
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
            return _function(FUNCTIONS[name], (a, b), p, depth)


def compare(name: str, a: Bounds, b: Bounds, itself: bool = False) -> Bounds:
    """Return (surely true, maybe true) of a comparison; with NaN every comparison but `!=` is false.

    `itself` says that both sides are one number, whichever it is: `x != x` tells NaN.
    """
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
    if itself or (a.number is not None and b.number is not None):
        same = np.asarray(itself) if itself else np.asarray((a.number == b.number) & (a.number != UNKNOWN))
        equal = name not in ("lt", "gt")
        sure, maybe = np.where(same, equal, sure), np.where(same, equal, maybe)
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
