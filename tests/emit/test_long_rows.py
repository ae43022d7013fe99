"""Stages over points against NumPy where the last axis is long, and what lacks it is there once a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.lower.loop_ir import RowStage
from opc.lower.lower import lower
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int32]}
"""
CHANNELS = """\
inputs: {x: 'T[N, C, *S]', k: 'T[C]', 'b?': 'T[N, C]'}
outputs: {y: 'T[N, C, *S]', total: 'T[C]', largest: 'T[C]'}
kernel: |
  y[n, c, *S] = x[n, c, *S] * (k[c] + 1) - (b[n, c] if present(b) else 0)
  total[c] = cast(T, sum[n, *S](x[n, c, *S] * k[c]))
  largest[c] = max[n, *S](x[n, c, *S])
"""
Array = np.ndarray[Any, Any]
rng = np.random.default_rng(5)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], KernelLibrary]:
    family = compile_text(HEAD + CHANNELS, "f.yaml")
    (variant,) = lower(family.forward)
    first = variant.program.stages[0]
    assert isinstance(first, RowStage)
    assert first.once is not None
    folder = compile_kernel(family, tmp_path_factory.mktemp("rows"))
    return lambda parallel_for: KernelLibrary(family, folder, parallel_for)


def expected(x: Array, k: Array, b: Array | None) -> dict[str, Array]:
    """Return the outputs for whole numbers."""
    over = (0, *range(2, x.ndim))
    wide = (slice(None), *(None for _ in x.shape[2:]))
    y = x * (k + 1)[wide] - (0 if b is None else b[(slice(None), *wide)])
    return {"y": y, "total": x.sum(over) * k, "largest": x.max(over)}


@pytest.mark.rotating
@pytest.mark.parametrize("shape", [(), (1,), (63,), (64,), (65,), (9, 8), (1, 300), (2, 20000)])
@pytest.mark.parametrize("parallel_for", [None, odd_parallel_for, split_everywhere])
def test_rows(shape: tuple[int, ...], parallel_for: Any, kernels: Callable[[Any], KernelLibrary]) -> None:
    kernel = kernels(parallel_for)
    op = kernel.family.forward
    for points in ((3, 5), (1, 1), (2, 1), (1, 7)):
        x = (rng.random((*points, *shape)) < 16 / max(np.prod(shape, dtype=int), 16)).astype(int)
        k, b = rng.integers(-2, 3, points[1]), rng.integers(-2, 3, points)
        for bias in (b, None):
            truth = expected(x, k, bias)
            for dtype in ("float16", "float32", "float64", "int32"):
                given: dict[str, Array | None] = {"x": x.astype(dtype), "k": k.astype(dtype), "b": None}
                if bias is not None:
                    given["b"] = bias.astype(dtype)
                for layout in (np.ascontiguousarray, np.asfortranarray):
                    got = kernel.call(op, {n: None if a is None else layout(a) for n, a in given.items()}, {})
                    for name, value in truth.items():
                        np.testing.assert_array_equal(got[name].astype(float), value, f"{name} {points} {dtype}")
