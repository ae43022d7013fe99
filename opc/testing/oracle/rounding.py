"""Sets of values rounded outward: what computing in one type and storing in another does to their ends."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from opc.ir.dtypes import DType, numpy_dtype
from opc.testing.oracle.bounds import Array, Bounds, Precision, end_of, every, stretched

_INF = np.inf


def wide(a: Bounds, p: Precision) -> tuple[Array, Array]:
    """Return both ends in the wide type."""
    low = a.low.astype(p.wide, copy=False)
    return low, low if a.high is a.low else a.high.astype(p.wide, copy=False)


def spread(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True, fused: bool = False
) -> tuple[Array, Array]:
    """Round the ends outward by `ulps` units in the last place of `p`, and by `own` roundoffs of the type they are held in.

    A value `v` has spacing at most `2 * unit * |v|`, and `tiny` where it is denormal, so the error is at most
    `ulps * (2 * unit * |v| + tiny)`; with `underflow` false denormal results are exact (sums are). Rounding keeps the sign, and
    zero is exact. Ends beyond the largest number become infinite; when `fused` they may also stay as they are, because the
    result goes into a sum without being rounded.
    """
    usual = spread_usual(low, high, p, ulps, own, underflow)
    return spread_any(low, high, p, ulps, own, underflow, fused) if usual is None else usual


def spread_usual(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True
) -> tuple[Array, Array] | None:
    """Return what `spread` does where no end is denormal, near the largest number, infinite or NaN; else None."""
    if not low.size:
        return None
    kind: Any = low.dtype.type
    relative, denormal, floor, limit = _amounts(kind, p, ulps, own, underflow)
    below = np.abs(low)
    above = below if high is low else np.abs(high)
    most, least = np.maximum.reduce(below, None), np.minimum.reduce(below, None)
    if high is not low:
        most, least = np.maximum(most, np.maximum.reduce(above, None)), min(least, np.minimum.reduce(above, None))
    # NaN is not less either; and a half keeps the sign of what it is taken off.
    if not (most < limit and relative < 0.5):
        return None
    zeros: Array | None = None
    if least == 0:
        zeros = above == 0
        if underflow:
            zero = below == 0
            if not (every(zero | (below > floor)) and every(zeros | (above > floor))):
                return None
    elif not least > floor:
        return None
    below *= relative
    if underflow:
        below += denormal
    down = low - below
    if high is low:
        up = high + below
    else:
        above *= relative
        if underflow:
            above += denormal
        up = high + above
    if zeros is None:
        return down, up
    # A zero end stays, and keeps its sign: to take 0 off one does, and to add it to one does not.
    return np.where(zero, low, down) if underflow else down, np.where(zeros, high, up)


@lru_cache(maxsize=1024)
def _amounts(kind: Any, p: Precision, ulps: float, own: float, underflow: bool) -> tuple[Any, Any, float, Any]:
    """Return what `spread` adds, relatively and where values are denormal, and the least and greatest magnitudes that are usual.

    Without underflow what is added is relative alone, however small the ends are.
    """
    relative = kind(ulps * 2 * p.unit + own * float(np.finfo(kind).eps) / 2)
    return relative, kind(ulps * p.tiny if underflow else 0.0), 8 * ulps * p.tiny if underflow else 0.0, kind(p.overflow) / 2


def spread_any(
    low: Array, high: Array, p: Precision, ulps: float, own: float = 1.0, underflow: bool = True, fused: bool = False
) -> tuple[Array, Array]:
    """Return what `spread` does, whatever the ends are."""
    kind: Any = low.dtype.type
    relative, denormal, _, _ = _amounts(kind, p, ulps, own, underflow)
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
    low, high = spread(*wide(a, p), p, ulps, fused=True)
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
    return Bounds(np.asarray(stretched(low, shape)), np.asarray(stretched(high, shape)), stretched(nan, shape))


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
        low = single_low.astype(np.float64)
        return Bounds(low, low if a.high is a.low else single_high.astype(np.float64), a.nan)
    kind = numpy_dtype(dtype)
    lows, highs = ([v.astype(kind).astype(np.float64) for v in ends] for ends in ((single_low, a.low), (single_high, a.high)))
    if dtype.row.minifloat is None or dtype.row.minifloat.top == "ieee":
        return Bounds(end_of(lows, np.fmin, _INF), end_of(highs, np.fmax, -_INF), a.nan)
    largest, nan = float(_finfo(dtype).max), a.nan
    for low, high in zip(lows, highs, strict=True):
        nan = nan | np.isnan(low) | np.isnan(high)
    # What is left of a set of which one end overflows reaches to the largest number; of one that overflows as a whole, nothing.
    lows = [np.where(np.isnan(v), np.where(a.low < 0, -largest, _INF), v) for v in lows]
    highs = [np.where(np.isnan(v), np.where(a.high > 0, largest, -_INF), v) for v in highs]
    return Bounds(end_of(lows, np.fmin, _INF), end_of(highs, np.fmax, -_INF), nan)


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
