"""Calls of generated NumPy functions: values for every kind of input, and the error for every kind of mistake."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.api import LoadedOp

X = np.array([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]], np.float32)


def expected(x: Any, alpha: float = 0.01) -> Any:
    return np.where(x >= 0, x, np.asarray(alpha, x.dtype) * x)


class Subclass(np.ndarray):
    """An array of another class, as libraries have them."""


def views(x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The same array, laid out in many ways."""
    gaps = np.zeros((2, 2, 3, 2), x.dtype)
    gaps[:, 1, :, 1] = x
    back = x[::-1, ::-1].copy()
    record = np.zeros(x.shape, np.dtype([("pad", "u1"), ("value", x.dtype)]))
    record["value"] = x
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    read_only = x.copy()
    read_only.flags.writeable = False
    return {
        "fortran": np.asfortranarray(x),
        "gaps": gaps[:, 1, :, 1],
        "reversed": back[::-1, ::-1],
        "record": record["value"],
        "unaligned": unaligned,
        "other byte order": x.astype(x.dtype.newbyteorder()),
        "read-only": read_only,
        "subclass": x.view(Subclass),
    }


@pytest.mark.parametrize("name", views(X))
def test_any_layout(leaky_relu: LoadedOp, name: str) -> None:
    view = views(X)[name]
    for _ in range(2):
        result = leaky_relu(view, 0.5)
        assert type(result) is np.ndarray
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, expected(X, 0.5))


@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (1023,), (1, 341, 3), (1024,), (2, 512), (1025,), (1 << 40, 3, 0)])
def test_few_elements_and_more(leaky_relu: LoadedOp, shape: tuple[int, ...]) -> None:
    """Calls on few elements in dense memory have no plan; nothing around the last of them is written."""
    x = np.random.default_rng(3).standard_normal(shape, np.float32) if 0 not in shape else np.zeros(shape, np.float32)
    guarded = np.full(x.size + 2, 7, np.float32)
    leaky_relu(x, 0.5, out=guarded[1:-1].reshape(shape))
    np.testing.assert_array_equal(guarded[1:-1].reshape(shape), expected(x, 0.5))
    assert guarded[0] == guarded[-1] == 7


def test_unaligned_array_of_a_known_shape(leaky_relu: LoadedOp) -> None:
    np.testing.assert_array_equal(leaky_relu(X), expected(X))
    np.testing.assert_array_equal(leaky_relu(views(X)["unaligned"]), expected(X))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1,) * 32, (5, 1, 7)])
def test_shapes(leaky_relu: LoadedOp, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape) - 3
    for _ in range(2):
        result = leaky_relu(x)
        assert result.shape == shape
        np.testing.assert_array_equal(result, expected(x))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_dtypes(leaky_relu: LoadedOp, dtype: Any) -> None:
    x = X.astype(dtype)
    for _ in range(2):
        result = leaky_relu(x, 0.5)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.astype(np.float32), expected(X, 0.5))


def test_numbers_and_lists_take_a_dtype_that_holds_them(leaky_relu: LoadedOp, plus: LoadedOp) -> None:
    assert leaky_relu([1, -2]).dtype == np.float64
    assert leaky_relu(2.0).shape == ()
    assert leaky_relu(np.float32(2.0)).dtype == np.float32
    assert plus([1, 2], np.int8(3)).dtype == np.int8
    assert plus(np.float32([1, 2]), 3).dtype == np.float32
    assert plus(np.ones(2, np.float32), [[1.5], [2.5]]).tolist() == [[2.5, 2.5], [3.5, 3.5]]
    assert plus([0.5], [1]).dtype == np.float32
    with pytest.raises(TypeError, match="b would have dtype float64, but may be int32"):
        plus(np.ones(2, np.int32), 1.5)
    with pytest.raises(ValueError, match=r"plus: b: .*300"):
        plus(np.ones(2, np.int8), [300, 1])


