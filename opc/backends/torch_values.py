"""NumPy arrays to torch's tensors and back, for the backends that call with these."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from opc.backends.base import Unsupported
from opc.backends.dtypes import as_bits, foreign, of_bits, require_dtype
from opc.ir.dtypes import DTYPES

if TYPE_CHECKING:
    import torch

    from opc.backends.base import Array

_FOREIGN = frozenset(d.value for d in DTYPES if d.row.numpy != "numpy")


def to_torch(array: Array) -> torch.Tensor:
    """Return a tensor with the array's values and strides, sharing its memory.

    Raises:
        Unsupported: when torch has no such strides, or no such dtype.
    """
    import torch

    if any(s < 0 for s in array.strides):
        raise Unsupported("torch tensors have no negative strides")
    require_dtype(array, "torch", lambda d: d.row.torch is not None)
    own = foreign(array)
    if own is not None:
        return to_torch(as_bits(array)).view(getattr(torch, own.value))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return an array with the tensor's values."""
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _FOREIGN:
        return of_bits(np.asarray(tensor.view(torch.uint8 if tensor.dtype.itemsize == 1 else torch.int16)), name)
    return np.asarray(tensor)
