"""PopRT: the shape and dtype of LeakyRelu's output."""

import onnx
import onnx.shape_inference
from poprt.passes import ShapeFunc, get_dtype, get_shape, register_shape_func


@register_shape_func(["LeakyRelu"])
class LeakyRelu(ShapeFunc):
    """They are those of the input."""

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, model: onnx.ModelProto, node: onnx.NodeProto) -> tuple[onnx.ModelProto, bool]:
        graph = model.graph
        if get_shape(graph, node.output[0]) is not None and get_dtype(graph, node.output[0]):
            return model, True
        shape, dtype = get_shape(graph, node.input[0]), get_dtype(graph, node.input[0])
        if shape is None or not dtype or 0 in shape:
            return model, False
        model = self.update_value_info(model, onnx.helper.make_tensor_value_info(node.output[0], dtype, shape))
        return onnx.shape_inference.infer_shapes(model), True
