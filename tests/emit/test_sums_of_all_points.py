"""Sums of all points of a tensor against NumPy: of short rows point by point, of long ones in registers."""

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
types: {T: [float16, bfloat16, float32, float64, int32]}
inputs: {x: 'T[...]', 'k?': 'T[...]'}
outputs: {y: 'T[...]', total: 'T[]', products: 'T[]'}
kernel: |
  y[...] = x[...] - 1
  total = cast(T, sum[...](x[...]))
  products = cast(T, sum[...](x[...] * k[...])) if present(k) else 0
"""
Array = np.ndarray[Any, Any]
HOSTS = [None, odd_parallel_for, split_everywhere]
rng = np.random.default_rng(11)


def spread(array: Array) -> Array:
    """Return the array with every other element of the last axis in memory left out."""
    return np.repeat(array, 2, -1)[..., ::2] if array.ndim else array


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], KernelLibrary]:
    family = compile_text(SPEC, "f.yaml")
    folder = compile_kernel(family, tmp_path_factory.mktemp("sums"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)


@pytest.mark.rotating
@pytest.mark.parametrize("shape", [(), (0,), (1,), (63,), (64,), (65,), (7, 9), (300, 7), (70001,), (3, 1, 50000)])
@pytest.mark.parametrize("parallel_for", HOSTS)
def test_sums(shape: tuple[int, ...], parallel_for: Any, kernels: Callable[[Any], KernelLibrary]) -> None:
    kernel = kernels(parallel_for)
    # Few of many points are not zero, so that float16 holds the sums.
    few = 16 / max(np.prod(shape, dtype=int), 16)
    x, k = (np.asarray((rng.random(shape) < few) * rng.integers(1, 4, shape)) for _ in range(2))
    for dtype in ("float16", "float32", "float64", "int32"):
        for layout in (np.ascontiguousarray, np.asfortranarray, spread):
            for given in (k, None):
                arrays = {"x": layout(x.astype(dtype)), "k": None if given is None else layout(given.astype(dtype))}
                got = kernel.call(kernel.family.forward, arrays, {})
                np.testing.assert_array_equal(got["y"], (x - 1).astype(dtype))
                assert got["total"] == x.sum()
                assert got["products"] == (0 if given is None else (x * k).sum())


@pytest.mark.parametrize("shape", [(70001,), (300, 700)])
def test_sums_are_the_same_on_all_hosts(shape: tuple[int, ...], kernels: Callable[[Any], KernelLibrary]) -> None:
    x = rng.standard_normal(shape, dtype=np.float32)
    found = {kernels(host).call(kernels(host).family.forward, {"x": x, "k": x}, {})["total"].tobytes() for host in HOSTS}
    assert len(found) == 1
