"""What a graph says of its tensors."""

import onnx


def _infos(graph: onnx.GraphProto):
    yield from graph.value_info
    yield from graph.output
    yield from graph.input


def get_dtype(graph: onnx.GraphProto, name: str) -> int | None:
    """The element type of a tensor, a value of TensorProto.DataType; None where the graph doesn't say."""
    for info in _infos(graph):
        if info.name == name and info.type.tensor_type.elem_type:
            return info.type.tensor_type.elem_type
    for initializer in graph.initializer:
        if initializer.name == name:
            return initializer.data_type
    return None


def get_shape(graph: onnx.GraphProto, name: str) -> list[int] | None:
    """The sizes of a tensor, 0 for one that is not known; None where the graph doesn't say how many there are."""
    for info in _infos(graph):
        if info.name == name and info.type.tensor_type.HasField("shape"):
            return [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    for initializer in graph.initializer:
        if initializer.name == name:
            return list(initializer.dims)
    return None


def set_value_info(graph: onnx.GraphProto, info: onnx.ValueInfoProto) -> None:
    """Writes what is known of a tensor into the graph: over its output or value of that name, or as a new value."""
    found = False
    for known in (*graph.output, *graph.value_info):
        if known.name == info.name:
            known.CopyFrom(info)
            found = True
    if not found:
        graph.value_info.append(info)
