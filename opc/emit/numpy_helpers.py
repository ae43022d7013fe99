"""Functions that generated NumPy code calls and carries along: those the function table names, and a few on arrays.

They are written as generated code is, without annotations and 88 columns wide.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import math

import numpy as np


def erf(x):
    """Error function."""
    x = np.asarray(x)
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def erfc(x):
    """Complementary error function, 1 - erf(x), accurate for large x too."""
    x = np.asarray(x)
    return np.vectorize(math.erfc, otypes=[x.dtype])(x)


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def floordiv(x, y):
    """Quotient rounded to minus infinity."""
    return np.floor_divide(x, y)


def mod(x, y):
    """Remainder of the division that rounds to minus infinity: it has the sign of y."""
    return np.remainder(x, y)


def power(x, y):
    """X to the power of y, nan where that is not real."""
    return np.power(1.0 * x, y)


def accumulator(dtype):
    """Element type that sums of a dtype are held in."""
    kind = np.dtype(dtype).kind
    return np.int64 if kind in "iub" else np.result_type(dtype, np.float32)


def first(*arrays):
    """Return the first array that is given."""
    return next(x for x in arrays if x is not None)


def shape_of(x):
    """Return the shape of an array, that of a scalar for one that is absent."""
    return () if x is None else x.shape


def widen(x):
    """Return x in the type it is computed in: half types in float32, others in their own."""
    return x if x.dtype.kind in "iub" else x.astype(np.result_type(x, np.float32))


def convert(x, dtype):
    """Return x as a dtype; float to int truncates and saturates, and nan gives 0."""
    x, dtype = np.asarray(x), np.dtype(dtype)
    if dtype.kind == "b":
        return x != 0
    if dtype.kind not in "iu":
        return x.astype(np.result_type(dtype, np.float32))
    if x.dtype.kind in "iub":
        return x.astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    whole = np.trunc(np.where(np.isnan(x), 0.0, x))
    inside = (whole > float(low)) & (whole < float(high))
    bound = np.where(whole > 0, high, low).astype(dtype)
    return np.where(inside, np.where(inside, whole, 0.0).astype(dtype), bound)


def sum_to(x, shape):
    """Sum over the axes along which an array of `shape` was broadcast to that of x."""
    lead = x.ndim - len(shape)
    ones = tuple(lead + i for i, n in enumerate(shape) if n == 1)
    return np.sum(x, axis=(*range(lead), *ones)).reshape(shape)


def some(x, axis, what):
    """Return x; ValueError where nothing is reduced, since `what` has no value then.

    Where the result has no element, x has one along each axis, which NumPy needs.
    """
    axes = np.arange(x.ndim) if axis is None else np.atleast_1d(axis) % x.ndim
    if all(x.shape[a] != 0 for a in axes):
        return x
    rest = [1 if i in axes else n for i, n in enumerate(x.shape)]
    if 0 not in rest:
        raise ValueError(f"{what} of nothing: its size is 0")
    return np.empty(rest, x.dtype)


def grid(sizes, trailing):
    """Return the indices along each of some axes, followed by `trailing` more axes."""
    rank = len(sizes)
    shapes = [(n,) + (1,) * (rank - i - 1 + trailing) for i, n in enumerate(sizes)]
    return [np.arange(n).reshape(shape) for n, shape in zip(sizes, shapes)]


def take(x, indices, pad=0, checked=()):
    """Return x at arrays of indices, `pad` outside; IndexError on a `checked` axis."""
    inside = np.bool_(True)
    clipped = []
    for axis, (index, size) in enumerate(zip(indices, x.shape)):
        fits = (np.asarray(index) >= 0) & (np.asarray(index) < size)
        if axis in checked and not np.all(fits):
            raise IndexError(f"index outside of axis {axis}, which has size {size}")
        inside = inside & fits
        clipped.append(np.clip(index, 0, max(size - 1, 0)))
    if x.size == 0:
        shape = np.broadcast_shapes(*(np.shape(i) for i in clipped))
        return np.broadcast_to(pad, shape).astype(x.dtype)
    return np.where(inside, x[tuple(clipped)], pad)
