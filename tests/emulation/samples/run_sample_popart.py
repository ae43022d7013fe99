"""LeakyRelu in PopART: values, gradients, weights, shapes, and what is refused."""

import ctypes
import time

import numpy as np
import popart

ctypes.cdll.LoadLibrary("build/custom_ops.so")
X = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)


def node(builder, x, alpha=0.1, **attributes):
    return builder.customOp(
        opName="LeakyRelu", opVersion=1, domain="sample.ops", inputs=[x], attributes={"alpha": alpha, **attributes}
    )[0]


def infer(array, dtype="FLOAT", alpha=0.1, batches=1, returns="FINAL", shape=None, model=lambda proto: proto):
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo(dtype, list(array.shape) if shape is None else shape))
    y = node(builder, x, alpha)
    builder.addOutputTensor(y)
    assert builder.getTensorShape(y) == builder.getTensorShape(x)
    session = popart.InferenceSession(
        model(builder.getModelProto()),
        popart.DataFlow(batches, {y: popart.AnchorReturnType(returns)}),
        popart.DeviceManager().createIpuModelDevice({}),
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: array}, anchors), "a name")
    return anchors[y]


def refused(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except popart.popart_exception as error:
        return str(error)
    raise AssertionError("nothing was refused")


expected = np.where(X < 0, X * np.float32(0.1), X)
assert np.array_equal(infer(X), expected)
assert infer(X.astype(np.float16), "FLOAT16").dtype == np.float16
assert np.allclose(infer(X.astype(np.float16), "FLOAT16"), expected, atol=1e-3)
for shape in [(), (0,), (1,), (2, 0, 3)]:
    assert infer(np.full(shape, -1, np.float32)).shape == shape
batches = np.stack([X, 2 * X])
assert np.array_equal(infer(batches, batches=2, returns="ALL", shape=[2, 3]), np.stack([expected, 2 * expected]))
assert np.array_equal(infer(batches, batches=2, returns="FINAL", shape=[2, 3]), 2 * expected)
assert np.array_equal(infer(batches, batches=2, returns="SUM", shape=[2, 3]), 3 * expected)

with open("model.onnx", "wb") as file:
    infer(X, model=lambda proto: (file.write(proto), proto)[1])
assert np.array_equal(infer(X, model=lambda proto: "model.onnx"), expected)
assert np.array_equal(infer(X, model=lambda proto: bytes(bytearray(proto))), expected)

builder = popart.Builder()
x = builder.addInputTensor(popart.TensorInfo(np.float32, [2, 3]))
first = node(builder, x, note="a text", several=[1, 2], factors=[0.5], nothing=[])
builder.addNodeAttribute("late", 3, {first})
with open("model.onnx", "wb") as file:
    file.write(builder.getModelProto())
builder = popart.Builder("model.onnx")
second = node(builder, first)
assert builder.getTensorShape(second) == [2, 3]
proto = builder.getModelProto()

import onnx  # noqa: E402  # after PopART

model = onnx.ModelProto.FromString(proto)
onnx.checker.check_model(model)
assert [node.op_type for node in model.graph.node] == ["LeakyRelu", "LeakyRelu"]
found = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in model.graph.node[0].attribute}
assert found.pop("alpha") == np.float32(0.1)
assert found == {"note": b"a text", "several": [1, 2], "factors": [0.5], "nothing": [], "late": 3}

builder = popart.Builder()
w = builder.addInitializedInputTensor(X)
scale = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]))
product = builder.aiOnnx.mul([node(builder, w), scale])
loss = builder.aiGraphcore.identityloss([product], reduction=popart.ReductionType.Sum)
gradient = popart.reservedGradientPrefix() + w
session = popart.TrainingSession(
    fnModel=builder.getModelProto(),
    dataFlow=popart.DataFlow(1, {gradient: popart.AnchorReturnType("FINAL")}),
    loss=loss,
    optimizer=popart.ConstSGD(0.5),
    deviceInfo=popart.DeviceManager().createIpuModelDevice({}),
)
session.prepareDevice()
session.weightsFromHost()
anchors = session.initAnchorArrays()
scales = np.arange(6, dtype=np.float32).reshape(2, 3)
session.run(popart.PyStepIO({scale: scales}, anchors))
slopes = np.where(X < 0, np.float32(0.1), np.float32(1))
assert np.array_equal(anchors[gradient], slopes * scales)
session.weightsToHost()
weights = {w: np.zeros_like(X)}
session.readWeights(popart.PyWeightsIO(weights))
assert np.allclose(weights[w], X - 0.5 * slopes * scales)

print("attribute:", refused(infer, X, alpha=-1.0))
print("numpy attribute:", refused(infer, X, alpha=np.float32(1)))
print("texts attribute:", refused(infer, X, alpha=["a"]))
print("dtype:", refused(infer, X.astype(np.int32), "INT32"))
print("fed dtype:", refused(infer, X.astype(np.float64)))
print("fed order:", refused(infer, np.asfortranarray(X)))
print("unknown tensor:", refused(node, popart.Builder(), "nothing"))
print("no model:", refused(infer, X, model=lambda proto: b"nothing"))
print("no file:", refused(infer, X, model=lambda proto: "nothing.onnx"))

started = time.perf_counter()
for _ in range(50):
    infer(X)
print(f"milliseconds: {(time.perf_counter() - started) * 20:.2f}")
