"""What the generated modules need at run time: opc's C ABI (`opc/abi.h`) in ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

CODES = {"f": 2, "i": 0, "u": 1, "b": 6}


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class TensorType(ctypes.Structure):
    _fields_ = (("dtype", DataType), ("ndim", ctypes.c_int32), ("shape", ctypes.c_int64 * 32))


class Context(ctypes.Structure):
    _fields_ = (
        ("parallel_for", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("message_size", ctypes.c_int64),
    )


def tensor(array: np.ndarray[Any, Any]) -> Tensor:
    """Return an array as the kernel takes it; the array must outlive it."""
    bfloat16 = array.dtype == ml_dtypes.bfloat16
    if not bfloat16 and array.dtype.kind not in CODES:
        raise TypeError(f"dtype {array.dtype} is none of a kernel's")
    dtype = DataType(4 if bfloat16 else CODES[array.dtype.kind], array.dtype.itemsize * 8, 1)
    sizes = ctypes.c_int64 * max(array.ndim, 1)
    shape = sizes(*array.shape)
    strides = sizes(*(s // array.dtype.itemsize for s in array.strides))
    return Tensor(array.ctypes.data, 1, 0, array.ndim, dtype, shape, strides, 0)


def numpy_type(dtype: DataType) -> np.dtype[Any]:
    """Return the NumPy dtype of a kernel's."""
    if dtype.code == 4:
        return np.dtype(ml_dtypes.bfloat16)
    kind = next(kind for kind, code in CODES.items() if code == dtype.code)
    return np.dtype(bool if kind == "b" else f"{kind}{dtype.bits // 8}")


class Library:
    """A built library of kernels."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))

    def call(
        self, name: str, attributes: ctypes.Structure, inputs: Sequence[Any], outputs: Sequence[str], only: Sequence[str]
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Run a kernel and return those of its outputs that are in `only`.

        Raises:
            ValueError: with the kernel's message, when it refuses the call.
        """
        message = ctypes.create_string_buffer(512)
        context = Context(None, None, ctypes.cast(message, ctypes.c_char_p), len(message))
        given = [None if x is None else np.asarray(x) for x in inputs]
        tensors = [None if x is None else tensor(x) for x in given]
        taken = _pointers(tensors)
        types = (TensorType * len(outputs))()
        if getattr(self.library, f"opc_{name}_infer")(taken, ctypes.byref(attributes), types, ctypes.byref(context)):
            raise ValueError(message.value.decode())
        made = {output: np.empty(t.shape[: t.ndim], numpy_type(t.dtype)) for output, t in zip(outputs, types) if output in only}
        results = [tensor(made[output]) if output in made else None for output in outputs]
        if getattr(self.library, f"opc_{name}")(taken, _pointers(results), ctypes.byref(attributes), ctypes.byref(context)):
            raise ValueError(message.value.decode())
        return made


def _pointers(tensors: Sequence[Tensor | None]) -> Any:
    pointers = ctypes.POINTER(Tensor) * max(len(tensors), 1)
    return pointers(*(ctypes.POINTER(Tensor)() if t is None else ctypes.pointer(t) for t in tensors))
