"""Sessions of ONNX Runtime on NumPy arrays, bfloat16 too, for which ONNX Runtime's Python has no NumPy type."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opc.backends.base import Array

BFLOAT16 = 16
"""`TensorProto.BFLOAT16`."""


def to_value(array: Array) -> Any:
    """Return an array as an `OrtValue`; a strided one is copied."""
    import numpy as np
    from onnxruntime import OrtValue

    array = np.require(array, requirements="C")
    if array.dtype.name == "bfloat16":
        return OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), BFLOAT16)
    return OrtValue.ortvalue_from_numpy(array)


def from_value(value: Any) -> Array:
    """Return an `OrtValue` as a new array."""
    if value.element_type() != BFLOAT16:
        array: Array = value.numpy()
        return array
    import numpy as np
    from ml_dtypes import bfloat16

    shape = value.shape()
    data = ctypes.string_at(value.data_ptr(), int(np.prod(shape)) * 2) if np.prod(shape) else b""
    return np.frombuffer(data, dtype=bfloat16).reshape(shape).copy()


def inference_session(model: Any, options: Any = None, *, threads: int = 2) -> Any:
    """Return a session on the CPU whose idle threads sleep: hundreds of sessions would wait by spinning."""
    import onnxruntime

    options = onnxruntime.SessionOptions() if options is None else options
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(session: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of a session in order."""
    names = [o.name for o in session.get_outputs()]
    values = session.run_with_ort_values(names, {n: to_value(a) for n, a in feeds.items()})
    return [from_value(v) for v in values]
