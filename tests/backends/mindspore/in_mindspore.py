"""What users of MindSpore do with packages, run by the interpreter that has it: `python in_mindspore.py PACKAGES NAME...`.

The last line tells in JSON of each check that failed, by its name, how.
"""

import ctypes
import importlib
import sys
from pathlib import Path

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

from tests.backends import named_checks

sys.path.insert(0, sys.argv[1])


def everything():
    """Return the op that has attributes of every kind."""
    from everything.mindspore import everything as op

    return op


def refusal(call):
    """Return the message of the error that a call raises."""
    try:
        made = call()
        for t in made if isinstance(made, tuple) else (made,):
            t.asnumpy()
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error)
    raise AssertionError("the call was accepted")


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
IDS = Tensor(np.int64(1))


def attributes():
    """Every attribute arrives, in both modes, in full precision."""
    op = everything()
    w, b = np.float64([1, 2, 4]), np.float64([1, 0, -1])
    x = X.astype(np.float64)

    def both(x, w, b):
        given = {"scale": 0.3, "shift": -2, "flip": True, "mode": "double", "sizes": (3, 4), "weights": (0.5, 2.0)}
        return op(x, w, IDS, b, axis=1, dtype=mindspore.int32, factor=1.7, **given)

    t = (x * w[:, None] + b[:, None]) * 0.3
    expected = (-t * 1.7 - 2) * 2
    for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
        mindspore.set_context(mode=mode)
        y, s, c = mindspore.jit(both)(Tensor(x), Tensor(w), Tensor(b)) if mode else both(Tensor(x), Tensor(w), Tensor(b))
        np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-15)
        np.testing.assert_allclose(s.asnumpy(), x.sum(1) * 3 + 4)
        assert c.dtype == mindspore.int32
        assert c.asnumpy().tolist() == [0, 1, 2]


def signs_of_zero():
    """0.0 and -0.0 are two values of an attribute, also where one was called before the other."""
    from everything.mindspore.operators import everything as op

    values = (-1, 0.1, 3, False, "plain", (1, 2), (1.0,), mindspore.float32)
    made = [op.of((1, -1, 0, -1), *values, factor) for factor in (0.0, -0.0, 0, 0.0, 2.0, 2.0)]
    assert made[0] is made[2] is made[3] is not made[1]
    assert made[4] is made[5]


def bad_calls():
    """What does not fit is refused by name, and nothing crashes."""
    op = everything()
    x = Tensor(X)
    assert "x must be a Tensor" in refusal(lambda: op(X, None, IDS, factor=1.0))
    assert "w must be a Tensor" in refusal(lambda: op(x, 2.0, IDS, factor=1.0))
    assert "input x must be given" in refusal(lambda: op(None, None, IDS, factor=1.0))
    assert "factor must be of type float" in refusal(lambda: op(x, None, IDS, factor="1"))
    assert "factor must be of type float" in refusal(lambda: op(x, None, IDS, factor=True))
    assert "factor does not fit 64 bits" in refusal(lambda: op(x, None, IDS, factor=10**400))
    assert "shift must be of type int" in refusal(lambda: op(x, None, IDS, factor=1.0, shift=1.5))
    assert "mode = 'none' is not one of 'plain', 'double'" in refusal(lambda: op(x, None, IDS, factor=1.0, mode="none"))
    assert "sizes must have 2 elements, but has 1" in refusal(lambda: op(x, None, IDS, factor=1.0, sizes=(1,)))
    assert "scale = -1 violates its check" in refusal(lambda: op(x, None, IDS, factor=1.0, scale=-1.0))
    assert "float16" in refusal(lambda: op(Tensor(X.astype(np.float16)), None, IDS, factor=1.0))
    assert "T is float32 in x, but float64 in w" in refusal(lambda: op(x, Tensor(np.ones(4)), IDS, factor=1.0))
    assert "w" in refusal(lambda: op(x, Tensor(np.ones(5, np.float32)), IDS, factor=1.0))
    assert "complex" not in refusal(lambda: op(Tensor(X.astype(np.complex64)), None, IDS, factor=1.0))


def out_of_range():
    """A call that fails while it computes says why, as MindSpore's error."""
    from embedding.mindspore import embedding

    table = Tensor(np.ones((3, 2), np.float32))
    said = refusal(lambda: embedding(table=table, ids=Tensor(np.int64([0, 7]))))
    assert "embedding" in said, said
    assert "7" in said, said


def ranks_of_zero():
    """Numbers flow from op to op, through gradients of gradients and into graphs."""
    from mse_loss.mindspore import mse_loss
    from silu.mindspore import silu

    def loss(x, y):
        return silu(silu(mse_loss(silu(x), y)))

    def first(x, y):
        return mindspore.grad(loss)(x, y)

    x, y = Tensor(np.float32([0.5, -1.0])), Tensor(np.float32([1.0, 2.0]))
    found = []
    for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
        mindspore.set_context(mode=mode)
        found.append(mindspore.grad(first)(x, y).asnumpy())
        assert silu(silu(Tensor(np.float32(0.5)))).shape == ()
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    assert (found[0] != 0).all()


