"""Searches and reductions over windows, tile by tile: against a loop over the windows, with every step, edge and odd value."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.lower.nest_plans import ScatterPlan
from opc.pipeline import compile_text, load_family
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere
from tests.narrow import narrow


@cache
def max_pool() -> Family:
    with TemporaryDirectory() as folder:
        return load_family(narrow("max_pool2d", Path(folder), "float16, float32, float64"))


Array = np.ndarray[Any, Any]
Pair = tuple[int, int]
rng = np.random.default_rng(5)

LEAST = """\
op: f
domain: opc.test
version: 1
doc: Adds each number where the least of its window is.
gradient: none
types: {T: [float32, float64]}
inputs: {x: 'T[N, W]', g: 'T[N, M]'}
outputs: {y: 'T[N, W]'}
kernel: |
  y[n, w] = cast(T, sum[j](g[n, j] if argmin[q:3](pad(x[n, 2*j + q - 1], inf)) + (2*j - 1) == w else 0))
"""

FOLDS = """\
op: f
domain: opc.test
version: 1
doc: The sum and the least of each window, two apart and one apart.
gradient: none
types: {T: [float32, float64]}
inputs: {x: 'T[N, W]'}
attributes: {k: {type: int}}
outputs: {a: 'T[N, M]', b: 'T[N, W]'}
shape: {M: (W + 1) // 2}
kernel: |
  a[n, j] = sum[q:k](pad(x[n, 2*j + q - 1], 0))
  b[n, j] = min[q:k](pad(x[n, j + q - 1], inf))
"""

VOLUMES = """\
op: f
domain: opc.test
version: 1
doc: The greatest of each window of a volume, and sums over two rows of its diagonal.
gradient: none
types: {T: [float32, float64]}
inputs: {x: 'T[N, D, H, W]'}
outputs: {a: 'T[N, D, H, W]', b: 'T[N, 3, W]'}
require: [D == 4, H >= 4]
kernel: |
  a[n, d, h, w] = max[p:3, q:3, r:7](pad(x[n, d + p - 1, h + q - 1, w + r - 3], -inf))
  b[n, d, w] = sum[p:2, r:7](pad(x[n, d + p, d + p, w + r - 3], 0))
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_kernel(max_pool(), tmp_path_factory.mktemp("pool"))


def windows_of(x: Array, window: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Array:
    """Return the windows of images, in two more axes; what they have outside is -inf."""
    spans = tuple(d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True))
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, (2, 3))
    return windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def scattered(x: Array, d_y: Array, window: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Array:
    """Return the gradient of max pooling: the first NaN of a window gets it, else the first of the greatest, if it is inside."""
    d_x = np.zeros(x.shape)
    height, width = x.shape[2:]
    # NumPy's argmax finds the first NaN, else the first of the greatest.
    found = windows_of(x, window, stride, padding, dilation).reshape(*d_y.shape, -1).argmax(-1)
    n, c, i, j = np.indices(d_y.shape)
    row = i * stride[0] + found // window[1] * dilation[0] - padding[0]
    column = j * stride[1] + found % window[1] * dilation[1] - padding[1]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    np.add.at(d_x, tuple(a[inside] for a in (n, c, row, column)), d_y[inside])
    return d_x


CALLS: tuple[tuple[Pair, Pair, Pair, Pair, Pair], ...] = (
    ((7, 9), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((8, 40), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((9, 75), (2, 3), (2, 2), (0, 1), (1, 1)),
    ((6, 70), (3, 5), (1, 1), (1, 2), (2, 3)),
    ((6, 64), (2, 2), (2, 2), (1, 1), (1, 1)),
    ((5, 61), (3, 3), (2, 3), (1, 1), (1, 1)),
    ((3, 3), (3, 3), (1, 1), (0, 0), (1, 1)),
    ((4, 2300), (2, 4), (3, 2), (1, 2), (1, 1)),
    ((1, 40), (1, 3), (1, 1), (0, 1), (1, 1)),
    ((5, 1), (3, 1), (2, 1), (1, 0), (1, 1)),
    ((20, 20), (5, 5), (1, 1), (2, 2), (1, 1)),
    ((13, 28), (13, 13), (1, 1), (6, 6), (1, 1)),
    ((11, 13), (9, 9), (1, 1), (4, 4), (1, 1)),
    ((40, 56), (5, 5), (1, 1), (2, 2), (1, 1)),
    ((30, 41), (5, 7), (2, 2), (2, 3), (1, 1)),
    ((12, 70), (3, 3), (1, 1), (4, 4), (4, 4)),
    ((12, 70), (4, 9), (3, 1), (2, 4), (2, 1)),
    ((4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((3, 2300), (3, 9), (1, 1), (1, 4), (1, 1)),
    ((64, 6), (61, 41), (1, 1), (0, 20), (1, 1)),
    ((4, 37), (1, 1), (1, 1), (0, 0), (1 << 31, 1)),
)
"""Size of the image, window, stride, padding, dilation: few cut windows, many, such that no copy of the rows fits; the last makes
positions that 32 bits do not hold."""


def strew(x: Array, values: str) -> None:
    """Put NaNs or infinities into some places of an image."""
    odd = rng.random(x.shape)
    if values == "nan":
        x[odd < 0.02] = np.nan
    elif values == "infinite":
        x[odd < 0.7] = -np.inf
        x[odd > 0.95] = np.inf


@pytest.mark.rotating
@pytest.mark.parametrize("values", ["numbers", "ties", "nan", "infinite"])
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_places_of_maxima(pool: Path, call: tuple[Pair, Pair, Pair, Pair, Pair], values: str) -> None:
    size, window, stride, padding, dilation = call
    x = rng.standard_normal((1, 3, *size)) if values == "numbers" else rng.integers(-1, 2, (1, 3, *size)).astype(float)
    strew(x, values)
    out = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(*call)]
    d_y = rng.integers(1, 9, (1, 3, *out)).astype(float)
    attributes = {"kernel_size": window, "stride": stride, "padding": padding, "dilation": dilation}
    kernels = [KernelLibrary(max_pool(), pool, f) for f in (None, odd_parallel_for, split_everywhere)]
    for dtype in ("float16", "float32", "float64"):
        given = {"x": x.astype(dtype), "d_y": d_y.astype(dtype)}
        expected = scattered(given["x"], d_y, window, stride, padding, dilation).astype(dtype)
        for kernel in kernels:
            got = kernel.call(max_pool().ops[1], given, attributes)["d_x"]
            np.testing.assert_array_equal(got, expected, f"{dtype}")


@pytest.mark.parametrize("values", ["numbers", "nan", "infinite"])
@pytest.mark.parametrize("call", CALLS[:-1], ids=str)
def test_maxima(pool: Path, call: tuple[Pair, Pair, Pair, Pair, Pair], values: str) -> None:
    size, window, stride, padding, dilation = call
    x = rng.integers(-9, 9, (1, 3, *size)).astype(float)
    strew(x, values)
    expected = windows_of(x, window, stride, padding, dilation).max((-1, -2))
    attributes = {"kernel_size": window, "stride": stride, "padding": padding, "dilation": dilation}
    for parallel_for in (None, split_everywhere):
        kernel = KernelLibrary(max_pool(), pool, parallel_for)
        for dtype in ("float16", "float32", "float64"):
            got = kernel.call(max_pool().forward, {"x": x.astype(dtype)}, attributes)["y"]
            np.testing.assert_array_equal(got.astype(float), expected, f"{dtype}")


def test_sums_and_minima(tmp_path: Path) -> None:
    family = compile_text(FOLDS, "f.yaml")
    text = "".join(kernel_files(family).values())
    assert "opc::reduce_windows<opc::combine::add>" in text
    assert "opc::reduce_windows<opc::combine::min>" in text
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    for dtype, columns, size in product(("float32", "float64"), (1, 2, 5, 9, 17, 50, 64, 131, 2100), (3, 24)):
        x = rng.integers(-9, 9, (3, columns)).astype(dtype)
        x[1, columns // 2] = np.nan
        x[2, columns // 2] = np.inf
        got = kernel.call(family.forward, {"x": x}, {"k": size})
        sums = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, size))), size, 1)[:, ::2].sum(-1)
        np.testing.assert_array_equal(got["a"], sums[:, : (columns + 1) // 2])
        padded = np.pad(x, ((0, 0), (1, size - 2)), constant_values=np.inf)
        np.testing.assert_array_equal(got["b"], np.lib.stride_tricks.sliding_window_view(padded, size, 1).min(-1))


def test_windows_of_three_axes(tmp_path: Path) -> None:
    """The rows of a window's outer axes are padded too; where their distance is that of no row, lanes are computed one by one."""
    family = compile_text(VOLUMES, "f.yaml")
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), odd_parallel_for)
    for dtype, columns in product(("float32", "float64"), (3, 7, 20, 50, 131)):
        x = rng.integers(-9, 9, (2, 4, 6, columns)).astype(dtype)
        got = kernel.call(family.forward, {"x": x}, {})
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (3, 3)), constant_values=-np.inf)
        np.testing.assert_array_equal(
            got["a"], np.lib.stride_tricks.sliding_window_view(padded, (3, 3, 7), (1, 2, 3)).max((4, 5, 6))
        )
        padded = np.pad(x, ((0, 0), (0, 0), (0, 0), (3, 3)))
        rows = np.lib.stride_tricks.sliding_window_view(padded, 7, 3).sum(-1)
        np.testing.assert_array_equal(got["b"], np.stack([rows[:, p, p] + rows[:, p + 1, p + 1] for p in range(3)], 1))
        turned = np.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1]
        np.testing.assert_array_equal(kernel.call(family.forward, {"x": turned}, {})["a"], got["a"])


def test_places_of_minima(tmp_path: Path) -> None:
    family = compile_text(LEAST, "f.yaml")
    (stage,) = (s for v in lower(family.forward) for s in v.program.stages if isinstance(s, NestStage))
    assert all(isinstance(p, ScatterPlan) and p.window is not None and p.window.search.kind == "argmin" for p in stage.plans)
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    for dtype in ("float32", "float64"):
        x = rng.integers(-2, 3, (2, 50)).astype(dtype)
        g = rng.integers(-2, 3, (2, 25)).astype(dtype)
        got = kernel.call(family.forward, {"x": x, "g": g}, {})["y"]
        assert got.shape == x.shape
        expected = np.zeros_like(x)
        padded = np.pad(x, ((0, 0), (1, 1)), constant_values=np.inf)
        for n, j in np.ndindex(g.shape):
            expected[n, 2 * j - 1 + int(padded[n, 2 * j : 2 * j + 3].argmin())] += g[n, j]
        np.testing.assert_array_equal(got, expected)