def test_optional_input_and_every_kind_of_attribute(kitchen: LoadedOp) -> None:
    w = np.array([1.0, 0.5, 2.0], np.float32)
    squares = -((X * 2 + 1 - 3) ** 2)
    for shift in ((1, 3), [1, 3], np.array([1, 3])):
        for weights, factor in ((w, w), (None, 1)):
            y, total = kitchen(X, weights, 2, shift, True, "square")
            np.testing.assert_array_equal(y, squares * factor)
            np.testing.assert_array_equal(total, squares.sum(-1))
    y, total = kitchen(X.astype(ml_dtypes.bfloat16), flip=np.True_)
    assert (y.dtype, total.dtype) == (ml_dtypes.bfloat16, np.float32)


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({"scale": "1"}, TypeError, "kitchen: scale must be float, got '1'"),
        ({"scale": None}, TypeError, "kitchen: scale must be float, got None"),
        ({"scale": -1.0}, ValueError, "scale >= 0"),
        ({"scale": 10**400}, ValueError, "kitchen: scale does not fit in 64 bits"),
        ({"shift": (1,)}, ValueError, r"kitchen: shift has 2 elements, got \(1,\)"),
        ({"shift": 1}, TypeError, "kitchen: shift must be a list of int, got 1"),
        ({"shift": (1, 2.5)}, TypeError, "kitchen: shift must be a list of int"),
        ({"shift": (1, 2**63)}, ValueError, r"kitchen: shift does not fit in 64 bits, got \(1, 9223372036854775808\)"),
        ({"shift": "12"}, TypeError, "kitchen: shift must be a list of int"),
        ({"flip": 2}, TypeError, "kitchen: flip must be bool, got 2"),
        ({"flip": "no"}, TypeError, "kitchen: flip must be bool, got 'no'"),
        ({"mode": "cube"}, ValueError, "kitchen: mode is one of plain, square, got 'cube'"),
        ({"mode": 1}, TypeError, "kitchen: mode must be str, got 1"),
        ({"other": 1}, TypeError, "unexpected keyword argument 'other'"),
    ],
)
def test_wrong_attributes(kitchen: LoadedOp, attributes: dict[str, Any], error: type[Exception], message: str) -> None:
    kitchen(X)  # so that the fast way has a plan for these arrays
    with pytest.raises(error, match=message):
        kitchen(X, **attributes)


def test_wrong_inputs(kitchen: LoadedOp, plus: LoadedOp, leaky_relu: LoadedOp) -> None:
    kitchen(X)
    with pytest.raises(TypeError, match=r"x has dtype int32, but T is one of bfloat16, float32, float64"):
        kitchen(X.astype(np.int32))
    with pytest.raises(TypeError, match="x is float32 and w is float64, both must be T"):
        kitchen(X, X[0].astype(np.float64))
    with pytest.raises(TypeError, match="x is not optional"):
        kitchen(None)
    with pytest.raises(TypeError, match="x would have dtype object"):
        kitchen([{}])
    with pytest.raises(ValueError, match="D is 3 in x, but 2 in w"):
        kitchen(X, X[0, :2])
    with pytest.raises(ValueError, match=r"kitchen: x .*axis"):
        kitchen(np.float32(1.0))
    with pytest.raises(ValueError, match=r"\[3\].*\[2\]|\[2\].*\[3\]|broadcast"):
        plus(np.ones(3, np.float32), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="33 axes, more than 32"):
        leaky_relu(np.ones((1,) * 33))


class OnTheGpu:
    """An array as a GPU library shows it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("the data was asked for")


class Unreadable(OnTheGpu):
    """An array on the CPU that cannot be exported."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("it requires grad")


def test_dlpack(leaky_relu: LoadedOp) -> None:
    with pytest.raises(ValueError, match=r"x is not in the CPU's memory \(DLPack device type 2\)"):
        leaky_relu(OnTheGpu())
    with pytest.raises(TypeError, match="x: NumPy takes no such Unreadable through DLPack: it requires grad"):
        leaky_relu(Unreadable())


def test_out_and_in_place(leaky_relu: LoadedOp, plus: LoadedOp) -> None:
    out = np.empty_like(X)
    for _ in range(2):
        out[:] = 7
        assert leaky_relu(X, out=out) is out
        np.testing.assert_array_equal(out, expected(X))
        assert leaky_relu(X, out=(out,)) is out
        x = X.copy()
        assert leaky_relu(x, out=x) is x
        np.testing.assert_array_equal(x, expected(X))
    buffer = np.zeros(10, np.float32)
    with pytest.raises(ValueError, match="overlap"):
        leaky_relu(buffer[1:], out=buffer[:-1])
    a = np.ones(4, np.float32)
    with pytest.raises(ValueError, match="overlap"):
        plus(np.ones(4, np.float32), a, out=a)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((3, 2), np.float32), ValueError, r"out for y has shape \(3, 2\), needed is \(2, 3\)"),
        (np.empty((2, 3), np.float64), TypeError, "out for y has dtype float64, needed is float32"),
        (np.empty((2, 6), np.float32)[:, ::2], ValueError, "out for y is not contiguous"),
        (np.broadcast_to(np.float32(0), (2, 3)), ValueError, "out for y is not contiguous"),
        (views(X)["read-only"], ValueError, "out for y is not writable"),
        (np.empty(25, np.uint8)[1:].view(np.float32).reshape(2, 3), ValueError, "out for y is not aligned"),
        ([1.0], TypeError, "out for y is no NumPy array"),
        ((), ValueError, "out has 0 arrays for 1 outputs"),
    ],
)
def test_wrong_out(leaky_relu: LoadedOp, out: Any, error: type[Exception], message: str) -> None:
    leaky_relu(X)
    with pytest.raises(error, match=message):
        leaky_relu(X, out=out)


