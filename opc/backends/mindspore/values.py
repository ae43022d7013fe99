"""Between NumPy's arrays and MindSpore's tensors, and the folder MindSpore may write to."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends.base import Unsupported
from opc.backends.dtypes import as_bits, of_bits, require_dtype
from opc.backends.mindspore.api import dtype_name
from opc.ir.dtypes import DType

if TYPE_CHECKING:
    from opc.backends.base import Array


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Work in a temporary folder: MindSpore writes `rank_0` and `kernel_meta` to the current one."""
    with tempfile.TemporaryDirectory(prefix="opc-mindspore-") as folder, contextlib.chdir(folder):
        yield Path(folder)


def to_mindspore(array: Array) -> Any:
    """Return a tensor with the array's values, and its strides where none is negative."""
    import mindspore

    require_dtype(array, "MindSpore", lambda d: d.row.mindspore is not None)
    if array.flags.c_contiguous:
        return mindspore.Tensor(array)
    if any(s < 0 for s in array.strides):
        raise Unsupported("MindSpore's tensors have no negative strides")
    from mindspore.ops.auto_generate.gen_ops_prim import AsStrided

    strides = tuple(s // array.itemsize for s in array.strides)
    count = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides)) if array.size else 0
    memory = np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,))
    return AsStrided()(mindspore.Tensor(np.ascontiguousarray(memory)), array.shape, strides, 0)


def to_numpy(tensor: Any) -> Array:
    """Return an array with the tensor's values."""
    array: Array = tensor.asnumpy()
    if array.dtype.name == "bfloat16":
        return of_bits(as_bits(array), "bfloat16")  # MindSpore has a type of that name of its own
    return array


def dtype(name: str) -> Any:
    """Return MindSpore's dtype of a name, the name itself where it has none."""
    import mindspore

    return (
        getattr(mindspore, dtype_name(DType(name))) if name in {d.value for d in DType if d.row.mindspore is not None} else name
    )


def message(error: Exception) -> str:
    """Return what MindSpore says is wrong, without the places in its own code."""
    return str(error).split("\n\n---")[0].strip()
