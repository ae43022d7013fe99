"""What the tests of the library for GPUs run, by the interpreter that has Paddle: `on_emulated_gpu.py PACKAGE TEST...`.

The library is made with runtime/emulation/cuda/paddle.h. The last line tells in JSON of each test that failed, by its name, how.
"""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from opc.backends import package as packages
from tests.backends import named_checks

PACKAGE = Path(sys.argv[1])
shelf = packages.load(PACKAGE, "paddle").shelf
LIBRARY = packages.load(PACKAGE, "paddle.operators").LIBRARY
T = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = np.array([2, 0, 2], np.int64)
W = np.array([1, 10, 100], np.float32)


def tensors(*ids: int) -> tuple[Any, Any, Any]:
    """Return the operands, the two that are differentiated among them."""
    rows = np.array(ids, np.int64) if ids else IDS
    return paddle.to_tensor(T, stop_gradient=False), paddle.to_tensor(rows), paddle.to_tensor(W, stop_gradient=False)


def refusal(call: Callable[[], Any]) -> str:
    """Return the message of the call's error."""
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("the call was accepted")


def kernels_of_the_gpu_compute() -> None:
    """On Paddle's stream, and with its memory, which is given back."""
    counts = (ctypes.c_int64 * 5).in_dll(ctypes.CDLL(str(LIBRARY)), "emulated_calls")
    before = counts[0]
    y, total = shelf(*tensors(), scale=2.0)
    assert np.array_equal(y.numpy(), 2 * T[IDS] * W)
    assert np.array_equal(total.numpy(), 2 * T[IDS].sum(0))
    calls, got, given_back, astray, _ = counts
    assert calls == before + 1, calls
    assert got > 0, got
    assert got == given_back, (got, given_back)
    assert astray == 0, astray


def gradients() -> None:
    """Through autograd of the package, of both orders, and by Paddle's own node, without the gradient of an unused output."""
    t, ids, w = tensors()
    y, total = shelf(t, ids, w)
    dt, dw = paddle.grad([y, total], [t, w], create_graph=True)
    expected = np.zeros_like(T)
    np.add.at(expected, IDS, np.broadcast_to(0.5 * (W + 1), (3, 3)))
    assert np.array_equal(dt.numpy(), expected)
    assert np.array_equal(dw.numpy(), 0.5 * T[IDS].sum(0))
    assert np.array_equal(paddle.grad([dw.sum()], [t])[0].numpy(), 0.5 * np.array([[1], [0], [2], [0]]) * np.ones((4, 3)))
    t, ids, w = tensors()
    y, _ = paddle._C_ops._run_custom_op("opc_test_shelf", t, ids, w, "0.5")
    y.sum().backward()
    np.add.at(expected, IDS, np.full((3, 3), -0.5, np.float32))
    assert np.array_equal(t.grad.numpy(), expected)


def refusals() -> None:
    """They have the CPU's messages, and the next call is a new one."""
    assert "shelf: scale = -1 violates its check: scale >= 0" in refusal(lambda: shelf(*tensors(), scale=-1.0))
    for row in (4, -1):
        message = refusal(lambda row=row: shelf(*tensors(2, row, 0)))
        assert f"an index of t is {row}, outside axis 0 of size 4" in message, message
        assert shelf(*tensors(1))[0].shape == [1, 3]


if __name__ == "__main__":
    named_checks.run(globals(), sys.argv[2:])
