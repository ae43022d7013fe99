"""Reductions over leading and middle axes against NumPy: strips of columns, and short rows that are one long row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text, load_family
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere
from tests.narrow import only

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int32]}
inputs: {x: 'T[N, K, M]', 'w?': 'T[M]', 'd?': 'T[N, K, M]'}
outputs:
  over_first: acc(T)[K, M]
  over_two: acc(T)[M]
  over_middle: acc(T)[N, M]
  products: T[M]
  most: T[K, M]
  least: T[N, M]
  some: bool[M]
  every: bool[N, M]
kernel: |
  over_first[k, m] = sum[n](x[n, k, m])
  over_two[m] = sum[n, k](x[n, k, m])
  over_middle[n, m] = sum[k](x[n, k, m])
  products[m] = cast(T, sum[n, k](x[n, k, m] * w[m] + (d[n, k, m] if present(d) else 0))) if present(w) else 0
  most[k, m] = max[n](x[n, k, m])
  least[n, m] = min[k](x[n, k, m])
  some[m] = any[n, k](x[n, k, m] > 1)
  every[n, m] = all[k](x[n, k, m] != 0)
"""
Array = np.ndarray[Any, Any]
SPECS = Path(__file__).parents[2] / "specs"
HOSTS = [None, odd_parallel_for, split_everywhere]
SHAPES = [(1, 1, 1), (5, 1, 7), (1, 300, 8), (67, 9, 33), (3, 130, 100), (700, 3, 63), (2, 5, 5000), (130, 40, 64)]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], KernelLibrary]:
    family = compile_text(SPEC, "f.yaml")
    folder = compile_kernel(family, tmp_path_factory.mktemp("strips"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)


def spread(x: Array) -> Array:
    """Return the array with every other element of the last axis in memory left out."""
    return np.repeat(x, 2, -1)[..., ::2]


def turned(x: Array) -> Array:
    """Return the array with its first two axes the other way round in memory."""
    return np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)


@pytest.mark.rotating
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parallel_for", HOSTS)
def test_reductions(shape: tuple[int, int, int], parallel_for: Any, kernels: Callable[[Any], KernelLibrary]) -> None:
    kernel, rng = kernels(parallel_for), np.random.default_rng(3)
    whole = rng.choice([-1, 0, 1, 2], shape, p=[0.01, 0.97, 0.01, 0.01])
    weights = rng.integers(-1, 2, shape[-1:])
    for dtype in ("float16", "float32", "float64", "int32"):
        for layout in (np.ascontiguousarray, np.asfortranarray, spread, turned):
            x, w, d = layout(whole.astype(dtype)), weights.astype(dtype), layout((whole + 1).astype(dtype))
            for given in ({"w": None, "d": None}, {"w": w, "d": None}, {"w": w, "d": d}):
                got = kernel.call(kernel.family.forward, {"x": x, **given}, {})
                total = 0 if given["w"] is None else (whole * weights + (0 if given["d"] is None else whole + 1)).sum((0, 1))
                want = {
                    "over_first": whole.sum(0),
                    "over_two": whole.sum((0, 1)),
                    "over_middle": whole.sum(1),
                    "products": np.broadcast_to(total, shape[-1:]).astype(dtype),
                    "most": whole.max(0),
                    "least": whole.min(1),
                    "some": (whole > 1).any((0, 1)),
                    "every": (whole != 0).all(1),
                }
                for name, value in want.items():
                    np.testing.assert_array_equal(got[name], value, f"{name} of {shape} {dtype}")


@pytest.mark.parametrize("shape", [(4000, 1, 3), (300, 5, 64), (40, 40, 700)])
def test_results_are_the_same_on_all_hosts(shape: tuple[int, int, int], kernels: Callable[[Any], KernelLibrary]) -> None:
    x = np.random.default_rng(4).standard_normal(shape, dtype=np.float32)
    found = [kernels(host).call(kernels(host).family.forward, {"x": x, "w": x[0, 0], "d": x}, {}) for host in HOSTS]
    for name, value in found[0].items():
        assert {f[name].tobytes() for f in found} == {value.tobytes()}


def test_errors_of_long_sums_grow_slowly(kernels: Callable[[Any], KernelLibrary]) -> None:
    """One partial result after the other would be off by a thousand times as much."""
    kernel = kernels(None)
    for shape in ((1 << 20, 1, 3), (1, 1 << 17, 40)):
        x = np.full(shape, 0.1, np.float32)
        got = kernel.call(kernel.family.forward, {"x": x, "w": None, "d": None}, {})
        for name, count in (("over_two", shape[0] * shape[1]), ("over_middle", shape[1])):
            np.testing.assert_allclose(got[name], count * np.float64(np.float32(0.1)), rtol=2e-5)


def test_extremes_keep_nans(kernels: Callable[[Any], KernelLibrary]) -> None:
    kernel, rng = kernels(None), np.random.default_rng(5)
    for dtype in ("float16", "float32", "float64"):
        for shape in ((400, 3, 8), (300, 5, 70)):
            x = rng.standard_normal(shape).astype(dtype)
            x[rng.random(shape) < 0.002] = np.nan
            x[0, :, 1], x[-1, :, 2] = np.nan, np.nan
            got = kernel.call(kernel.family.forward, {"x": x, "w": None, "d": None}, {})
            for name, value in zip(("most", "least"), (x.max(0), x.min(1)), strict=True):
                np.testing.assert_array_equal(got[name], value, f"{name} of {shape} {dtype}")


def test_rows_that_lie_across_are_summed_point_by_point() -> None:
    text = format_variant(lower(compile_text(SPEC, "f.yaml").forward)[0])
    assert "whole rows" not in text
    assert "write output over_first: acc(T)[k:K, m:M], sum over points" in text
    assert "write output most: T[k:K, m:M], max over points" in text


def folder_of(op: str, folder: Path) -> KernelLibrary:
    """Return the kernel of one of the specs."""
    family = only(load_family(SPECS / f"{op}.yaml"))
    return KernelLibrary(family, compile_kernel(family, folder), None)


@pytest.fixture(scope="module")
def mean(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    return folder_of("reduce_mean", tmp_path_factory.mktemp("mean"))


@pytest.mark.parametrize("shape", [(1, 1, 1), (70, 3, 8), (5, 40, 130), (2, 70000, 3), (3, 1, 2)])
def test_a_call_chooses_by_where_its_axes_lie(shape: tuple[int, int, int], mean: KernelLibrary) -> None:
    rng = np.random.default_rng(6)
    whole = rng.integers(-4, 5, shape)
    for dtype in ("float32", "float16"):
        for layout in (np.ascontiguousarray, np.asfortranarray, spread, turned):
            x = layout(whole.astype(dtype))
            for axes in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
                got = mean.call(mean.family.forward, {"x": x}, {"axes": axes, "keepdims": False})["y"]
                want = whole.sum(tuple(axes)).astype(np.float32) / np.prod([shape[a] for a in axes], dtype=np.float32)
                np.testing.assert_array_equal(got, want.astype(dtype), f"{axes} of {shape} {dtype}")


def test_programs_of_ops_that_list_axes() -> None:
    """One pass over rows in pieces is as well done point by point; a second one finds a row in the cache."""
    for op, where in (("reduce_mean", "axes lie across memory or apart"), ("mean_variance_norm", "axes lie across memory")):
        across, usual = map(format_variant, cpu_programs(load_family(SPECS / f"{op}.yaml").forward))
        assert across.startswith(f"program {op} when {where}\n")
        assert "whole rows" not in across
        assert "sum over points" in across
        assert "whole rows of [*K] along [*R]" in usual
