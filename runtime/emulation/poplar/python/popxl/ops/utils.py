"""What functions that make ops check."""

from popxl.graph import Graph
from popxl.tensor import Tensor


def check_in_graph(graph: Graph, *args, **tensors: Tensor) -> None:
    """Raises TypeError for what is no tensor and ValueError for a tensor of another graph; the names are said in the messages."""
    if args:
        raise Exception("Internal error: please specify all tensors as keyword arguments.")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"The input `{name}` is not a Tensor. Type: {type(tensor)}. Value: {tensor}.")
        if tensor not in graph:
            raise ValueError(f"The input tensor `{name}` is not in the current Graph {graph.name}.")


def check_tensor_ipu_and_tile_set(*args, **tensors: Tensor) -> None:
    """Accepted for what is written with it: the emulation has one IPU and no I/O tiles."""
    if args:
        raise Exception("Internal error: please specify all tensors as keyword arguments.")


def handle_negative_axis(t: Tensor, axis: int) -> int:
    """The axis, counted from the first."""
    return t.rank + axis if axis < 0 else axis
