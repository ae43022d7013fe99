"""NumPy arrays to torch's tensors and back."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from opc.backends.base import Unsupported

if TYPE_CHECKING:
    import torch

    from opc.backends.base import Array


def to_torch(array: Array) -> torch.Tensor:
    """Return a tensor with the array's values and strides, sharing its memory.

    Raises:
        Unsupported: when torch has no such strides.
    """
    import torch

    if any(s < 0 for s in array.strides):
        raise Unsupported("torch tensors have no negative strides")
    if array.dtype.name == "bfloat16":
        return to_torch(array.view(np.int16)).view(torch.bfloat16)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return an array with the tensor's values."""
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return np.asarray(tensor.view(torch.int16)).view(ml_dtypes.bfloat16)
    return np.asarray(tensor)
