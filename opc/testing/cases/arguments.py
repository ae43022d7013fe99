"""Arguments of test calls: tensors with a memory layout, and values to fill them with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from opc.ir.dtypes import DType, numpy_dtype
from opc.testing.oracle.bounds import Array

LAYOUTS = ("strided", "negative", "transposed", "broadcast", "offset")
"""Memory layouts other than contiguous; see `TensorArg.array`."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorArg:
    """A tensor argument: values, and the layout its memory has when the op is called. Survives pickling, as strides do not."""

    data: Array
    layout: str = "contiguous"

    def array(self) -> Array:
        """Return the tensor as a view in its layout.

        strided: every second element of a larger buffer, on every axis. negative: all axes stored backwards. transposed: axes
        stored in reverse order. broadcast: the first index of every other axis repeated with stride 0, which changes the values.
        offset: starts one element into its buffer, so that it is not aligned to a vector.
        """
        data: Array = np.ascontiguousarray(self.data).reshape(self.data.shape)
        match self.layout:
            case "strided":
                buffer = np.full(tuple(2 * s for s in data.shape), data.flat[0] if data.size else 0, data.dtype)
                view: Array = buffer[_all_axes(data, 2)]
                view[...] = data
                return view
            case "negative":
                back = _all_axes(data, -1)
                return np.asarray(np.ascontiguousarray(data[back]).reshape(data.shape)[back])
            case "transposed":
                return np.array(data.T, order="C").T
            case "broadcast":
                first = tuple(slice(0, 1) if axis % 2 == 0 and s > 0 else slice(None) for axis, s in enumerate(data.shape))
                return np.broadcast_to(data[(..., *first)], data.shape)
            case "offset":
                buffer = np.empty(data.size + 1, data.dtype)
                buffer[1:] = data.reshape(-1)
                return buffer[1:].reshape(data.shape)
            case _:
                return data


def _all_axes(data: Array, step: int) -> Any:
    """Return the index that takes every `step`-th element on every axis; the ellipsis keeps a view of rank 0 an array."""
    return (..., *[slice(None, None, step)] * data.ndim)


def special_values(dtype: DType) -> Array:
    """Return the values of a floating dtype where kernels go wrong: NaN, infinities, zeros, denormals, ends of the range."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    largest, normal, denormal, step = (float(v) for v in (info.max, info.smallest_normal, info.smallest_subnormal, info.eps))
    positive = [0.0, denormal, 3 * denormal, normal, step, 0.5, 1.0, 1 + step, 2.5, 20.0, 90.0, largest / 4, largest, np.inf]
    values = [sign * v for v in positive for sign in (1, -1)] + [np.nan]
    return np.array(values).astype(numpy_dtype(dtype))


def random_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return ordinary values of a dtype: normal deviates of several magnitudes, small integers, bools."""
    if dtype.is_floating:
        scale = rng.choice([0.25, 1.0, 1.0, 4.0], size=shape)
        return np.asarray(rng.standard_normal(shape) * scale).astype(numpy_dtype(dtype))
    if dtype is DType.BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    low = max(dtype.least, -9)
    return np.asarray(rng.integers(low, 10, shape)).astype(numpy_dtype(dtype))


def few_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return values that are often alike: 0, 1 and, where the dtype has it, -1."""
    least = -1 if dtype.is_floating else max(dtype.least, -1)
    return np.asarray(rng.integers(least, 2, shape)).astype(numpy_dtype(dtype))


def mixed_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, share: float) -> Array:
    """Return values of which a `share` is special: `special_values` of floats, the ends of the range of integers."""
    values = random_values(rng, shape, dtype)
    if dtype is DType.BOOL:
        return values
    if dtype.is_floating:
        pool = special_values(dtype)
    else:
        ends = [dtype.least, dtype.least + 1, 0, dtype.most - 1, dtype.most]
        pool = np.array(ends, numpy_dtype(dtype))
    chosen = rng.random(shape) < share
    return np.asarray(np.where(chosen, pool[rng.integers(0, len(pool), shape)], values)).astype(numpy_dtype(dtype))
