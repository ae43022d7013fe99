"""What the tests run in a process of the interpreter that has Paddle: `in_paddle.py PACKAGE TEST...`.

The last line tells in JSON of each test that failed, by its name, how.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from opc.backends import package as packages
from tests.backends import named_checks

PACKAGE = Path(sys.argv[1])
pantry = packages.load(PACKAGE, "paddle").pantry
mix = packages.load(PACKAGE.with_name("mix"), "paddle").mix
halve_ = packages.load(PACKAGE.with_name("halve"), "paddle").halve_
operators = packages.load(PACKAGE, "paddle.operators")
X = np.array([[1.0, -2.0, 3.0]])
NAME = "opc_paddle_test_pantry"


def refusal(call: Callable[[], Any], *errors: type[Exception]) -> str:
    """Return the message of the call's error."""
    try:
        call()
    except errors as error:
        return str(error)
    raise AssertionError("the call was accepted")


def every_attribute_arrives() -> None:
    """Lists, texts, bools and float64 with all their digits."""
    w = np.array([1.0, 10.0, 100.0])
    given = {"scale": 2.0, "shift": [3, 1], "weights": [1.0], "flips": [True, False], "flip": True, "mode": "square"}
    y, total = pantry(paddle.to_tensor(X), paddle.to_tensor(w), **given)
    squares = -((2 * X + 2) ** 2)
    assert np.array_equal(y.numpy(), squares * w)
    assert np.array_equal(total.numpy(), squares.sum(-1))
    y, _ = pantry(paddle.to_tensor(X))
    assert np.array_equal(y.numpy(), X * 0.1), "0.1 must be float64's"


def wrong_attributes_are_refused() -> None:
    """The message names the attribute."""
    x = paddle.to_tensor(X)
    wrong = {"scale": "wide", "shift": [1], "flip": 2, "mode": "cube", "weights": ["a"], "flips": [1.5, 0]}
    for name, value in [*wrong.items(), ("scale", 10**400), ("shift", (1, 2**63))]:
        message = refusal(lambda given={name: value}: pantry(x, **given), TypeError, ValueError)
        assert name in message, message


def strided_inputs() -> None:
    """A view is read through its strides."""
    x = paddle.to_tensor(np.arange(12.0).reshape(3, 4))
    expected = pantry(paddle.to_tensor(x.numpy().T.copy()))[0]
    assert np.array_equal(pantry(x.T)[0].numpy(), expected.numpy())


def gradients_of_some_inputs() -> None:
    """Each gradient may be asked for alone, in both orders; what is no gradient of it counts as constant."""
    x, w = paddle.to_tensor(X, stop_gradient=False), paddle.to_tensor([1.0, 10.0, 100.0], "float64", stop_gradient=False)
    y, _ = pantry(x, w, scale=1.0, mode="square")  # x * x * w
    (dx,) = paddle.grad([y], [x], create_graph=True)
    (dw,) = paddle.grad([y], [w], create_graph=True)
    assert np.array_equal(dx.numpy(), 2 * X * w.numpy())
    assert np.array_equal(dw.numpy(), (X * X)[0])
    assert np.array_equal(paddle.grad([dx], [x], retain_graph=True)[0].numpy(), [2 * w.numpy()])
    assert np.array_equal(paddle.grad([dx], [w], retain_graph=True)[0].numpy(), (2 * X)[0])
    assert np.array_equal(paddle.grad([dw], [x], retain_graph=True)[0].numpy(), 2 * X)
    for asked, constant, expected in ((x, w, dx), (w, x, dw)):
        (found,) = paddle.grad([y], [asked], retain_graph=True, no_grad_vars=[constant])
        assert np.array_equal(found.numpy(), expected.numpy())
    dx.sum().backward()
    assert np.array_equal(w.grad.numpy(), (2 * X)[0])


def integers_are_constants() -> None:
    """What is of integers has no gradient, and those of other operands go past it, in both orders."""
    a = paddle.to_tensor([2.0, 3.0], "float64", stop_gradient=False)
    for dtype in ("int32", "float64"):
        b = paddle.to_tensor([2, 3], dtype)
        y, z = mix(a, b)
        assert [y.stop_gradient, z.stop_gradient] == [False, True]
        (first,) = paddle.grad([y], [a], create_graph=True)
        assert np.array_equal(first.numpy(), 2 * a.numpy() * b.numpy())
        assert np.array_equal(paddle.grad([first], [a])[0].numpy(), 2.0 * b.numpy())
    assert np.array_equal(paddle.grad([mix(a, b, to="float32")[1]], [a])[0].numpy(), [1.0, 1.0])


def nothing_is_recorded_without_gradients() -> None:
    """Under no_grad a result is a constant, and parameters are written in place."""
    x = paddle.to_tensor(X, stop_gradient=False)
    with paddle.no_grad():
        y, _ = pantry(x)
    assert y.stop_gradient
    (y * x).sum().backward()
    assert np.array_equal(x.grad.numpy(), y.numpy())
    a = paddle.to_tensor(np.array([1.0, 2.0]), stop_gradient=False)
    assert "in place" in refusal(lambda: halve_(a), RuntimeError)
    with paddle.no_grad():
        halve_(a)
    assert a.numpy().tolist() == [0.5, 1.0]
    (a * a).sum().backward()
    assert a.grad.numpy().tolist() == [1.0, 2.0]


def both_modes_of_to_static() -> None:
    """Traced, a call has the value and the gradient of a plain one: of whole graphs, and as Paddle does by default."""
    w = paddle.to_tensor(np.array([1.0, 10.0, 100.0]))

    def squared(x: Any) -> Any:
        return pantry(x, w, mode="square")[0].sum()

    found = []
    for function in (squared, paddle.jit.to_static(squared), paddle.jit.to_static(squared, full_graph=True)):
        x = paddle.to_tensor(X, stop_gradient=False)
        y = function(x)
        y.backward()
        found.append((float(y), x.grad.numpy().tolist()))
    assert found[0] == found[1] == found[2], found


def third_order_is_refused() -> None:
    """What has no derivative says so when it is asked for one."""
    x = paddle.to_tensor(X, stop_gradient=False)
    y, _ = pantry(x, mode="square")
    (first,) = paddle.grad([y], [x], create_graph=True)
    (second,) = paddle.grad([first], [x], create_graph=True)
    assert np.allclose(second.numpy(), 2 * 0.1**2)
    message = refusal(lambda: second.sum().backward(), NotImplementedError, RuntimeError, OSError)
    assert "second order" in message, message


def another_library_is_refused() -> None:
    """Operators of one name can't be registered twice; the same ones again are no mistake."""
    open_library = operators.dispatch.open_library
    open_library(operators.LIBRARY, [NAME], paddle._opc_operators[NAME])
    message = refusal(lambda: open_library(operators.LIBRARY, [NAME], "another spec"), ImportError)
    assert "new process" in message, message


if __name__ == "__main__":
    named_checks.run(globals(), sys.argv[2:])
