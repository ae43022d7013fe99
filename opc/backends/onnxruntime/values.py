"""Sessions of ONNX Runtime on NumPy arrays, those of ml_dtypes too, for which ONNX Runtime's Python has no NumPy type."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opc.backends.dtypes import as_bits, foreign, require_dtype
from opc.ir.dtypes import DTYPES, DType, numpy_dtype

if TYPE_CHECKING:
    from opc.backends.base import Array

_FOREIGN = {d.row.onnx[1]: d for d in DTYPES if d.row.numpy != "numpy" and d.row.onnx is not None}
"""The dtypes that NumPy lacks, by ONNX's number."""


def has(dtype: DType) -> bool:
    """Whether ONNX Runtime has tensors of a dtype with an element or less in a byte: of fewer bits it packs several."""
    return dtype.row.onnx is not None and not dtype.is_small


def to_value(array: Array) -> Any:
    """Return an array as an `OrtValue`; a strided one is copied.

    Raises:
        Unsupported: when ONNX has no such dtype.
    """
    import numpy as np
    from onnxruntime import OrtValue

    require_dtype(array, "ONNX Runtime", has)
    array = np.require(array, requirements="C")
    own = foreign(array)
    if own is not None and own.row.onnx is not None:
        return OrtValue.ortvalue_from_numpy_with_onnx_type(as_bits(array), own.row.onnx[1])
    return OrtValue.ortvalue_from_numpy(array)


def from_value(value: Any) -> Array:
    """Return an `OrtValue` as a new array."""
    own = _FOREIGN.get(value.element_type())
    if own is None:
        array: Array = value.numpy()
        return array
    import numpy as np

    shape = value.shape()
    data = ctypes.string_at(value.data_ptr(), int(np.prod(shape)) * own.itemsize) if np.prod(shape) else b""
    return np.frombuffer(data, dtype=numpy_dtype(own)).reshape(shape).copy()


def inference_session(model: Any, options: Any = None, *, threads: int = 2) -> Any:
    """Return a session on the CPU."""
    import onnxruntime

    options = quiet(onnxruntime.SessionOptions() if options is None else options, threads)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def quiet(options: Any, threads: int = 2) -> Any:
    """Return options whose sessions let idle threads sleep: those of hundreds of sessions would wait by spinning."""
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


def run(session: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of a session in order."""
    names = [o.name for o in session.get_outputs()]
    values = session.run_with_ort_values(names, {n: to_value(a) for n, a in feeds.items()})
    return [from_value(v) for v in values]
