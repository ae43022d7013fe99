"""Arithmetic of sets of values: what sums, products and quotients may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from opc.testing.oracle.bounds import Array, Bounds, Precision, every, holds, hull, signed, some
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


_SPARE = 64
"""The share of the whole numbers a type has that sums and products are taken to be exact in: more terms may come in any order."""


def unrounded(rounded: Array, end: Array, parts: Sequence[Array], p: Precision) -> Array:
    """Return ends rounded outward, but as they are where they are sums or products of whole numbers, which are exact.

    Rounding is monotone, in whichever order terms come: what has a whole end has it exactly.
    """
    exact = np.rint(end) == end
    if not some(exact):
        return rounded
    for v in (end, *parts):
        exact = exact & (np.abs(v) * (p.unit * _SPARE) < 1)
    for v in parts:
        exact = exact & (np.rint(v) == v)
    return np.where(exact, end, rounded) if some(exact) else rounded


def add(a: Bounds, b: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a + b: exact when the result is denormal (Higham 2.2), opposite infinities give NaN."""
    left, right, nan = wide(a, p), wide(b, p), a.nan | b.nan
    low = left[0] + right[0]
    high = low if a.high is a.low and b.high is b.low else left[1] + right[1]
    usual = spread_usual(low, high, p, 0.5, underflow=False)
    if usual is not None:
        # No end is infinite, and so no set is empty: the general way below says the same.
        down = unrounded(usual[0], low, (left[0], right[0]), p)
        return narrow(down, unrounded(usual[1], high, (left[1], right[1]), p), nan)
    nan = nan | (holds(a, _INF) & holds(b, -_INF)) | (holds(a, -_INF) & holds(b, _INF))
    # An infinite end meeting the opposite infinity has no number there; what is left starts at the other infinity.
    low, high = np.where(np.isnan(low), _INF, low), np.where(np.isnan(high), -_INF, high)
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    down, up = spread_any(low, high, p, 0.5, underflow=False, fused=fused)
    down = unrounded(down, low, (left[0], right[0]), p)
    return narrow(down, unrounded(up, high, (left[1], right[1]), p), nan)


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
    ends = _hull_of_numbers(_at_ends(np.multiply, a, b, p))
    usual = spread_usual(*ends, p, 0.5)
    if usual is not None:
        # An infinite factor has an infinite product or NaN, so there is none and no set is empty: the way below says the same.
        parts = (*a.ends, *b.ends)
        return narrow(unrounded(usual[0], ends[0], parts, p), unrounded(usual[1], ends[1], parts, p), a.nan | b.nan)
    infinite = (holds(a, _INF) | holds(a, -_INF), holds(b, _INF) | holds(b, -_INF))
    nan = a.nan | b.nan | (holds(a, 0.0) & infinite[1]) | (holds(b, 0.0) & infinite[0])
    low, high = hull(corners(np.multiply, a, b, p))
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    down, up = spread(low, high, p, 0.5, fused=fused)
    parts = (*a.ends, *b.ends)
    return narrow(unrounded(down, low, parts, p), unrounded(up, high, parts, p), nan)


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
