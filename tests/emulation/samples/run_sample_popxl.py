"""LeakyRelu in PopXL: values, gradients, the gradient's gradient, variables, and what is refused."""

import time

import numpy as np
import popart
import popxl
import popxl.ops as ops
from popxl.transforms import autodiff
from sample_leaky_relu import leaky_relu

X = np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)


def store(*tensors):
    streams = [popxl.d2h_stream(t.shape, t.dtype, name="out") for t in tensors]
    for stream, tensor in zip(streams, tensors):
        ops.host_store(stream, tensor)
    return streams


def forward(array, dtype=None, **attributes):
    ir = popxl.Ir()
    with ir.main_graph:
        stream = popxl.h2d_stream(np.shape(array), dtype or popxl.float32, name="x")
        (out,) = store(leaky_relu(ops.host_load(stream, "x"), **attributes))
    with popxl.Session(ir, "ipu_model") as session:
        return session.run({stream: array})[out]


def refused(kind, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        return str(error).splitlines()[0]
    raise AssertionError("nothing was refused")


expected = np.where(X < 0, X * np.float32(0.1), X)
assert np.array_equal(forward(X, alpha=0.1), expected)
assert np.array_equal(forward(X.astype(np.float64), alpha=0.1), expected)
assert np.allclose(forward(X), np.where(X < 0, X * 0.01, X))
half = forward(X.astype(np.float16), popxl.float16, alpha=0.1)
assert half.dtype == np.float16
assert np.allclose(half, expected, atol=1e-3)
for shape in [(), (0,), (1,), (2, 0, 3)]:
    assert forward(-np.ones(shape, np.float32)).shape == shape

ir = popxl.Ir()
main = ir.main_graph
with main:
    xs, ds, dds = streams = [popxl.h2d_stream(X.shape, popxl.float32, name=name) for name in ("x", "d", "dd")]
    x, d, dd = map(ops.host_load, streams)
    graph = ir.create_graph(leaky_relu, x, alpha=0.1)
    first = autodiff(graph)
    second = autodiff(first.graph, grads_required=[first.graph.inputs[0]])
    call = ops.call_with_info(graph, x)
    gradient = ops.call_with_info(first.graph, d, inputs_dict=first.inputs_dict(call))
    gradients = ops.call_with_info(second.graph, dd, inputs_dict=second.inputs_dict(gradient))
    assert first.fwd_parent_ins_to_grad_parent_outs(call, gradient) == {x: gradient.outputs[0]}
    outs = store(call.outputs[0], gradient.outputs[0], gradients.outputs[0])
scales = np.arange(6, dtype=np.float32).reshape(2, 3)
slopes = np.where(X < 0, np.float32(0.1), np.float32(1))
with popxl.Session(ir, "ipu_model") as session:
    found = session.run({xs: X, ds: scales, dds: X})
assert np.array_equal(found[outs[0]], expected)
assert np.array_equal(found[outs[1]], slopes * scales)
assert np.array_equal(found[outs[2]], slopes * X)
print("second order by x:", refused(popart.popart_exception, autodiff, first.graph))

ir = popxl.Ir()
ir.num_host_transfers = 2
with ir.main_graph:
    w = popxl.variable(X, name="w")
    shift = popxl.constant(1.0, popxl.float32)
    stream = popxl.h2d_stream(X.shape, popxl.float32)
    total = ops.sum(leaky_relu(ops.host_load(stream), alpha=0.1) * w + shift - w, axis=0)
    (out,) = store(total)
with popxl.Session(ir, "ipu_model") as session:
    batches = np.stack([X, 2 * X])
    found = session.run({stream: batches})[out]
    wanted = np.sum(np.where(batches < 0, batches * np.float32(0.1), batches) * X + 1 - X, axis=1)
    assert np.allclose(found, wanted), (found, wanted)
    session.write_variable_data(w, 0 * X)
    assert np.allclose(session.run({stream: batches})[out], 2)
    assert np.array_equal(session.get_tensor_data(w), 0 * X)

print("dtype:", refused(popart.popart_exception, forward, X.astype(np.int32), popxl.int32))
with popxl.Ir().main_graph:
    other = popxl.constant(X)
with popxl.Ir().main_graph:
    print("other graph:", refused(ValueError, leaky_relu, other))
    print("no tensor:", refused(TypeError, ops.add, 1, other))
print("outside:", refused(RuntimeError, leaky_relu, other))
ir = popxl.Ir()
with ir.main_graph:
    stream = popxl.h2d_stream((2, 3), popxl.float32)
    loaded = ops.host_load(stream)
    (out,) = store(leaky_relu(loaded))
    print("stream dtype:", refused(ValueError, ops.host_store, popxl.d2h_stream((2, 3), popxl.float16), loaded))
session = popxl.Session(ir, "ipu_model")
print("not attached:", refused(ValueError, session.run, {stream: X}))
with session:
    print("other shape:", refused(ValueError, session.run, {stream: X.T}))
    print("no input:", refused(ValueError, session.run, {}))
print("device:", refused(ValueError, popxl.Session, ir, "ipu_hw"))

started = time.perf_counter()
for _ in range(50):
    forward(X)
print(f"milliseconds: {(time.perf_counter() - started) * 20:.2f}")
