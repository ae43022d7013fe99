"""Type and shape inference inside ONNX, by the package's `shape.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnx import TensorProto, TypeProto, helper
from onnx.shape_inference import InferenceContext, InferenceError

DTYPES = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT8: "uint8",
    TensorProto.BOOL: "bool",
}
"""The dtype names of ONNX's element types."""

ELEMENT_TYPES = {name: number for number, name in DTYPES.items()}


def inference(
    shapes: Callable[..., Sequence[Any]],
    types: Callable[..., Sequence[str | None]],
    inputs: int,
    attributes: Sequence[str] = (),
    dtypes: Sequence[str] = (),
) -> Callable[[InferenceContext], None]:
    """Return what infers an op's outputs from its inputs.

    `attributes` names all attributes, `dtypes` those of them that hold an element type.
    """

    def infer(context: InferenceContext) -> None:
        given = {}
        for name in attributes:
            attribute = context.get_attribute(name)
            if attribute is not None and attribute.name:
                given[name] = _value(attribute, name in dtypes)
        tensors = [_tensor(context, i) for i in range(inputs)]
        try:
            chosen = {name: given[name] for name in dtypes if name in given}
            found = types(*(_dtype(t) for t in tensors), **chosen)
            ranked = all(t is None or t.HasField("shape") for t in tensors)
            sizes = (
                shapes(*map(_shape, tensors), **given)
                if ranked
                else [None] * len(found)
            )
        except ValueError as error:
            raise InferenceError(str(error)) from error
        for i, (dtype, shape) in enumerate(zip(found, sizes, strict=True)):
            if i < context.get_num_outputs() and dtype is not None:
                context.set_output_type(i, _type(dtype, shape))

    return infer


def _value(attribute: Any, is_dtype: bool) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, list):
        return [v.decode() if isinstance(v, bytes) else v for v in value]
    return (
        DTYPES[value]
        if is_dtype
        else value.decode()
        if isinstance(value, bytes)
        else value
    )


def _tensor(context: InferenceContext, index: int) -> Any:
    """Return the tensor type of an input, or None for one that is absent."""
    if index >= context.get_num_inputs() or not context.has_input(index):
        return None
    return context.get_input_type(index).tensor_type


def _dtype(tensor: Any) -> str | None:
    if tensor is None:
        return None
    if tensor.elem_type not in DTYPES:
        name = TensorProto.DataType.Name(tensor.elem_type)
        raise InferenceError(f"the element type {name} is not supported")
    return DTYPES[tensor.elem_type]


def _shape(tensor: Any) -> list[int | str | None] | None:
    """Return the sizes: numbers, names, None for an unknown one."""
    if tensor is None:
        return None
    return [
        d.dim_value if d.HasField("dim_value") else d.dim_param or None
        for d in tensor.shape.dim
    ]


def _type(dtype: str, shape: Sequence[int | str | None] | None) -> TypeProto:
    return helper.make_tensor_type_proto(ELEMENT_TYPES[dtype], shape)
