"""Conversion of a model to float16."""

import logging

import numpy as np
import onnx
from onnx import numpy_helper

from poprt.passes.base import Pass, register

_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
_LIMIT = 65504.0


@register("float_to_half")
class FloatToHalf(Pass):
    """float32 becomes float16: initialisers, constants, inputs, outputs, values, targets of casts.

    Nodes whose type is in `skip_op_types` still compute in float32, between casts.
    """

    def __init__(self, skip_op_types=()) -> None:
        super().__init__()
        self.skip = frozenset(skip_op_types)

    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """A converted copy of the model."""
        model = onnx.ModelProto()
        model.CopyFrom(onnx_model)
        graph = model.graph
        floats = _float_tensors(graph)
        for initializer in graph.initializer:
            _narrow(initializer)
        for info in (*graph.input, *graph.output, *graph.value_info):
            if info.type.tensor_type.elem_type == _FLOAT:
                info.type.tensor_type.elem_type = _HALF
        nodes = []
        for node in graph.node:
            if node.op_type in self.skip:
                nodes += _in_float(node, floats)
            else:
                _convert_attributes(node)
                nodes.append(node)
        made = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(made)
        return model


def _float_tensors(graph: onnx.GraphProto) -> set[str]:
    infos = {info.name for info in (*graph.input, *graph.output, *graph.value_info) if info.type.tensor_type.elem_type == _FLOAT}
    return infos | {initializer.name for initializer in graph.initializer if initializer.data_type == _FLOAT}


def _narrow(tensor: onnx.TensorProto) -> None:
    if tensor.data_type != _FLOAT:
        return
    array = numpy_helper.to_array(tensor)
    clipped = np.where(np.isfinite(array), np.clip(array, -_LIMIT, _LIMIT), array)
    if not np.array_equal(clipped, array, equal_nan=True):
        logging.getLogger("poprt").warning("Clip %s to range (%s, %s)", tensor.name, -_LIMIT, _LIMIT)
    tensor.CopyFrom(numpy_helper.from_array(clipped.astype(np.float16), tensor.name))


def _convert_attributes(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            _narrow(attribute.t)
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == _FLOAT:
            attribute.i = _HALF


def _in_float(node: onnx.NodeProto, floats: set[str]) -> list[onnx.NodeProto]:
    """The node, with casts to float32 before it and back to float16 after it."""
    before, after = [], []
    for index, name in enumerate(node.input):
        if name in floats:
            wide = f"{name}_float_{len(before)}_of_{node.output[0]}"
            before.append(onnx.helper.make_node("Cast", [name], [wide], to=_FLOAT))
            node.input[index] = wide
    for index, name in enumerate(node.output):
        if name in floats:
            wide = f"{name}_float"
            after.append(onnx.helper.make_node("Cast", [wide], [name], to=_HALF))
            node.output[index] = wide
    return [*before, node, *after]
