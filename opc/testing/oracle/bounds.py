"""Sets of values that a correct kernel may compute: an interval and perhaps NaN at every point, with outward rounding.

The oracle does running error analysis in this form. A set holds the exact value and every value reachable when each operation
errs by no more than its bound, so cancellation, steep functions, overflow and ambiguous comparisons need no special case: a bound
is wide exactly where the computation is ill conditioned. Sources: Higham, Accuracy and Stability of Numerical Algorithms (2002),
sections 2.2 (model of arithmetic with underflow) and 4.2 (sums in any order); Moore, Kearfott, Cloud, Introduction to Interval
Analysis (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opc.ir.dtypes import DType, numpy_dtype

Array = NDArray[Any]

UNKNOWN = -1
"""The value number of an element of which no other is known to be the same."""

_WIDE = np.longdouble
_INF = np.inf


@dataclass(frozen=True, slots=True)
class Precision:
    """A floating compute type: unit roundoff, smallest denormal, least magnitude that rounds to infinity.

    `wide` is the type the ends of the sets are computed in before rounding outward, and `own` its unit roundoff, which is counted
    too.
    """

    dtype: DType
    unit: float
    tiny: float
    overflow: Any
    wide: Any
    own: float

    @property
    def most(self) -> float:
        """The largest number."""
        return float(np.finfo(np.float64 if self.dtype is DType.FLOAT64 else np.float32).max)


def _double_overflow() -> Any:
    limit = _WIDE(2.0) ** 1023
    # Where long double is no wider than double, an end that overflows has become infinite already.
    return limit * 2 - _WIDE(2.0) ** 970 if np.isfinite(limit * 2) else _WIDE(_INF)


with np.errstate(over="ignore"):
    PRECISIONS = {
        DType.FLOAT32: Precision(DType.FLOAT32, 2.0**-24, 2.0**-149, 2.0**128 - 2.0**103, np.float64, 2.0**-53),
        DType.FLOAT64: Precision(DType.FLOAT64, 2.0**-53, 2.0**-1074, _double_overflow(), _WIDE, float(np.finfo(_WIDE).eps) / 2),
    }
"""The two types floating values are computed in."""


def held(dtype: DType) -> Any:
    """Return the type that the ends of sets of values of a dtype have: float64, bool, int64, and of uint64 itself."""
    if dtype.is_floating:
        return np.float64
    return np.bool_ if dtype is DType.BOOL else np.int64 if dtype.is_whole else np.uint64


@dataclass(frozen=True, slots=True)
class Bounds:
    """At every point the set of possible values: `low` to `high`, and NaN where `nan`. Only NaN is possible where low > high.

    The ends are as `held` says; a bool set is (surely true, maybe true). A zero end keeps its sign: a set whose ends are both the
    same zero is that signed zero. `number` has value numbers where they are kept; see `opc.testing.oracle.numbering`.
    """

    low: Array
    high: Array
    nan: Array
    number: Array | None = None

    @property
    def is_float(self) -> bool:
        """Whether the values are floating."""
        return self.low.dtype.type is np.float64

    @property
    def is_bool(self) -> bool:
        """Whether the values are bools."""
        return self.low.dtype.type is np.bool_

    @property
    def ends(self) -> tuple[Array, ...]:
        """The least and the greatest values: one array where every set is a single point, as `exact` makes them."""
        return (self.low,) if self.high is self.low else (self.low, self.high)

    @property
    def empty(self) -> Array:
        """Where no number is possible, only NaN."""
        return np.asarray(self.low > self.high)

    @property
    def point(self) -> Array:
        """Where exactly one value is possible and it is a number."""
        return np.asarray((self.low == self.high) & ~self.nan)

    def map(self, change: Callable[[Array], Array]) -> Bounds:
        """Return the set with an indexing or reshaping applied to every part."""
        low = change(self.low)
        number = None if self.number is None else change(self.number)
        return Bounds(low, low if self.high is self.low else change(self.high), change(self.nan), number)

    def spanning(self, shape: tuple[int, ...]) -> Bounds:
        """Return the sets broadcast to a shape."""
        if self.low.shape == self.high.shape == self.nan.shape == shape and self.number is None:
            return self
        return self.map(lambda v: np.broadcast_to(v, shape))


@dataclass(frozen=True, slots=True)
class Bounded:
    """An output: the set of possible values at every element, as stored in `dtype`."""

    bounds: Bounds
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        """The output's shape."""
        return tuple(self.bounds.low.shape)

    @property
    def value(self) -> Array:
        """The middle of each set; NaN where only NaN is possible. For sets with an infinite end, the other end."""
        b = self.bounds
        if not b.is_float:
            return b.low
        low, high = b.low, b.high
        with np.errstate(all="ignore"):
            middle = low + (high - low) / 2
        middle = np.where(low == high, low, np.where(np.isinf(low), high, np.where(np.isinf(high), low, middle)))
        return np.where(b.empty, np.nan, middle)

    @property
    def error(self) -> Array:
        """How far a correct answer may lie from `value`: the bound of each element."""
        return self.error_from(self.value)

    def error_from(self, middle: Array) -> Array:
        """Return `error`, given `value`: computing that takes longer than what is done here."""
        b = self.bounds
        low, high = b.low.astype(np.float64, copy=False), b.high.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            width = np.where(low == high, 0.0, np.maximum(high - middle, middle - low))
        return np.where(b.empty, 0.0, width)


