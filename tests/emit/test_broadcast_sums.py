"""Gradients of operands that may be broadcast, against NumPy: sums over points, of one point each where nothing is broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.lower.loop_ir import RowStage
from opc.lower.lower import lower
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere
from tests.narrow import only

PRODUCT = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64]}
broadcast: true
inputs: {a: 'T[...]', b: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = a * b
"""
Array = np.ndarray[Any, Any]
rng = np.random.default_rng(11)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], KernelLibrary]:
    family = compile_text(PRODUCT, "f.yaml")
    assert family.backward is not None
    (variant,) = lower(family.backward)
    (stage,) = variant.program.stages
    assert isinstance(stage, RowStage)
    assert [o.reduction for o in stage.operands if o.written] == ["sum", "sum"]
    family = only(family, "backward")
    folder = compile_kernel(family, tmp_path_factory.mktemp("sums"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)


def summed(x: Array, shape: tuple[int, ...]) -> Array:
    """Return the sum of `x` over the axes along which an operand of that shape is broadcast."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(k for k, n in enumerate(shape) if n == 1), keepdims=True)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((5,), (5,)),
    ((70000,), (70000,)),
    ((300, 7), (300, 7)),
    ((3, 40000), (3, 40000)),
    ((3, 40000), (40000,)),
    ((64, 20000), (20000,)),
    ((40000, 3), (40000, 1)),
    ((2, 1, 900), (1, 30, 900)),
    ((1, 1), (300, 200)),
    ((0, 4), (0, 4)),
]


@pytest.mark.rotating
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("parallel_for", [None, odd_parallel_for, split_everywhere])
def test_gradients(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], parallel_for: Any, kernels: Callable[[Any], KernelLibrary]
) -> None:
    kernel = kernels(parallel_for)
    op = kernel.family.backward
    assert op is not None
    a, b = (rng.integers(-2, 3, shape) for shape in shapes)
    d_y = rng.integers(-2, 3, np.broadcast_shapes(*shapes))
    for dtype in ("float16", "float32", "float64"):
        for layout in (np.ascontiguousarray, np.asfortranarray):
            given = {n: layout(v.astype(dtype)) for n, v in (("a", a), ("b", b), ("d_y", d_y))}
            got = kernel.call(op, given, {})
            for name, want in (("d_a", summed(d_y * b, a.shape)), ("d_b", summed(d_y * a, b.shape))):
                if dtype != "float16" or np.abs(want).max(initial=0) <= 2048:
                    np.testing.assert_array_equal(got[name].astype(float), want, f"{name} {dtype}")


def test_a_negative_zero_is_kept(kernels: Callable[[Any], KernelLibrary]) -> None:
    kernel = kernels(odd_parallel_for)
    op = kernel.family.backward
    assert op is not None
    ones, zeros = np.ones(100000, np.float32), np.full(100000, -0.0, np.float32)
    got = kernel.call(op, {"a": ones, "b": ones, "d_y": zeros}, {})
    assert np.signbit(got["d_a"]).all()
    assert np.signbit(got["d_b"]).all()


def test_all_threads_work_where_nothing_is_broadcast(kernels: Callable[[Any], KernelLibrary]) -> None:
    asked = []

    def parallel_for(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
        asked.append(-(-count // grain))
        body(argument, 0, count)

    kernel = kernels(parallel_for)
    op = kernel.family.backward
    assert op is not None
    x = np.ones(1 << 20, np.float32)
    kernel.call(op, {"a": x, "b": x, "d_y": x}, {})
    assert min(asked) >= 16


def test_all_threads_add_up_partial_results(kernels: Callable[[Any], KernelLibrary]) -> None:
    asked = []

    def parallel_for(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
        asked.append((count, -(-count // grain)))
        body(argument, 0, count)

    kernel = kernels(parallel_for)
    op = kernel.family.backward
    assert op is not None
    x, b = np.ones((64, 20000), np.float32), np.full(20000, 2, np.float32)
    np.testing.assert_array_equal(kernel.call(op, {"a": x, "b": b, "d_y": x}, {})["d_b"], np.full(20000, 64))
    assert any(count == 20000 and pieces >= 4 for count, pieces in asked)
    # Alone it is a sum over rows, in strips of columns.
    asked.clear()
    np.testing.assert_array_equal(kernel.call(op, {"a": x, "b": b, "d_y": x}, {}, wanted=["d_b"])["d_b"], np.full(20000, 64))
    assert asked[0][1] >= 16
