"""Tensors on GPUs in a torch for CPUs: their device and dispatch key are CUDA's, their memory is the host's.

Operators of torch's own compute on aliases of such tensors on the CPU. Torch asks for CUDA when it is imported, so that
`load` comes before that; `install` then holds for the process.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

CPU = (1, 0)
"""The CPU by DLPack's numbers."""


def load(path: Path) -> ctypes.CDLL:
    """Load what torch lacks, made of `runtime/emulation/cuda/torch.cpp`, and make this process one with two GPUs.

    Raises:
        ImportError: when it is not built, or torch has been imported already.
    """
    if _LOADED:
        return _LOADED[0]
    if "torch" in sys.modules:
        raise ImportError("torch was imported before it could have GPUs")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} can't be loaded: {error}") from error
    _LOADED.append(library)
    if not install():
        raise ImportError("torch does not take CUDA for its accelerator")
    return library


def _alias(tensor: Tensor, device: tuple[int, int]) -> Tensor:
    """Return a tensor on another device, by DLPack's numbers, with the same memory."""
    import torch

    capsule = torch._C._to_dlpack(tensor.detach())
    # A DLTensor begins with a pointer and a device.
    place = _pointer(capsule, b"dltensor") + 8
    (ctypes.c_int32 * 2).from_address(place)[:] = [*device]
    found: Tensor = torch._C._from_dlpack(capsule)
    return found


def to_gpu(tensor: Tensor, index: int = 0) -> Tensor:
    """Return a tensor on a GPU with the same memory."""
    return _alias(tensor, (2, index))


def to_cpu(tensor: Tensor) -> Tensor:
    """Return a tensor on the CPU with the same memory."""
    return _alias(tensor, CPU)


def _on_cpu(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call an operator of torch's own on the CPU, and return its results on the GPU that it was called for."""
    import torch
    from torch.utils._pytree import tree_map

    given: dict[int, Tensor] = {}
    index = 0

    def there(value: Any) -> Any:
        nonlocal index
        if isinstance(value, torch.device):
            index = value.index or 0
            return torch.device("cpu")
        if not isinstance(value, torch.Tensor):
            return value
        alias = value
        if value.is_cuda:
            index, alias = value.device.index, to_cpu(value)
        given[id(alias)] = value
        return alias

    def back(value: Any) -> Any:
        return (given[id(value)] if id(value) in given else to_gpu(value, index)) if isinstance(value, torch.Tensor) else value

    moved = tree_map(there, (args, kwargs))
    return tree_map(back, op(*moved[0], **moved[1]))


_LOADED: list[ctypes.CDLL] = []
_LIBRARIES: list[torch.library.Library] = []


def install() -> bool:
    """Make this process one with two GPUs, where the library of `load` came before torch; whether torch takes it for one."""
    import torch

    torch.cuda._lazy_init = lambda: None
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.current_stream = lambda device=None: SimpleNamespace(cuda_stream=0)
    torch.cuda.synchronize = lambda device=None: None
    every, own = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    every.fallback(_on_cpu, "CUDA")
    # It has a kernel for all devices, which knows none for this one.
    own.impl("copy_", lambda *args, **kwargs: _on_cpu(torch.ops.aten.copy_.default, *args, **kwargs), "CUDA")
    _LIBRARIES.extend((every, own))
    return bool(torch.accelerator.current_accelerator() == torch.device("cuda"))
