"""Tensors in a GPU's memory of libraries that opc has no backend for, such as CuPy: torch reads and makes them through DLPack."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_CUDA = 2
"""DLPack's number of the device."""


def is_on_gpu(value: Any) -> bool:
    """Whether a value can be read through DLPack and is in a GPU's memory."""
    place = getattr(value, "__dlpack_device__", None)
    return place is not None and hasattr(value, "__dlpack__") and int(place()[0]) == _CUDA


def has_gpu() -> bool:
    """Whether torch is installed, and can use a GPU of CUDA's."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def through_torch(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of torch's tensors with arguments some of which are on a GPU, and return results of the first one's kind.

    No element is copied, and streams wait for each other as DLPack says. What was given as `out` is returned itself.

    Raises:
        TypeError: when that kind can't be made from another one.
    """
    import torch

    first = next(v for v in (*args, *kwargs.values()) if is_on_gpu(v))
    made = _maker(first)

    def lent(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(lent, value))
        return torch.from_dlpack(value) if is_on_gpu(value) else value

    found = function(*map(lent, args), **{name: lent(value) for name, value in kwargs.items()})
    if kwargs.get("out") is not None:
        return kwargs["out"]
    if isinstance(found, torch.Tensor):
        return made(found)
    results = (t if t is None else made(t) for t in found)
    return type(found)._make(results) if hasattr(found, "_make") else tuple(results)


def _maker(value: Any) -> Callable[[Any], Any]:
    """Return `from_dlpack` of the library that a value is of: its array API's, or its module's."""
    namespace = getattr(value, "__array_namespace__", None)
    module = sys.modules.get(type(value).__module__.partition(".")[0]) if namespace is None else namespace()
    found: Callable[[Any], Any] | None = getattr(module, "from_dlpack", None)
    if found is None:
        raise TypeError(f"{type(value).__module__}.{type(value).__name__} has __dlpack__, but its library has no from_dlpack")
    return found
