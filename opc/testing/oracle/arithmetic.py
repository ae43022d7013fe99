"""Arithmetic of sets of values: what sums, products and quotients may be."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from opc.testing.oracle.bounds import Array, Bounds, Precision, every, holds, hull, signed
from opc.testing.oracle.rounding import narrow, spread, spread_any, spread_usual, wide

_INF = np.inf


def corners(fn: Callable[[Array, Array], Array], a: Bounds, b: Bounds, p: Precision) -> list[Array]:
    """Return `fn` at the ends of both sets, in the wide type; once where both are single points.

    At an infinite end `fn` may have no value (0 * inf) where it has one at the large numbers beside it, so those are taken too.
    """
    found = _at_ends(fn, a, b, p)
    if len(found) > 1 and not _finite(a, b):
        inner = [_beside_infinity(v, p.most) for v in (a, b)]
        if inner[0] is not a or inner[1] is not b:
            for left, right in ((inner[0], b), (a, inner[1]), (inner[0], inner[1])):
                found += _at_ends(fn, left, right, p)
    return found


def _at_ends(fn: Callable[[Array, Array], Array], a: Bounds, b: Bounds, p: Precision) -> list[Array]:
    """Return `fn` at the ends of both sets, in the wide type."""
    left, right = a.ends, b.ends
    if p.wide is not np.float64:
        left, right = (tuple([v.astype(p.wide) for v in ends]) for ends in (left, right))
    return [fn(x, y) for x in left for y in right]


def _beside_infinity(a: Bounds, large: float) -> Bounds:
    """Return the set with an infinite end that is not its only member replaced by the largest number of that sign."""
    low = (a.low == -_INF) & (a.high > -_INF)
    high = (a.high == _INF) & (a.low < _INF)
    if not (low.any() or high.any()):
        return a
    # An unrounded end may be larger still.
    return Bounds(np.where(low, np.minimum(-large, a.high), a.low), np.where(high, np.maximum(large, a.low), a.high), a.nan)


def _hull_of_numbers(candidates: list[Array]) -> tuple[Array, Array]:
    """Return the same as `hull` where no candidate is NaN; where one is, NaN."""
    if len(candidates) == 1:
        return candidates[0], candidates[0]
    low, high = reduce(np.minimum, candidates), reduce(np.maximum, candidates)
    return low if low.all() else signed(low, candidates, True), high if high.all() else signed(high, candidates, False)


def _finite(*sets: Bounds) -> bool:
    """Whether no end is infinite anywhere."""
    return all(every(np.isfinite(v)) for s in sets for v in s.ends)


def add(a: Bounds, b: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a + b: exact when the result is denormal (Higham 2.2), opposite infinities give NaN."""
    left, right, nan = wide(a, p), wide(b, p), a.nan | b.nan
    low = left[0] + right[0]
    high = low if a.high is a.low and b.high is b.low else left[1] + right[1]
    usual = spread_usual(low, high, p, 0.5, underflow=False)
    if usual is not None:
        # No end is infinite, and so no set is empty: the general way below says the same.
        return narrow(*usual, nan)
    nan = nan | (holds(a, _INF) & holds(b, -_INF)) | (holds(a, -_INF) & holds(b, _INF))
    # An infinite end meeting the opposite infinity has no number there; what is left starts at the other infinity.
    low, high = np.where(np.isnan(low), _INF, low), np.where(np.isnan(high), -_INF, high)
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    return narrow(*spread_any(low, high, p, 0.5, underflow=False, fused=fused), nan)


def square(a: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a * a, which is never negative: both factors are the same number."""
    low, high = map(np.abs, wide(a, p))
    inside = (a.low <= 0) & (a.high >= 0)
    least = np.where(inside, p.wide(0), np.minimum(low, high))
    most = np.maximum(low, high)
    least, most = spread(least * least, most * most, p, 0.5, fused=fused)
    return narrow(np.where(a.empty, _INF, least), np.where(a.empty, -_INF, most), a.nan)


def negate(a: Bounds) -> Bounds:
    """-a, exact."""
    low = -a.high
    return Bounds(low, low if a.high is a.low else -a.low, a.nan)


def multiply(a: Bounds, b: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a * b; zero times infinity gives NaN."""
    usual = spread_usual(*_hull_of_numbers(_at_ends(np.multiply, a, b, p)), p, 0.5)
    if usual is not None:
        # An infinite factor has an infinite product or NaN, so there is none and no set is empty: the way below says the same.
        return narrow(*usual, a.nan | b.nan)
    infinite = (holds(a, _INF) | holds(a, -_INF), holds(b, _INF) | holds(b, -_INF))
    nan = a.nan | b.nan | (holds(a, 0.0) & infinite[1]) | (holds(b, 0.0) & infinite[0])
    low, high = hull(corners(np.multiply, a, b, p))
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    low, high = spread(low, high, p, 0.5, fused=fused)
    return narrow(low, high, nan)


def divide(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """a / b; 0/0 and inf/inf give NaN, and a divisor that may be a zero of either sign gives the whole line."""
    if every((b.low > 0) | (b.high < 0)) and _finite(a, b):
        # No set is empty, and no quotient is NaN: the general way below says the same.
        return narrow(*spread(*_hull_of_numbers(_at_ends(np.divide, a, b, p)), p, 0.5), a.nan | b.nan)
    zero = np.asarray((a.low == 0) & (a.high == 0))
    nan = a.nan | b.nan | (holds(a, 0.0) & holds(b, 0.0))
    nan = nan | ((holds(a, _INF) | holds(a, -_INF)) & (holds(b, _INF) | holds(b, -_INF)))
    low, high = hull(corners(np.divide, a, b, p))
    straddles = ((b.low < 0) & (b.high > 0)) | (holds(b, 0.0) & (np.signbit(b.low) != np.signbit(b.high)))
    whole = straddles & ~zero
    low, high = np.where(whole, -_INF, low), np.where(whole, _INF, high)
    low = np.where(straddles & zero, low.dtype.type(-0.0), low)
    high = np.where(straddles & zero, high.dtype.type(0.0), high)
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    low, high = spread(low, high, p, 0.5)
    return narrow(low, high, nan)