def denormals():
    """MindSpore's adder flushes denormal numbers in some threads, which the proof allows for; kernels compute with them."""
    from silu.mindspore import silu

    for dtype, small in ((np.float32, 1e-39), (np.float64, 1e-310)):
        x = Tensor(np.full(4000, small, dtype))
        kept = all(mindspore.ops.add(x, Tensor(x.asnumpy())).asnumpy().all() for _ in range(50))
        assert not kept, "MindSpore's Add keeps denormals: flushed_parts is needed no more"
        for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
            mindspore.set_context(mode=mode)
            made = (mindspore.jit(silu) if mode == mindspore.GRAPH_MODE else silu)(x).asnumpy()
            assert made.all()
            np.testing.assert_allclose(made, np.full(4000, dtype(small) / 2), rtol=1e-5)
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def integers_are_constants():
    """What is of integers has no gradient, and those of other operands go past it, in both modes and both orders."""
    from mix.mindspore import mix

    def squares(a, b):
        return mix(a, b)[0]

    once = mindspore.grad(squares)

    def first(a, b):
        return once(a, b)

    twice = mindspore.grad(first)

    def second(a, b):
        return twice(a, b)

    a = Tensor(np.float64([2, 3]))
    for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
        mindspore.set_context(mode=mode)
        for dtype in (np.int32, np.float64):
            b = Tensor(np.array([2, 3], dtype))
            found = [(mindspore.jit(f) if mode == mindspore.GRAPH_MODE else f)(a, b) for f in (first, second)]
            assert [f.asnumpy().tolist() for f in found] == [[8, 18], [4, 6]]


def training():
    """A network with the op trains as a graph: MindSpore's own optimiser lowers its loss."""
    from mse_loss.mindspore import mse_loss
    from silu.mindspore import silu

    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    mindspore.set_seed(1)
    net = nn.SequentialCell(nn.Dense(2, 8), Activation(silu), nn.Dense(8, 1))
    x = Tensor(np.float32([[0, 0], [0, 1], [1, 0], [1, 1]]))
    y = Tensor(np.float32([[0], [1], [1], [0]]))
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.1)

    def forward(x, y):
        return mse_loss(net(x), y)

    step = mindspore.value_and_grad(forward, None, optimizer.parameters)
    losses = []
    for _ in range(60):
        loss, gradients = step(x, y)
        optimizer(gradients)
        losses.append(float(loss.asnumpy()))
    assert losses[-1] < 0.1 * losses[0], losses


class Activation(nn.Cell):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, x):
        return self.function(x)


def on_an_emulated_gpu():
    """The library for GPUs, by emulated_gpu.cpp: its kernels compute, forward and backward."""
    from shelf.mindspore import operators, shelf

    counts = (ctypes.c_int64 * 5).in_dll(ctypes.CDLL(str(operators.LIBRARY)), "emulated_calls")
    t, w = np.arange(12, dtype=np.float32).reshape(4, 3), np.float32([1, 10, 100])
    for calls, mode in enumerate((mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE)):
        mindspore.set_context(mode=mode)
        call = mindspore.jit(shelf) if mode == mindspore.GRAPH_MODE else shelf
        for ids in (np.int64([2, 0, 2]), np.full(200, 1, np.int64)):
            y, total = call(Tensor(t), Tensor(ids), Tensor(w))
            np.testing.assert_array_equal(y.asnumpy(), 0.5 * t[ids] * w)
            np.testing.assert_allclose(total.asnumpy(), 0.5 * t[ids].sum(0))
        assert counts[0] == 2 * calls + 2, list(counts)
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    gradient = mindspore.grad(lambda t, w: shelf(t, Tensor(ids), w)[0].sum(), (0, 1))
    d_t, d_w = gradient(Tensor(t), Tensor(w))
    np.testing.assert_array_equal(d_t.asnumpy(), np.where(np.arange(4)[:, None] == 1, 100 * w, np.float32(0)))
    np.testing.assert_allclose(d_w.asnumpy(), 0.5 * t[ids].sum(0))
    for call, text in (
        (lambda: shelf(Tensor(t), Tensor(np.int64([4])), Tensor(w)), "an index of t is 4, outside axis 0 of size 4"),
        (lambda: shelf(Tensor(t), Tensor(ids), Tensor(w), scale=-1.0), "shelf: scale = -1 violates its check: scale >= 0"),
    ):
        said = refusal(call)
        assert text in said, said
    assert counts[3] == 0


def aten():
    """Code on at::Tensor runs in MindSpore, with torch in the same process, imported last."""
    from leaky_relu_aten.mindspore import leaky_relu_aten

    x = np.float32([[0.0, -0.1], [-0.2, 1.0]])
    made = leaky_relu_aten(Tensor(x), alpha=0.01).asnumpy()
    assert made.tolist() == np.float32([[0, -0.001], [-0.002, 1]]).tolist()
    assert "libtorch_cpu.so" in Path("/proc/self/maps").read_text()
    import torch

    assert (made == torch.nn.functional.leaky_relu(torch.from_numpy(x), 0.01).numpy()).all()
    gradient = ops.GradOperation()(leaky_relu_aten)(Tensor(x))
    np.testing.assert_array_equal(gradient.asnumpy(), np.where(x >= 0, np.float32(1), np.float32(0.01)))


def aten_after_torch():
    """The same with torch imported first."""
    importlib.import_module("torch")
    aten()


if __name__ == "__main__":
    named_checks.run(globals(), sys.argv[2:])