def exact(values: Array) -> Bounds:
    """Return the set that holds exactly `values`: any dtype of NumPy or ml_dtypes."""
    values = np.asarray(values)
    if values.dtype == np.bool_:
        return Bounds(values, values, np.zeros(values.shape, np.bool_))
    if values.dtype.kind in "iu":
        whole = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64, copy=False)
        return Bounds(whole, whole, np.zeros(values.shape, np.bool_))
    real = values.astype(np.float64, copy=False)
    nan = np.isnan(real)
    if not nan.any():
        return Bounds(real, real, nan)
    return Bounds(np.where(nan, _INF, real), np.where(nan, -_INF, real), nan)


def between(low: Array, high: Array, nan: Array | None = None) -> Bounds:
    """Return the set of numbers from `low` to `high`, with NaN where `nan`."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return Bounds(low, high, np.zeros(low.shape, np.bool_) if nan is None else nan)


def hull(candidates: list[Array]) -> tuple[Array, Array]:
    """Return the least and greatest of the candidates at every point; NaN candidates do not count, none left is empty.

    Zeros of both signs among them give a set from -0 to +0.
    """
    if len(candidates) == 1 and not np.isnan(candidates[0]).any():
        return candidates[0], candidates[0]
    return _end(candidates, np.fmin, _INF), _end(candidates, np.fmax, -_INF)


def _end(candidates: list[Array], extreme: np.ufunc, nothing: float) -> Array:
    """Return the least or the greatest of the candidates at every point, which `extreme` chooses; `nothing` where all are NaN.

    Of zeros, -0 is the lesser.
    """
    end = candidates[0]
    for c in candidates[1:]:
        end = extreme(end, c)
    missing = np.isnan(end)
    if missing.any():
        end = np.where(missing, nothing, end)
    return end if end.all() else _signed(end, candidates, extreme is np.fmin)


def _signed(end: Array, candidates: list[Array], least: bool) -> Array:
    """Return an end with the sign that its zeros have among the candidates: of those -0 if `least`, else +0."""
    zero, end = end == 0, np.array(end)
    found = np.zeros(np.count_nonzero(zero), np.bool_)
    for c in candidates:
        at = np.broadcast_to(c, end.shape)[zero]
        found |= (at == 0) & (np.signbit(at) == least)
    end[zero] = np.where(found == least, end.dtype.type(-0.0), end.dtype.type(0.0))
    return end


def _hull_of_numbers(candidates: list[Array]) -> tuple[Array, Array]:
    """Return the same as `hull` where no candidate is NaN; where one is, NaN."""
    if len(candidates) == 1:
        return candidates[0], candidates[0]
    low, high = reduce(np.minimum, candidates), reduce(np.maximum, candidates)
    return low if low.all() else _signed(low, candidates, True), high if high.all() else _signed(high, candidates, False)


def _finite(*sets: Bounds) -> bool:
    """Whether no end is infinite anywhere."""
    return all(bool(np.isfinite(v).all()) for s in sets for v in s.ends)


def union(a: Bounds, b: Bounds) -> Bounds:
    """Return the smallest set that holds both."""
    if a is b and a.number is None:
        return a
    if a.is_bool:
        return Bounds(a.low & b.low, a.high | b.high, a.nan | b.nan)
    if not a.is_float:
        return Bounds(np.minimum(a.low, b.low), np.maximum(a.high, b.high), a.nan | b.nan)
    return Bounds(_end([a.low, b.low], np.fmin, _INF), _end([a.high, b.high], np.fmax, -_INF), a.nan | b.nan)


def over_all(a: Bounds) -> Bounds:
    """Return the smallest set that holds every element."""
    low, high = np.asarray(a.low.min()), np.asarray(a.high.max())
    if a.is_float:
        # Of zeros, -0 is the lesser.
        if low == 0:
            low = np.asarray(-0.0 if np.signbit(a.low[a.low == 0]).any() else 0.0)
        if high == 0:
            high = np.asarray(-0.0 if np.signbit(a.high[a.high == 0]).all() else 0.0)
    return Bounds(low, high, np.asarray(a.nan.any()))


def choose(cond: Bounds, then: Bounds, other: Bounds) -> Bounds:
    """Return `then` where `cond` is surely true, `other` where it is surely false, else both."""
    yes, no = cond.low, ~cond.high
    number = None
    if then.number is not None or other.number is not None:
        taken, left = (UNKNOWN if v.number is None else v.number for v in (then, other))
        number = np.where(yes, taken, np.where(no, left, UNKNOWN))
    if (yes | no).all():
        low = np.where(yes, then.low, other.low)
        points = then.high is then.low and other.high is other.low
        high = low if points else np.where(yes, then.high, other.high)
        return Bounds(low, high, np.where(yes, then.nan, other.nan), _over(low, number))
    both = union(then, other)
    low = np.where(yes, then.low, np.where(no, other.low, both.low))
    high = np.where(yes, then.high, np.where(no, other.high, both.high))
    return Bounds(low, high, np.where(yes, then.nan, np.where(no, other.nan, both.nan)), _over(low, number))


def _over(low: Array, number: Array | None) -> Array | None:
    return None if number is None else np.broadcast_to(number, low.shape)


def spread(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True, fused: bool = False
) -> tuple[Array, Array]:
    """Round the ends outward by `ulps` units in the last place of `p`, and by `own` roundoffs of the type they are held in.

    A value `v` has spacing at most `2 * unit * |v|`, and `tiny` where it is denormal, so the error is at most
    `ulps * (2 * unit * |v| + tiny)`; with `underflow` false denormal results are exact (sums are). Rounding keeps the sign, and
    zero is exact. Ends beyond the largest number become infinite; when `fused` they may also stay as they are, because the
    result goes into a sum without being rounded.
    """
    usual = _spread_usual(low, high, p, ulps, own, underflow)
    return _spread_any(low, high, p, ulps, own, underflow, fused) if usual is None else usual


@cache
def _roundoff(kind: Any) -> float:
    return float(np.finfo(kind).eps) / 2


def _spread_usual(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True
) -> tuple[Array, Array] | None:
    """Return what `spread` does where no end is denormal, near the largest number, infinite or NaN; else None."""
    if not low.size:
        return None
    kind = low.dtype.type
    below = np.abs(low)
    above = below if high is low else np.abs(high)
    limit = kind(p.overflow) / 2
    if not (below.max() < limit and above.max() < limit):
        return None
    relative = kind(ulps * 2 * p.unit + own * _roundoff(kind))
    # Without underflow what is added is relative alone, however small the ends are.
    denormal, floor = (kind(ulps * p.tiny), 8 * ulps * p.tiny) if underflow else (kind(0), 0.0)
    least = min(below.min(), above.min())
    zero = least == 0
    if not (least > floor or zero):
        return None
    down, up = low - (relative * below + denormal), high + (relative * above + denormal)
    if not zero:
        return down, up
    # The sign of a zero end must survive, so nothing is added to it.
    zeros = below == 0, above == 0
    if underflow and not ((zeros[0] | (below > floor)).all() and (zeros[1] | (above > floor)).all()):
        return None
    return np.where(zeros[0], low, down), np.where(zeros[1], high, up)


def _spread_any(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True, fused: bool = False
) -> tuple[Array, Array]:
    """Return what `spread` does, whatever the ends are."""
    kind = low.dtype.type
    relative = kind(ulps * 2 * p.unit + own * _roundoff(kind))
    denormal = kind(ulps * p.tiny if underflow else 0.0)
    limit = kind(p.overflow)

    def error(v: Array) -> Array:
        return np.asarray(np.where(np.isfinite(v) & (v != 0), relative * np.abs(v) + denormal, kind(0)))

    down, up = error(low), error(high)
    # The sign of a zero end must survive, so nothing is added to it.
    down_to = np.where(down == 0, low, np.where(low > 0, np.maximum(low - down, kind(0)), low - down))
    up_to = np.where(up == 0, high, np.where(high < 0, np.minimum(high + up, kind(-0.0)), high + up))
    if not fused:
        return _overflow(down_to, limit), _overflow(up_to, limit)
    infinity = kind(_INF)
    return np.where(down_to <= -limit, -infinity, down_to), np.where(up_to >= limit, infinity, up_to)


def _overflow(v: Array, limit: Any) -> Array:
    return np.where(v >= limit, v.dtype.type(_INF), np.where(v <= -limit, v.dtype.type(-_INF), v))


def widened(a: Bounds, p: Precision, ulps: float) -> Bounds:
    """Return the set with its ends moved outward by `ulps` units in the last place of `p`."""
    low, high = spread(*_wide(a, p), p, ulps, fused=True)
    return narrow(np.where(a.empty, _INF, low), np.where(a.empty, -_INF, high), a.nan)


def narrow(low: Array, high: Array, nan: Array) -> Bounds:
    """Return the set with ends of a wider type rounded outward to float64."""
    if low.dtype.type is not np.float64:
        l64, h64 = np.array(low, np.float64), np.array(high, np.float64)
        # A finite end beyond double's range is an overflow that `spread` left undecided: its infinite side is possible.
        low = np.nextafter(l64, -_INF, out=l64, where=l64 > low)
        high = np.nextafter(h64, _INF, out=h64, where=h64 < high)
    if nan.shape and low.shape == high.shape == nan.shape:
        return Bounds(low, high, nan)
    shape = np.broadcast_shapes(low.shape, nan.shape)
    if nan.shape != shape:
        nan = np.broadcast_to(nan, shape)
    return Bounds(np.broadcast_to(low, shape), np.broadcast_to(high, shape), nan)


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
    left, right = ([v.astype(p.wide, copy=False) for v in s.ends] for s in (a, b))
    return [fn(x, y) for x in left for y in right]


def _wide(a: Bounds, p: Precision) -> tuple[Array, Array]:
    """Return both ends in the wide type."""
    low = a.low.astype(p.wide, copy=False)
    return low, low if a.high is a.low else a.high.astype(p.wide, copy=False)


def _beside_infinity(a: Bounds, large: float) -> Bounds:
    """Return the set with an infinite end that is not its only member replaced by the largest number of that sign."""
    low = (a.low == -_INF) & (a.high > -_INF)
    high = (a.high == _INF) & (a.low < _INF)
    if not (low.any() or high.any()):
        return a
    # An unrounded end may be larger still.
    return Bounds(np.where(low, np.minimum(-large, a.high), a.low), np.where(high, np.maximum(large, a.low), a.high), a.nan)


def holds(a: Bounds, value: float) -> Array:
    """Where `value` is in the set."""
    return np.asarray((a.low <= value) & (a.high >= value))


def has_minus_zero(a: Bounds) -> Array:
    """Where -0 is in the set: a zero end of that sign, or a set that goes on below zero."""
    return np.asarray(holds(a, 0.0) & ((a.low < 0) | np.signbit(a.low)))


def has_plus_zero(a: Bounds) -> Array:
    """Where +0 is in the set."""
    return np.asarray(holds(a, 0.0) & ((a.high > 0) | ~np.signbit(a.high)))


def add(a: Bounds, b: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a + b: exact when the result is denormal (Higham 2.2), opposite infinities give NaN."""
    left, right, nan = _wide(a, p), _wide(b, p), a.nan | b.nan
    low = left[0] + right[0]
    high = low if a.high is a.low and b.high is b.low else left[1] + right[1]
    usual = _spread_usual(low, high, p, 0.5, underflow=False)
    if usual is not None:
        # No end is infinite, and so no set is empty: the general way below says the same.
        return narrow(*usual, nan)
    nan = nan | (holds(a, _INF) & holds(b, -_INF)) | (holds(a, -_INF) & holds(b, _INF))
    # An infinite end meeting the opposite infinity has no number there; what is left starts at the other infinity.
    low, high = np.where(np.isnan(low), _INF, low), np.where(np.isnan(high), -_INF, high)
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    return narrow(*_spread_any(low, high, p, 0.5, underflow=False, fused=fused), nan)


