"""Reductions of the oracle: bounds that hold for every order of evaluation.

Sources: Higham, Accuracy and Stability of Numerical Algorithms (2002), inequality (4.4): a sum of n terms in any order errs by at
most gamma(n - 1) * sum |x|, gamma(k) = k*u / (1 - k*u); and lemma 3.1 for products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opc.ir.dtypes import DType
from opc.ir.expr import EXTREMES
from opc.testing.oracle import integers
from opc.testing.oracle.arithmetic import multiply
from opc.testing.oracle.bounds import (
    UNKNOWN,
    Array,
    Bounds,
    Precision,
    every,
    exact,
    has_minus_zero,
    has_plus_zero,
    held,
)
from opc.testing.oracle.frame import EmptyReductionError
from opc.testing.oracle.orders import in_any_order
from opc.testing.oracle.rounding import narrow

_INF = np.inf
Axes = tuple[int, ...]


def gamma(n: int, unit: float) -> float:
    """Return gamma(n) of Higham (2002), lemma 3.1; infinity where n*unit reaches 1."""
    return n * unit / (1 - n * unit) if n * unit < 1 else _INF


def identity(kind: str, dtype: DType) -> Any:
    """Return the value of `dtype` that changes no reduction of that kind, as the oracle holds values."""
    if kind in ("any", "all"):
        return kind == "all"
    if kind in ("sum", "prod"):
        value: float = 0 if kind == "sum" else 1
    elif dtype.is_floating:
        value = -_INF if kind in ("max", "argmax") else _INF
    else:
        value = dtype.least if kind in ("max", "argmax") else dtype.most
    return held(dtype)(value)


def reduce(kind: str, body: Bounds, axes: Axes, dtype: DType, p: Precision | None, merged: int = 0) -> Bounds:
    """Return the reduction `kind` of `body` over `axes`. `p` is the compute precision of floating values.

    A sum may be part of a larger one, of `merged` terms: then these may come in any order. The ends of sums and products are
    unrounded, as `Ways` has them.

    Raises:
        EmptyReductionError: for an empty maximum or minimum where a result is wanted.
    """
    count = math.prod(body.low.shape[a] for a in axes)
    if kind in ("any", "all"):
        fn = np.any if kind == "any" else np.all
        low, high = np.asarray(fn(body.low, axis=axes)), np.asarray(fn(body.high, axis=axes))
        return Bounds(low, high, np.zeros(low.shape, np.bool_))
    if kind in EXTREMES:
        left = [s for a, s in enumerate(body.low.shape) if a not in axes]
        if count == 0 and 0 not in left:
            raise EmptyReductionError(f"{kind} over an empty axis")
        if count == 0:
            zero = np.zeros(left, np.int64 if kind.startswith("arg") else held(dtype))
            return Bounds(zero, zero, np.zeros(left, np.bool_))
        return _argument(kind, body, axes) if kind.startswith("arg") else _extreme(kind, body, axes)
    if not body.is_float or p is None:
        return integers.fold(kind, body, axes, dtype)
    return _sum(body, axes, count, p, merged) if kind == "sum" else _product(body, axes, count, p)


def _sum(a: Bounds, axes: Axes, count: int, p: Precision, merged: int) -> Bounds:
    def some(v: Array) -> Array:
        return np.asarray(v.any(axis=axes))

    lows = np.isfinite(a.low)
    finite = lows, lows if a.high is a.low else np.isfinite(a.high)
    nan = some(a.nan)
    none: Array = np.zeros(nan.shape, np.bool_)
    gone, plus_sure, minus_sure, plus, minus = none, none, none, none, none
    plain = every(finite[0]) and every(finite[1])
    if plain:
        low_in = a.low.astype(p.wide)
        high_in = low_in if a.high is a.low else a.high.astype(p.wide)
    else:
        gone, plus, minus = some(a.empty), some(a.high == _INF), some(a.low == -_INF)
        plus_sure, minus_sure = some((a.low == _INF) & ~a.empty), some((a.high == -_INF) & ~a.empty)
        low_in, high_in = (np.where(f, v, 0).astype(p.wide) for f, v in zip(finite, (a.low, a.high)))
    size = np.abs(low_in) if high_in is low_in else np.maximum(np.abs(low_in), np.abs(high_in))
    total = size.sum(axis=axes)
    steps = max(count - 1, merged)
    relative = gamma(steps, p.unit) + gamma(count + 2, p.own) if steps > 0 else 0.0
    error = p.wide(relative) * total
    least = low_in.sum(axis=axes)
    most = least if high_in is low_in else high_in.sum(axis=axes)
    low, high = (least - error, most + error) if steps > 0 else (least, most)
    limit = p.wide(p.overflow)
    stretch = 1 + p.wide(gamma(count + 2, p.unit)) if count > 1 else p.wide(1)
    small = every(total * stretch < limit / 2)
    if not (small or every(np.isfinite(total))):
        # The terms are beyond the wide type too. A sum of terms of one sign is half of what it should be or more.
        low = np.where(np.isfinite(total), low, np.where((low_in >= 0).all(axis=axes), least / 2, -_INF))
        high = np.where(np.isfinite(total), high, np.where((high_in <= 0).all(axis=axes), most / 2, _INF))
    # A zero sum is +0, but a sum of -0 alone may have either sign, depending on its initial value.
    if not low.all():
        minus_zero = ((a.low == 0) & np.signbit(a.low)).all(axis=axes)
        low = np.where(low == 0, np.where(minus_zero & (count > 0), p.wide(-0.0), p.wide(0.0)), low)
    if not high.all():
        high = np.where(high == 0, p.wide(0.0), high)
    if small and relative < 0.5 and plain:
        # No term is infinite, and no sum near it: the general way below says the same.
        return narrow(low, high, nan)
    # A partial sum of the positive (negative) terms may overflow in some order, and then the result is infinite or NaN.
    up = down = np.zeros(nan.shape, np.bool_)
    if not small:
        up = np.where(high_in > 0, high_in, 0).sum(axis=axes) * stretch >= limit
        down = np.where(low_in < 0, -low_in, 0).sum(axis=axes) * stretch >= limit
    low = np.where(down | minus | (low <= -limit), -_INF, low)
    high = np.where(up | plus | (high >= limit), _INF, high)
    # An infinite term leaves itself or NaN.
    low, high = np.where(plus_sure, _INF, low), np.where(minus_sure, -_INF, high)
    nan = np.asarray(nan | ((plus | up) & (minus | down)))
    return narrow(np.where(gone, _INF, low), np.where(gone, -_INF, high), nan)


def _product(a: Bounds, axes: Axes, count: int, p: Precision) -> Bounds:
    keep = [d for d in range(a.low.ndim) if d not in axes]
    flat = a.map(lambda v: np.moveaxis(v, keep, range(len(keep))).reshape([v.shape[d] for d in keep] + [count]))
    shape = flat.low.shape[:-1]
    result = exact(np.ones(shape))
    for k in range(count):
        factor = flat.map(lambda v, k=k: v[..., k])  # type: ignore[misc]  # a default binds the loop's value
        result = factor if k == 0 else multiply(result, factor, p, fused=True)
    if count <= 2:
        return result
    factors = [flat.map(lambda v, k=k: v[..., k]) for k in range(count)]  # type: ignore[misc]  # a default binds the loop's value
    if (result.nan & ~flat.nan.any(axis=-1)).any():
        # Of numbers alone, 0 times what has overflowed in the wide type too: in another order it is 0.
        numbers = (np.isfinite(flat.low) & np.isfinite(flat.high) & ~flat.nan).all(axis=-1)
        lost = numbers & result.nan & ((flat.low <= 0) & (flat.high >= 0)).any(axis=-1)
        low, high = np.where(lost, np.fmin(result.low, -0.0), result.low), np.where(lost, np.fmax(result.high, 0.0), result.high)
        result = Bounds(low, high, result.nan)
    return in_any_order(result, factors, count - 1, p)


def _extreme(kind: str, a: Bounds, axes: Axes) -> Bounds:
    fn = np.max if kind == "max" else np.min
    low, high = np.asarray(fn(a.low, axis=axes)), np.asarray(fn(a.high, axis=axes))
    nan: Array = np.asarray(a.nan.any(axis=axes))
    if not a.is_float:
        return Bounds(low, high, nan)
    gone = np.asarray(a.empty).any(axis=axes)
    # Zeros of both signs tie: either may come.
    low = np.where((low == 0) & has_minus_zero(a).any(axis=axes), -0.0, low)
    high = np.where((high == 0) & has_plus_zero(a).any(axis=axes), 0.0, high)
    number = None if a.number is None else np.where(nan, UNKNOWN, _winner(kind, a, axes))
    return Bounds(np.where(gone, _INF, low), np.where(gone, -_INF, high), nan, number)


def _winner(kind: str, a: Bounds, axes: Axes) -> Array:
    """Return the value number of the element that is surely the extreme, `UNKNOWN` where several may be."""
    keep = [d for d in range(a.low.ndim) if d not in axes]
    low, high = (a.low, a.high) if kind == "max" else (-a.high, -a.low)
    rows = [np.moveaxis(v, keep, range(len(keep))) for v in (low, high, np.asarray(a.number))]
    count = math.prod(a.low.shape[d] for d in axes)
    low, high, number = (v.reshape([*v.shape[: len(keep)], count]) for v in rows)
    # Of those that are at least as large as any other can be, a single point or the one that may be larger.
    best = np.where(low == low.max(-1, keepdims=True), high, -_INF).argmax(-1)[..., None]
    least, winner = np.take_along_axis(low, best, -1), np.take_along_axis(number, best, -1)
    others = np.arange(low.shape[-1]) != best
    beaten = (high <= least) | ((number == winner) & (winner != UNKNOWN)) | ~others
    return np.where(beaten.all(-1), winner[..., 0], UNKNOWN)


def _argument(kind: str, a: Bounds, axes: Axes) -> Bounds:
    """The first position of the extreme, NaN counting as extreme; a range of positions where several may win."""
    keep = [d for d in range(a.low.ndim) if d not in axes]
    count = int(np.prod([a.low.shape[d] for d in axes], dtype=np.int64))
    flat = a.map(lambda v: np.moveaxis(v, keep, range(len(keep))).reshape([v.shape[d] for d in keep] + [count]))
    if flat.is_bool:
        # False before True, as integers order them.
        flat = Bounds(flat.low.astype(np.int64), flat.high.astype(np.int64), flat.nan)
    low, high = flat.low, flat.high
    if kind == "argmin":
        # The complement turns the order of integers around without overflow.
        low, high = (-high, -low) if a.is_float else (~high, ~low)
    gone = flat.low > flat.high
    if a.is_float:
        # NaN beats every number; the first NaN wins.
        low, high = np.where(gone, _INF, low), np.where(flat.nan, _INF, high)
    sure_nan = gone
    maybe_nan = flat.nan
    least_of_max = low.max(axis=-1, keepdims=True)
    possible = high >= least_of_max
    # A sure NaN outranks any number, and an earlier element that is surely no smaller outranks a later one.
    first_nan = np.where(sure_nan.any(axis=-1), sure_nan.argmax(axis=-1), count)[..., None]
    position = np.arange(count)
    possible &= position <= first_nan
    possible &= maybe_nan | ~sure_nan.any(axis=-1, keepdims=True)
    best_before = np.concatenate(
        [np.full((*low.shape[:-1], 1), _least(low), low.dtype), np.maximum.accumulate(low, -1)[..., :-1]], -1
    )
    possible &= maybe_nan | (high > best_before) | (position == 0)
    first = possible.argmax(axis=-1).astype(np.int64)
    last = (count - 1 - possible[..., ::-1].argmax(axis=-1)).astype(np.int64)
    return Bounds(first, last, np.zeros(first.shape, np.bool_))


def _least(values: Array) -> float | int:
    return -_INF if values.dtype.kind == "f" else int(np.iinfo(values.dtype).min)
