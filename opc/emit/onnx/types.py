"""How ONNX names and numbers what a spec declares: element types, attribute types, operators and domains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from opc.emit.dtypes import type_variable
from opc.ir.dtypes import DTYPES, Binding, DType, TypeVar
from opc.ir.op import Attribute, AttributeKind, Op

TENSOR_TYPE: Mapping[DType, str] = {d: d.row.onnx[0] for d in DTYPES if d.row.onnx is not None}
"""The name in `TensorProto.DataType` of each dtype that ONNX has."""

TYPE_STRING: Mapping[DType, str] = {d: f"tensor({name.lower()})" for d, name in TENSOR_TYPE.items()}
"""The name of a tensor of each dtype in an operator schema: `tensor(float16)`."""

_ATTRIBUTE: Mapping[AttributeKind, str] = {
    AttributeKind.INT: "INT",
    AttributeKind.AXIS: "INT",
    AttributeKind.BOOL: "INT",
    AttributeKind.DTYPE: "INT",
    AttributeKind.FLOAT: "FLOAT",
    AttributeKind.STR: "STRING",
}


def attribute_type(attribute: Attribute) -> str:
    """Return the name of an attribute's type in `AttributeProto.AttributeType`: bools and dtypes are integers there."""
    return _ATTRIBUTE[attribute.kind] + ("" if attribute.length is None else "S")


def used_variables(op: Op) -> tuple[TypeVar, ...]:
    """Return the type variables of the op's operands, in order of first use."""
    found = (type_variable(o.type) for o in (*op.inputs, *op.outputs))
    return tuple({v.name: v for v in found if v is not None}.values())


def bindings(op: Op) -> Iterator[Binding]:
    """Yield every choice of dtypes for the type variables of the op's operands."""
    variables = used_variables(op)
    for dtypes in product(*(v.dtypes for v in variables)):
        yield {v.name: d for v, d in zip(variables, dtypes, strict=True)}