def square(a: Bounds, p: Precision, fused: bool = False) -> Bounds:
    """a * a, which is never negative: both factors are the same number."""
    low, high = map(np.abs, _wide(a, p))
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
    usual = _spread_usual(*_hull_of_numbers(_at_ends(np.multiply, a, b, p)), p, 0.5)
    if usual is not None:
        # An infinite factor has an infinite product or NaN, so no end is infinite and no set is empty: the way below says the same.
        return narrow(*usual, a.nan | b.nan)
    infinite = (holds(a, _INF) | holds(a, -_INF), holds(b, _INF) | holds(b, -_INF))
    nan = a.nan | b.nan | (holds(a, 0.0) & infinite[1]) | (holds(b, 0.0) & infinite[0])
    low, high = hull(corners(np.multiply, a, b, p))
    low, high = np.where(a.empty | b.empty, _INF, low), np.where(a.empty | b.empty, -_INF, high)
    low, high = spread(low, high, p, 0.5, fused=fused)
    return narrow(low, high, nan)


def divide(a: Bounds, b: Bounds, p: Precision) -> Bounds:
    """a / b; 0/0 and inf/inf give NaN, and a divisor that may be a zero of either sign gives the whole line."""
    if ((b.low > 0) | (b.high < 0)).all() and _finite(a, b):
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


