"""Models: from ONNX to the core's own form, and back."""

import os

import numpy as np
import onnx
import popart_core
from onnx import AttributeProto, helper, numpy_helper

# The numbers of ONNX's TensorProto.DataType are those of PopART's names, but for the spelling of one.
_NUMBERS = {name: onnx.TensorProto.DataType.Value(name) for name in popart_core.DataType.__members__ if "FLOAT8" not in name}
_NAMES = {number: name for name, number in _NUMBERS.items()}

# The model that a builder gave last and its form in the core: a session is mostly made of just that.
_last: tuple[bytes, object] = (b"", None)


def load(source) -> onnx.ModelProto:
    """The model that `source` is: bytes, the name of a file, or the model itself; raises popart_exception for anything else."""
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, (str, os.PathLike)):
        if not os.path.isfile(source):
            raise popart_core.popart_exception(f"Failed to open file {source}")
        return onnx.load(source)
    try:
        return onnx.ModelProto.FromString(source)
    except Exception as error:  # protobuf's own DecodeError, or TypeError
        raise popart_core.popart_exception("Failed to parse the model: its bytes are no ONNX ModelProto") from error


def to_core(source, values: bool = False) -> popart_core._Model:
    """The model in the core's form; with `values` also what is known of the tensors inside, which a builder goes on from."""
    if isinstance(source, bytes) and source is _last[0]:
        return _last[1]
    proto = load(source)
    model = popart_core._Model()
    graph = proto.graph
    model.opsets = {opset.domain or "ai.onnx": opset.version for opset in proto.opset_import}
    initialised = {tensor.name for tensor in graph.initializer}
    for info in graph.input:
        if info.name not in initialised:
            model.addInput(info.name, _info(info))
    model.outputs = [info.name for info in graph.output]
    for tensor in graph.initializer:
        model.addInitialiser(tensor.name, numpy_helper.to_array(tensor))
    for node in graph.node:
        attributes = {attribute.name: _value(node, attribute) for attribute in node.attribute}
        model.addNode(node.domain, node.op_type, node.name, list(node.input), list(node.output), attributes)
    if values:
        for info in (*graph.value_info, *graph.output):
            if info.type.tensor_type.HasField("shape"):
                model.addValue(info.name, _info(info))
    return model


def from_core(model: popart_core._Model) -> bytes:
    """The bytes of an ONNX ModelProto; `to_core` of these bytes is quick."""
    global _last
    proto = onnx.ModelProto(ir_version=8, producer_name="PopART")
    for domain, version in model.opsets.items():
        proto.opset_import.add(domain="" if domain == "ai.onnx" else domain, version=version)
    graph = proto.graph
    graph.name = "BuilderGraph"
    for name, info in model.inputs:
        graph.input.append(_value_info(name, info))
    for name, array in model.initialisers.items():
        graph.input.append(_value_info(name, popart_core.getTensorInfo(array)))
        graph.initializer.append(numpy_helper.from_array(array, name))
    values = model.values
    for name in model.outputs:
        output = graph.output.add(name=name)
        if name in values:
            output.CopyFrom(_value_info(name, values[name]))
    for name, info in values.items():
        graph.value_info.append(_value_info(name, info))
    for node in model.nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        made = graph.node.add(op_type=node.type, domain=domain, name=node.name, input=node.inputs, output=node.outputs)
        for key, value in node.attributes.items():
            made.attribute.append(_attribute(key, value))
    content = proto.SerializeToString()
    _last = (content, model)
    return content


def _info(info: onnx.ValueInfoProto):
    tensor = info.type.tensor_type
    name = _NAMES.get(tensor.elem_type)
    if name is None:
        raise popart_core.popart_exception(f"Tensor {info.name} has a type that PopART doesn't have: {tensor.elem_type}")
    return popart_core._TensorInfoCore(name, [dim.dim_value for dim in tensor.shape.dim])


def _value_info(name: str, info) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _NUMBERS[info.dataType().name], info.shape())


def _value(node: onnx.NodeProto, attribute: AttributeProto):
    """The attribute as the core takes it; lists with their kind, which one without elements doesn't show."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        return attribute.i
    if kind == AttributeProto.FLOAT:
        return attribute.f
    if kind == AttributeProto.STRING:
        return attribute.s
    if kind == AttributeProto.INTS:
        return ("ints", list(attribute.ints))
    if kind == AttributeProto.FLOATS:
        return ("floats", list(attribute.floats))
    if kind == AttributeProto.STRINGS:
        return ("strings", list(attribute.strings))
    if kind == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    raise popart_core.popart_exception(
        f"Attribute {attribute.name} of {node.op_type} is of a kind that the emulation doesn't have"
    )


def _attribute(key: str, value) -> AttributeProto:
    if isinstance(value, tuple):
        kind, values = value
        return AttributeProto(name=key, type=getattr(AttributeProto, kind.upper()), **{kind: values})
    if isinstance(value, np.ndarray):
        return AttributeProto(name=key, type=AttributeProto.TENSOR, t=numpy_helper.from_array(value))
    return helper.make_attribute(key, value)
