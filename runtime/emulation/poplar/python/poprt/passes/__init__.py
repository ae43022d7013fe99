"""Passes over ONNX models, and functions that infer the shapes of ops that ONNX doesn't know."""

from poprt.passes.base import PASSES, Pass, get_registered_passes, register
from poprt.passes.onnx_helper import get_dtype, get_shape, set_value_info
from poprt.passes.shapes import SHAPE_FUNCTIONS, ShapeFunc, ShapeInference, register_shape_func

__all__ = [
    "PASSES",
    "SHAPE_FUNCTIONS",
    "Pass",
    "ShapeFunc",
    "ShapeInference",
    "get_dtype",
    "get_registered_passes",
    "get_shape",
    "register",
    "register_shape_func",
    "set_value_info",
]
