"""Names of data types: PopART's, NumPy's and ONNX's."""

import numpy as np

# PopART's name, NumPy's name, ONNX's TensorProto.DataType.
TABLE = (
    ("FLOAT", "float32", 1),
    ("UINT8", "uint8", 2),
    ("INT8", "int8", 3),
    ("UINT16", "uint16", 4),
    ("INT16", "int16", 5),
    ("INT32", "int32", 6),
    ("INT64", "int64", 7),
    ("BOOL", "bool", 9),
    ("FLOAT16", "float16", 10),
    ("DOUBLE", "float64", 11),
    ("UINT32", "uint32", 12),
    ("UINT64", "uint64", 13),
)
# What has a number in ONNX and a name in PopART, but no type in NumPy.
_OTHERS = {"STRING": 8, "COMPLEX64": 14, "COMPLEX128": 15, "BFLOAT16": 16, "UNDEFINED": 0}
ONNX_NUMBER = {**{name: number for name, _, number in TABLE}, **_OTHERS}
FROM_ONNX = {number: name for name, number in ONNX_NUMBER.items()}
FROM_NUMPY = {np.dtype(numpy_name): name for name, numpy_name, _ in TABLE}
TO_NUMPY = {name: np.dtype(numpy_name) for name, numpy_name, _ in TABLE}


def popart_name(dtype: np.dtype) -> str:
    """PopART's name of a type of NumPy; raises KeyError for one that it has no name for."""
    return FROM_NUMPY[np.dtype(dtype)]
