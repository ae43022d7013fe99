"""NumPy arrays to Paddle's tensors and back, and what Paddle raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends.base import Unsupported
from opc.backends.dtypes import as_bits, of_bits, require_dtype
from opc.backends.paddle.signature import MAX_RANK
from opc.ir.dtypes import DTYPES

if TYPE_CHECKING:
    from opc.backends.base import Array

REFUSALS = (RuntimeError, ValueError, TypeError, OSError, NotImplementedError)
"""What Paddle raises for a bad call: an error of an operator is an OSError."""


_FOREIGN = frozenset(d.value for d in DTYPES if d.row.numpy != "numpy")


def carried(array: Array) -> Array:
    """Return an array as Paddle's NumPy interface knows it: of dtypes that it lacks the bits, of bfloat16 as uint16.

    Raises:
        Unsupported: when it has more axes than Paddle's tensors, or a dtype that Paddle lacks.
    """
    if array.ndim > MAX_RANK:
        raise Unsupported(f"Paddle's tensors have at most {MAX_RANK} axes")
    require_dtype(array, "Paddle", lambda d: d.row.paddle is not None)
    if array.dtype.name == "bfloat16":
        return as_bits(array)
    return array.view(f"i{array.dtype.itemsize}") if _viewed(array.dtype.name) else array


def _viewed(dtype: str) -> bool:
    """Whether Paddle makes tensors of a dtype from no array, but from a tensor of the same bits."""
    return any(d.value == dtype and not d.row.paddle_graphs for d in DTYPES)


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
        tensor = paddle.to_tensor(np.ascontiguousarray(bits).reshape(array.shape), place=paddle.CPUPlace())
        return tensor.view(getattr(paddle, array.dtype.name)) if _viewed(array.dtype.name) else tensor
    # Paddle copies what it takes from NumPy, so the strides are made anew over a copy of the memory.
    steps = [s // array.itemsize for s in array.strides]
    if any(s % array.itemsize for s in array.strides):
        raise Unsupported("Paddle's tensors are strided by whole elements")
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True))
    flat = np.lib.stride_tricks.as_strided(bits, (length,), (array.itemsize,), writeable=False)
    if _viewed(array.dtype.name):
        raise Unsupported(f"Paddle has no strided tensors of {array.dtype}")
    return paddle.as_strided(paddle.to_tensor(flat.copy(), place=paddle.CPUPlace()), list(array.shape), steps)


def to_numpy(tensor: Any) -> Array:
    """Return an array with a tensor's values."""
    array: Array = np.asarray(tensor.detach().numpy())
    name = str(tensor.dtype).removeprefix("paddle.")
    return of_bits(array, name) if name in _FOREIGN else array


def dtype(name: str) -> Any:
    """Return Paddle's dtype of a name, the name itself where it has none."""
    import paddle

    return getattr(paddle, name, name)
