"""NumPy arrays to Paddle's tensors and back, and what Paddle raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends.base import Unsupported
from opc.backends.paddle.signature import MAX_RANK

if TYPE_CHECKING:
    from opc.backends.base import Array

REFUSALS = (RuntimeError, ValueError, TypeError, OSError, NotImplementedError)
"""What Paddle raises for a bad call: an error of an operator is an OSError."""


def carried(array: Array) -> Array:
    """Return an array as Paddle's NumPy interface knows it: bfloat16 as its bits.

    Raises:
        Unsupported: when it has more axes than Paddle's tensors.
    """
    if array.ndim > MAX_RANK:
        raise Unsupported(f"Paddle's tensors have at most {MAX_RANK} axes")
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def to_paddle(array: Array) -> Any:
    """Return a tensor with the array's values, and its strides where Paddle has such: all positive, whole elements apart.

    Raises:
        Unsupported: when Paddle has no such tensor.
    """
    import paddle

    if any(s < 0 for s in array.strides):
        raise Unsupported("Paddle's tensors have no negative strides")
    bits = carried(array)
    if array.flags.c_contiguous or array.size == 0:
        return paddle.to_tensor(np.ascontiguousarray(bits).reshape(array.shape), place=paddle.CPUPlace())
    # Paddle copies what it takes from NumPy, so the strides are made anew over a copy of the memory.
    steps = [s // array.itemsize for s in array.strides]
    if any(s % array.itemsize for s in array.strides):
        raise Unsupported("Paddle's tensors are strided by whole elements")
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True))
    flat = np.lib.stride_tricks.as_strided(bits, (length,), (array.itemsize,), writeable=False)
    return paddle.as_strided(paddle.to_tensor(flat.copy(), place=paddle.CPUPlace()), list(array.shape), steps)


def to_numpy(tensor: Any) -> Array:
    """Return an array with a tensor's values."""
    import paddle

    array: Array = np.asarray(tensor.detach().numpy())
    if tensor.dtype == paddle.bfloat16:
        import ml_dtypes

        return array.view(ml_dtypes.bfloat16)
    return array


def dtype(name: str) -> Any:
    """Return Paddle's dtype of a name, the name itself where it has none."""
    import paddle

    return getattr(paddle, name, name)
