"""Products, extremes and conditions of all points against NumPy: of short rows point by point, of long ones in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int32]}
inputs: {x: 'T[...]', b: 'bool[...]'}
outputs: {most: 'T[]', least: 'T[]', product: 'T[]', some: 'bool[]', every: 'bool[]'}
kernel: |
  most = max[...](x[...])
  least = min[...](x[...])
  product = cast(T, prod[...](x[...]))
  some = any[...](b[...] and x[...] > 0)
  every = all[...](b[...] or x[...] > 0)
"""

PIECES = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, int32]}
inputs: {x: 'T[N, C, *S]'}
outputs: {y: 'T[N, C, *S]', most: 'T[C]', product: 'T[C]', some: 'bool[C]'}
kernel: |
  y[n, c, *S] = -x[n, c, *S]
  most[c] = max[n, *S](x[n, c, *S])
  product[c] = cast(T, prod[n, *S](x[n, c, *S]))
  some[c] = any[n, *S](x[n, c, *S] > 1)
"""
Array = np.ndarray[Any, Any]
HOSTS = [None, odd_parallel_for, split_everywhere]
SHAPES: list[tuple[int, ...]] = [(), (1,), (63,), (64,), (65,), (7, 9), (300, 7), (70001,), (3, 1, 50000)]
rng = np.random.default_rng(12)


def spread(array: Array) -> Array:
    """Return the array with every other element of the last axis in memory left out."""
    return np.repeat(array, 2, -1)[..., ::2] if array.ndim else array


def few(shape: tuple[int, ...], value: Any) -> Array:
    """Return ones, but for one element at most."""
    x = np.ones(shape)
    if x.size > 1:
        x.flat[rng.integers(x.size)] = value
    return x


Kernels = Callable[[Any], KernelLibrary]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    family = compile_text(SPEC, "f.yaml")
    folder = compile_kernel(family, tmp_path_factory.mktemp("reductions"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)


@pytest.mark.rotating
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parallel_for", HOSTS)
def test_reductions(shape: tuple[int, ...], parallel_for: Any, kernels: Kernels) -> None:
    kernel = kernels(parallel_for)
    for value in (-3, 0, 2, -np.inf, np.inf, np.nan):
        x, b = few(shape, value), np.asarray(rng.random(shape) < (0.5 if value == 0 else 0))
        for dtype in ("float16", "float32", "float64", *(["int32"] if np.isfinite(value) else [])):
            for layout in (np.ascontiguousarray, np.asfortranarray, spread):
                given = {"x": layout(x.astype(dtype)), "b": layout(b)}
                got = kernel.call(kernel.family.forward, given, {})
                np.testing.assert_array_equal(got["most"], x.max())
                np.testing.assert_array_equal(got["least"], x.min())
                np.testing.assert_array_equal(got["product"], x.prod())
                assert got["some"] == (b & (x > 0)).any()
                assert got["every"] == (b | (x > 0)).all()


def test_conditions_that_hold_nowhere_or_at_one_point(kernels: Kernels) -> None:
    kernel = kernels(odd_parallel_for)
    for size in (5, 64, 70001):
        x, b = np.full(size, -1, np.float32), np.zeros(size, bool)
        at = int(rng.integers(size))
        for there in (False, True):
            b[at] = x[at] = there
            got = kernel.call(kernel.family.forward, {"x": x, "b": b}, {})
            assert got["some"] == there
            assert not got["every"]
            assert got["most"] == there


@pytest.mark.parametrize("shape", [(70001,), (300, 700)])
def test_products_are_the_same_on_all_hosts(shape: tuple[int, ...], kernels: Kernels) -> None:
    given = {"x": np.exp(rng.standard_normal(shape, dtype=np.float32) / 100), "b": np.zeros(shape, bool)}
    found = {kernels(host).call(kernels(host).family.forward, given, {})["product"].tobytes() for host in HOSTS}
    assert len(found) == 1


@pytest.mark.parametrize("shape", [(3, 4), (1, 5, 7), (2, 3, 70), (1, 1, 200), (3, 5, 40, 9), (2, 2, 33000), (1, 7, 1)])
@pytest.mark.parametrize("parallel_for", HOSTS)
def test_pieces_that_lie_apart(shape: tuple[int, ...], parallel_for: Any, pieces: Kernels) -> None:
    """Results of several points, of one each where N and *S have one, and of rows that lie side by side."""
    kernel = pieces(parallel_for)
    others = (0, *range(2, len(shape)))
    for value in (-3, 2, np.nan):
        x = few(shape, value)
        for dtype in ("float16", "float32", *(["int32"] if np.isfinite(value) else [])):
            for layout in (np.ascontiguousarray, spread):
                got = kernel.call(kernel.family.forward, {"x": layout(x.astype(dtype))}, {})
                np.testing.assert_array_equal(got["y"], (-x).astype(dtype))
                np.testing.assert_array_equal(got["most"], x.max(others))
                np.testing.assert_array_equal(got["product"], x.prod(others))
                np.testing.assert_array_equal(got["some"], (x > 1).any(others))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    family = compile_text(PIECES, "f.yaml")
    folder = compile_kernel(family, tmp_path_factory.mktemp("pieces"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)
