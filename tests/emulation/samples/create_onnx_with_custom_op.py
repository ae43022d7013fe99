"""PopRT: an ONNX model of LeakyRelu, Relu and a constant."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("LeakyRelu", ["X"], ["Y"], domain="sample.ops", alpha=0.5),
    helper.make_node("Mul", ["Y", "W"], ["M"]),
    helper.make_node("Relu", ["M"], ["Z"]),
]
weights = numpy_helper.from_array(np.array([2, 1e6], np.float32), "W")
info = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "sample", [info("X", TensorProto.FLOAT, (4, 2))], [info("Z", TensorProto.FLOAT, (4, 2))], [weights]
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11), helper.make_opsetid("sample.ops", 1)])
onnx.save(model, "custom_op_test.onnx")
