"""Shape inference through ONNX, and through registered functions for the ops that ONNX doesn't know."""

import onnx
import onnx.shape_inference

from poprt.passes.base import Pass, register
from poprt.passes.onnx_helper import get_dtype, get_shape, set_value_info

SHAPE_FUNCTIONS: dict[str, type] = {}


class ShapeFunc:
    """Infers the outputs of one op: derive from it, write `__call__(self, model, node)`, and register it with its op types.

    `__call__` returns the model with what it found, and whether the outputs of the node are known now.
    """

    def __init__(self) -> None:
        pass

    def __call__(self, model: onnx.ModelProto, node: onnx.NodeProto) -> tuple[onnx.ModelProto, bool]:
        """Must be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no method `__call__`.")

    def update_value_info(self, model: onnx.ModelProto, tensor: onnx.ValueInfoProto) -> onnx.ModelProto:
        """The model with `tensor` written over what it said of the tensor of that name."""
        set_value_info(model.graph, tensor)
        return model


def register_shape_func(op_types: list[str] | str):
    """Decorates a class derived from ShapeFunc: `@register_shape_func(["LeakyRelu"])`."""

    def decorate(cls):
        for op_type in [op_types] if isinstance(op_types, str) else op_types:
            SHAPE_FUNCTIONS[op_type] = cls
        return cls

    return decorate


@register("infer_shapes")
class ShapeInference(Pass):
    """ONNX's own inference and the registered functions, in turns, until nothing new is found."""

    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """The model with the shapes and dtypes that could be found; `missing(model)` says what couldn't."""
        model = onnx.shape_inference.infer_shapes(onnx_model)
        waiting = [node for node in model.graph.node if node.op_type in SHAPE_FUNCTIONS]
        while waiting:
            left = []
            for node in waiting:
                model, known = SHAPE_FUNCTIONS[node.op_type]()(model, node)
                if not known:
                    left.append(node)
            if len(left) == len(waiting):
                break
            waiting = left
            model = onnx.shape_inference.infer_shapes(model)
        return model


def missing(model: onnx.ModelProto) -> list[str]:
    """The outputs of nodes whose shape or dtype is not known."""
    graph = model.graph
    names = [name for node in graph.node for name in node.output if name]
    return [name for name in names if get_dtype(graph, name) is None or get_shape(graph, name) is None]
