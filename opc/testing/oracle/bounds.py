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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from opc.ir.dtypes import DType

Array = NDArray[Any]

UNKNOWN = -1
"""The value number of an element of which no other is known to be the same."""

_WIDE = np.longdouble
_INF = np.inf


@dataclass(frozen=True, slots=True, eq=False)
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


def some(where: Array) -> bool:
    """Whether any of some bools is true. Most arrays here are so small that NumPy's `any` takes three times as long."""
    return bool(np.count_nonzero(where))


def stretched(values: Array, shape: tuple[int, ...]) -> Array:
    """Return values broadcast to a shape: themselves where they have it, which takes NumPy as long as several operations."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def every(where: Array) -> bool:
    """Whether all of some bools are true."""
    return bool(np.count_nonzero(where) == where.size)


@dataclass(slots=True, eq=False)
class Bounds:
    """At every point the set of possible values: `low` to `high`, and NaN where `nan`. Only NaN is possible where low > high.

    The ends are as `held` says; a bool set is (surely true, maybe true). A zero end keeps its sign: a set whose ends are both the
    same zero is that signed zero. `number` has value numbers where they are kept; see `opc.testing.oracle.numbering`.
    Sets share arrays, so nobody writes into one. To have Python hold the fields too would take longer than most operations.
    """

    low: Final[Array]
    high: Final[Array]
    nan: Final[Array]
    number: Final[Array | None] = None

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
        return self.map(lambda v: stretched(v, shape))


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
    if values.dtype.kind in "iu" or (values.dtype.kind == "V" and "int" in values.dtype.name):
        whole = values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)
        return Bounds(whole, whole, np.zeros(values.shape, np.bool_))
    real = values.astype(np.float64)
    nan = np.isnan(real)
    if not some(nan):
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
    if len(candidates) == 1 and not some(np.isnan(candidates[0])):
        return candidates[0], candidates[0]
    return end_of(candidates, np.fmin, _INF), end_of(candidates, np.fmax, -_INF)


def end_of(candidates: list[Array], extreme: np.ufunc, nothing: float) -> Array:
    """Return the least or the greatest of the candidates at every point, which `extreme` chooses; `nothing` where all are NaN.

    Of zeros, -0 is the lesser.
    """
    end = candidates[0]
    for c in candidates[1:]:
        end = extreme(end, c)
    missing = np.isnan(end)
    if some(missing):
        end = np.where(missing, nothing, end)
    return end if end.all() else signed(end, candidates, extreme is np.fmin)


def signed(end: Array, candidates: list[Array], least: bool) -> Array:
    """Return an end with the sign that its zeros have among the candidates: of those -0 if `least`, else +0."""
    zero, end = end == 0, np.array(end)
    found = np.zeros(np.count_nonzero(zero), np.bool_)
    for c in candidates:
        at = stretched(c, end.shape)[zero]
        found |= (at == 0) & (np.signbit(at) == least)
    end[zero] = np.where(found == least, end.dtype.type(-0.0), end.dtype.type(0.0))
    return end


def union(a: Bounds, b: Bounds) -> Bounds:
    """Return the smallest set that holds both."""
    if a is b and a.number is None:
        return a
    if a.is_bool:
        return Bounds(a.low & b.low, a.high | b.high, a.nan | b.nan)
    if not a.is_float:
        return Bounds(np.minimum(a.low, b.low), np.maximum(a.high, b.high), a.nan | b.nan)
    low = end_of([a.low, b.low], np.fmin, _INF)
    return Bounds(low, end_of([a.high, b.high], np.fmax, -_INF), a.nan | b.nan)


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
    if every(yes | no):
        low = np.where(yes, then.low, other.low)
        points = then.high is then.low and other.high is other.low
        high = low if points else np.where(yes, then.high, other.high)
        return Bounds(low, high, np.where(yes, then.nan, other.nan), _over(low, number))
    both = union(then, other)
    low = np.where(yes, then.low, np.where(no, other.low, both.low))
    high = np.where(yes, then.high, np.where(no, other.high, both.high))
    return Bounds(low, high, np.where(yes, then.nan, np.where(no, other.nan, both.nan)), _over(low, number))


def _over(low: Array, number: Array | None) -> Array | None:
    return None if number is None else stretched(number, low.shape)


def holds(a: Bounds, value: float) -> Array:
    """Where `value` is in the set."""
    return np.asarray((a.low <= value) & (a.high >= value))


def has_minus_zero(a: Bounds) -> Array:
    """Where -0 is in the set: a zero end of that sign, or a set that goes on below zero."""
    return np.asarray(holds(a, 0.0) & ((a.low < 0) | np.signbit(a.low)))


def has_plus_zero(a: Bounds) -> Array:
    """Where +0 is in the set."""
    return np.asarray(holds(a, 0.0) & ((a.high > 0) | ~np.signbit(a.high)))