def rounded(a: Bounds, dtype: DType) -> Bounds:
    """Return the set rounded to a floating `dtype` as stored: rounding is monotone, so the ends are rounded.

    Narrower types are reached from float32, in which they are computed, or directly; the set holds both. Where a type has no
    infinity, NaN is what overflows.
    """
    if dtype is DType.FLOAT64:
        return a
    single_low = a.low.astype(np.float32)
    single_high = single_low if a.high is a.low else a.high.astype(np.float32)
    if dtype is DType.FLOAT32:
        return Bounds(single_low.astype(np.float64), single_high.astype(np.float64), a.nan)
    kind = numpy_dtype(dtype)
    lows, highs = ([v.astype(kind).astype(np.float64) for v in ends] for ends in ((single_low, a.low), (single_high, a.high)))
    if dtype.row.minifloat is None or dtype.row.minifloat.top == "ieee":
        return Bounds(_end(lows, np.fmin, _INF), _end(highs, np.fmax, -_INF), a.nan)
    largest, nan = float(_finfo(dtype).max), a.nan
    for low, high in zip(lows, highs, strict=True):
        nan = nan | np.isnan(low) | np.isnan(high)
    # What is left of a set of which one end overflows reaches to the largest number; of one that overflows as a whole, nothing.
    lows = [np.where(np.isnan(v), np.where(a.low < 0, -largest, _INF), v) for v in lows]
    highs = [np.where(np.isnan(v), np.where(a.high > 0, largest, -_INF), v) for v in highs]
    return Bounds(_end(lows, np.fmin, _INF), _end(highs, np.fmax, -_INF), nan)


def _finfo(dtype: DType) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(numpy_dtype(dtype))


def flushed(a: Bounds, dtype: DType, parts: int) -> Bounds:
    """Return the set of sums of `parts` numbers by an adder that flushes denormal numbers; `a` is that of one that does not.

    Each of the parts and the sum itself lose at most what is below the smallest normal number of the type that is added in, which
    for float16 is float32.
    """
    added = np.float64 if dtype is DType.FLOAT64 else np.float32
    lost = (parts + 1) * float(np.finfo(added).tiny)
    return Bounds(a.low - lost, a.high + lost, a.nan)