def test_several_outputs(dual_residual: LoadedOp) -> None:
    y = X[::-1].copy()
    u, v = dual_residual(X, y, 0.5)
    np.testing.assert_array_equal(u, X * np.float32(0.5) - y)
    out = (np.empty_like(X), None)
    for given in (out, list(out)):
        first, second = dual_residual(X, y, 0.5, out=given)
        assert first is out[0]
        np.testing.assert_array_equal(first, u)
        np.testing.assert_array_equal(second, v)
    with pytest.raises(ValueError, match="out has 1 arrays for 2 outputs"):
        dual_residual(X, y, out=out[:1])
    with pytest.raises(ValueError, match="out has 1 arrays for 2 outputs"):
        dual_residual(X, y, out=np.empty((2, 2, 3), np.float32))


def test_derived_ops_and_the_choice_of_outputs(dual_residual: LoadedOp) -> None:
    backward = dual_residual.numpy.dual_residual_backward
    d = np.ones((2, 3), np.float32)
    shape = np.zeros((2, 3), np.float32)
    # Which forward inputs the gradient needs is the compiler's choice.
    names = [p for p in _parameters(backward) if p in ("x", "y")]
    given = dict.fromkeys(names, shape)
    for _ in range(2):
        d_x, d_y = backward(**given, d_u=d, d_v=None, alpha=0.5)
        np.testing.assert_array_equal(d_x, 0.5 * d)
        np.testing.assert_array_equal(d_y, -d)
        d_x, d_y = backward(**given, d_u=d, d_v=None, alpha=0.5, only=("d_y",))
        assert d_x is None
        np.testing.assert_array_equal(d_y, -d)
    with pytest.raises(ValueError, match="no output 'd_z' to choose, only d_x, d_y"):
        backward(**given, d_u=d, d_v=None, only=("d_z",))


def _parameters(function: Any) -> list[str]:
    import inspect

    return list(inspect.signature(function).parameters)


def test_number_of_plans_is_bounded(leaky_relu: LoadedOp) -> None:
    support = leaky_relu.numpy._support
    op = leaky_relu.numpy._leaky_relu
    for n in range(support.MOST_PLANS + 10):
        leaky_relu(np.zeros(n, np.float32))
    assert 10 <= len(op.plans) <= support.MOST_PLANS


def test_threads_answer_alike(kitchen: LoadedOp) -> None:
    x = np.random.default_rng(1).standard_normal((3000, 700)).astype(np.float32)
    before = kitchen.numpy.get_num_threads()
    results = []
    try:
        for count in (1, 2, 5):
            kitchen.numpy.set_num_threads(count)
            assert kitchen.numpy.get_num_threads() == count
            results.append(kitchen(x, scale=3.0)[0])
    finally:
        kitchen.numpy.set_num_threads(before)
    for result in results:
        np.testing.assert_array_equal(result, x * np.float32(3.0))


def test_calls_from_several_threads(leaky_relu: LoadedOp) -> None:
    arrays = [np.full(200_000, -float(i), np.float32) for i in range(6)]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            if not (leaky_relu(arrays[i], 0.5) == -i * 0.5).all():
                wrong.append(i)
            with pytest.raises(ValueError, match=f"alpha = -{i + 1} "):
                leaky_relu(arrays[i], -(i + 1))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_call_after_fork(leaky_relu: LoadedOp) -> None:
    """The threads of the parent are gone in the child, which must not wait for them."""
    import os

    x = np.full(4_000_000, -2.0, np.float32)
    leaky_relu(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if (leaky_relu(x, 0.5) == -1).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.rotating
def test_no_leak(leaky_relu: LoadedOp) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    x = np.zeros(300_000, np.float32)
    shapes = [(n, 5) for n in range(50)]
    for _ in range(10):
        leaky_relu(x)
    before = resident()
    for i in range(1000):
        leaky_relu(x)
        leaky_relu(x[::2])
        leaky_relu(np.zeros(shapes[i % 50]))
        with pytest.raises(ValueError, match="alpha"):
            leaky_relu(x, -1.0)
    assert resident() - before < 4 * x.nbytes
