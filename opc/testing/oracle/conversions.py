"""Conversions between value types in the oracle: implicit promotion, and `cast`."""

from __future__ import annotations

from typing import Any

import numpy as np

from opc.ir.dtypes import DType
from opc.testing.oracle import integers
from opc.testing.oracle.bounds import Array, Bounds, held, union
from opc.testing.oracle.enclosures import compare
from opc.testing.oracle.rounding import rounded


def promote(a: Bounds, source: DType | None, dtype: DType) -> Bounds:
    """Return values computed in `source` as operands of an operation in `dtype`; None is the source of weak values.

    Rounding is monotone, so a rounded set has rounded ends. A target may also keep the more precise value: the set holds both.
    """
    if dtype.is_floating:
        if not a.is_float:
            low = a.low.astype(np.float64)
            a = Bounds(low, low if a.high is a.low else a.high.astype(np.float64), a.nan)
        return a if dtype in (source, DType.FLOAT64) else union(rounded(a, dtype), a)
    if a.is_float or dtype is DType.BOOL or a.low.dtype == held(dtype):
        return a
    return Bounds(a.low.astype(held(dtype)), a.high.astype(held(dtype)), a.nan)


def cast(a: Bounds, source: DType, dtype: DType) -> Bounds:
    """Return `cast(dtype, a)`: float to int truncates and saturates, NaN gives 0; integers wrap."""
    if dtype.is_floating or (a.is_bool and dtype is not DType.BOOL):
        return promote(a, source, dtype)
    if dtype is DType.BOOL:
        zero = np.zeros((1,) * a.low.ndim, a.low.dtype)
        return a if a.is_bool else compare("ne", a, Bounds(zero, zero, np.zeros(zero.shape, np.bool_)))
    least, most, kind = dtype.least, dtype.most, held(dtype)
    if not a.is_float:
        value = integers.wrap(a.low, dtype)
        outside = (a.low < least) | (a.high > most)
        low = np.where(a.point, value, np.where(outside, least, a.low.astype(kind)))
        return Bounds(low, np.where(a.point, value, np.where(outside, most, a.high.astype(kind))), a.nan)
    low, high = (_saturate(v, least, most, kind) for v in (a.low, a.high))
    low = np.where(a.empty, 0, np.where(a.nan, np.minimum(low, 0), low))
    high = np.where(a.empty, 0, np.where(a.nan, np.maximum(high, 0), high))
    return Bounds(low, high, np.zeros(low.shape, np.bool_))


def _saturate(v: Array, least: int, most: int, kind: Any) -> Array:
    """Return floating values truncated to integers of some type within limits; 2^63 as a float would overflow int64."""
    whole = np.trunc(v)
    inner = np.where((whole > least) & (whole < most), whole, 0).astype(kind)
    return np.asarray(np.where(whole >= most, most, np.where(whole <= least, least, inner)))
