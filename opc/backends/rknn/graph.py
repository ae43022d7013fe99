"""Calls of an op as nodes of one model: building a model costs far more than a node of it, so many calls share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import infer, infer_types
from opc.backends.node_call import node_attributes, trimmed
from opc.backends.rknn.names import OperatorName
from opc.emit.onnx.types import TENSOR_TYPE
from opc.ir.dtypes import DTYPES, DType, resolve
from opc.ir.op import Op
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

SIMULATED = tuple(d for d in DTYPES if d.row.rknn_models)
"""The dtypes of tensors in the toolkit's models."""

OPSET = 17
"""The version of the standard operators that models import."""

IR_VERSION = 8
"""The version of the file format."""


@dataclass(frozen=True, slots=True)
class AcceptedCall:
    """One call of an op that it does not refuse: inputs that are given, attributes as a node holds them, outputs' types."""

    op: Op
    feeds: dict[str, Array]
    attributes: dict[str, Any]
    outputs: dict[str, tuple[DType, tuple[int, ...]]]


def make_call(op: Op, inputs: Inputs, attributes: Attributes) -> AcceptedCall:
    """Return a call with what its outputs are.

    Raises:
        ShapeError: when the op refuses the call.
    """
    import numpy as np

    feeds = {o.name: np.ascontiguousarray(a) for o in op.inputs if (a := inputs.get(o.name)) is not None}
    dtypes = {o.name: DType(feeds[o.name].dtype.name) if o.name in feeds else None for o in op.inputs}
    binding = infer_types(op, dtypes, attributes)
    shapes = infer(op, {name: a.shape for name, a in feeds.items()}, attributes).outputs
    outputs = {o.name: (resolve(o.type, binding), tuple(shapes[o.name])) for o in op.outputs}
    return AcceptedCall(op, feeds, node_attributes(op, attributes, {}), outputs)


def node(name: OperatorName, op: Op, feeds: Mapping[str, Any], attributes: Mapping[str, Any], prefix: str = "") -> Any:
    """Return the `NodeProto` of a call; the names of its tensors begin with `prefix`."""
    from onnx import helper

    made = helper.make_node(
        name.op_type,
        trimmed([f"{prefix}{o.name}" if o.name in feeds else "" for o in op.inputs]),
        [f"{prefix}{o.name}" for o in op.outputs],
        name=f"{prefix}{op.name}",
        domain=name.domain,
    )
    for key, value in attributes.items():
        declared = next((a for a in op.attributes if a.name == key), None)
        made.attribute.append(_attribute(declared, key, value))
    return made


def _attribute(declared: Any, name: str, value: Any) -> Any:
    """Return an attribute; the type of an empty list is that which the op declares."""
    from onnx import AttributeProto, helper

    from opc.emit.onnx.types import attribute_type

    if value == [] and declared is not None:
        return helper.make_attribute(name, value, attr_type=AttributeProto.AttributeType.Value(attribute_type(declared)))
    return helper.make_attribute(name, value)


def model_of(name: OperatorName, calls: Sequence[AcceptedCall]) -> tuple[Any, list[Array]]:
    """Return the `ModelProto` with a node for each call, and its inputs in order."""
    from onnx import helper

    nodes, inputs, outputs, feeds = [], [], [], []
    for number, call in enumerate(calls):
        prefix = f"n{number}_"
        nodes.append(node(name, call.op, call.feeds, call.attributes, prefix))
        for key, array in call.feeds.items():
            inputs.append(_value(f"{prefix}{key}", DType(array.dtype.name), array.shape))
            feeds.append(array)
        outputs += [_value(f"{prefix}{key}", dtype, shape) for key, (dtype, shape) in call.outputs.items()]
    return model(name, helper.make_graph(nodes, "calls", inputs, outputs)), feeds


def model(name: OperatorName, graph: Any) -> Any:
    """Return the `ModelProto` of a graph with nodes of the op."""
    from onnx import helper

    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(name.domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _value(name: str, dtype: DType, shape: Sequence[int]) -> Any:
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, TensorProto.DataType.Value(TENSOR_TYPE[dtype]), shape)
