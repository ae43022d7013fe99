"""Reductions over windows of small planes, whose lanes go across channels, against NumPy in whole numbers, which add exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for
from tests.emit.windows import windows
from tests.narrow import only

PLANES = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64]}
inputs: {x: 'T[N, C, H, W]', w: 'T[C, P, Q]', 'b?': 'T[C]'}
attributes:
  stride: {type: 'int[2]', default: [1, 1], check: stride > 0}
  padding: {type: 'int[2]', default: [0, 0], check: padding >= 0}
  dilation: {type: 'int[2]', default: [1, 1], check: dilation > 0}
outputs: {y: 'T[N, C, OH, OW]'}
shape:
  OH: (H + 2*padding[0] - dilation[0]*(P - 1) - 1) // stride[0] + 1
  OW: (W + 2*padding[1] - dilation[1]*(Q - 1) - 1) // stride[1] + 1
kernel: |
  y[n, c, i, j] = 2 * sum[p, q](
      w[c, p, q] * pad(x[n, c, i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], 0)
  ) + (b[c] if present(b) else 0)
"""

LINES = """\
op: g
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64]}
inputs: {x: 'T[N, C, W]', w: 'T[C, Q]'}
outputs: {y: 'T[N, C, O]'}
shape: {O: W - Q + 1}
kernel: 'y[n, c, j] = sum[q](w[c, q] * x[n, c, j + q])'
"""

POOLS = """\
op: h
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64]}
inputs: {x: 'T[N, C, H, W]'}
attributes:
  kernel: {type: 'int[2]', check: kernel > 0}
  stride: {type: 'int[2]', default: [1, 1], check: stride > 0}
  padding: {type: 'int[2]', default: [0, 0], check: padding >= 0}
  dilation: {type: 'int[2]', default: [1, 1], check: dilation > 0}
outputs: {total: 'T[N, C, OH, OW]', most: 'T[N, C, OH, OW]', fewest: 'T[N, C, OH, OW]'}
shape:
  OH: (H + 2*padding[0] - dilation[0]*(kernel[0] - 1) - 1) // stride[0] + 1
  OW: (W + 2*padding[1] - dilation[1]*(kernel[1] - 1) - 1) // stride[1] + 1
kernel: |
  total[n, c, i, j] = 1 + sum[p:kernel[0], q:kernel[1]](
      pad(x[n, c, i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], 0))
  most[n, c, i, j] = max[p:kernel[0], q:kernel[1]](
      pad(x[n, c, i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], -inf))
  fewest[n, c, i, j] = min[p:kernel[0], q:kernel[1]](
      pad(x[n, c, i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], inf))
"""

# Channels: less than a vector has lanes, some more, many. An image, a window, stride, padding, dilation.
CASES = [
    (3, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (19, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (40, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
    (33, (5, 9), (5, 5), (1, 1), (2, 2), (1, 1)),
    (32, (1, 1), (3, 3), (1, 1), (1, 1), (1, 1)),
    (17, (9, 2), (3, 1), (1, 1), (1, 0), (1, 1)),
    (48, (11, 13), (4, 2), (3, 2), (2, 3), (2, 3)),
    (16, (30, 57), (3, 5), (2, 5), (0, 4), (1, 1)),
    (21, (90, 60), (3, 3), (2, 2), (1, 1), (1, 1)),  # in several slabs
    (20, (4, 12), (2, 3), (1, 1), (3, 11), (1, 1)),  # wide padding
    (18, (3, 100), (3, 3), (1, 1), (1, 1), (1, 1)),
]
DTYPES = [np.float16, np.float32, np.float64]


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = only(compile_text(PLANES), "backward")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("planes")), odd_parallel_for)


def problem(case: tuple[Any, ...], dtype: type) -> tuple[dict[str, Array], dict[str, Any], Array]:
    """Return inputs in small whole numbers, attributes, and the windows of the images."""
    channels, image, size, stride, padding, dilation = case
    rng = np.random.default_rng(channels)
    at = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    x = rng.integers(-1, 2, (2, channels, *image)).astype(dtype)
    w = rng.integers(-1, 2, (channels, *size)).astype(dtype)
    b = rng.integers(-3, 4, (channels,)).astype(dtype)
    return {"x": x, "w": w, "b": b}, at, windows(x.astype(np.float64), size, at)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_planes(planes: KernelLibrary, dtype: type, case: tuple[Any, ...]) -> None:
    given, at, found = problem(case, dtype)
    expected = 2 * np.einsum("ncijpq,cpq->ncij", found, given["w"].astype(np.float64))
    bias = given["b"].astype(np.float64)[:, None, None]
    np.testing.assert_array_equal(planes.call(planes.family.forward, given, at)["y"], expected + bias)
    turned = {**given, "x": np.ascontiguousarray(given["x"].transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)}
    np.testing.assert_array_equal(planes.call(planes.family.forward, turned, at)["y"], expected + bias)
    del given["b"]
    np.testing.assert_array_equal(planes.call(planes.family.forward, given, at)["y"], expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_gradients(planes: KernelLibrary, dtype: type, case: tuple[Any, ...]) -> None:
    given, at, found = problem(case, dtype)
    rng = np.random.default_rng(1)
    d_y = rng.integers(-1, 2, found.shape[:4]).astype(dtype)
    assert planes.family.backward is not None
    got = planes.call(planes.family.backward, {"x": given["x"], "w": given["w"], "d_y": d_y}, at)
    d_w = 2 * np.einsum("ncijpq,ncij->cpq", found, d_y.astype(np.float64))
    np.testing.assert_array_equal(got["d_w"], d_w.astype(dtype))
    moved = rng.integers(-1, 2, given["x"].shape).astype(np.float64)
    along = 2 * np.einsum("ncijpq,cpq->ncij", windows(moved, given["w"].shape[1:], at), given["w"].astype(np.float64))
    assert (got["d_x"] * moved).sum() == (d_y * along).sum()
    np.testing.assert_array_equal(got["d_b"], d_y.astype(np.float64).sum((0, 2, 3)))


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(POOLS)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("pools")), odd_parallel_for)


@pytest.mark.rotating
@pytest.mark.parametrize("values", ["numbers", "nan", "infinite"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_pooling(pools: KernelLibrary, dtype: type, case: tuple[Any, ...], values: str) -> None:
    channels, image, size, stride, padding, dilation = case
    rng = np.random.default_rng(channels)
    x = rng.integers(-9, 10, (2, channels, *image)).astype(np.float64)
    odd = rng.random(x.shape) < 0.02
    if values == "nan":
        x[0][odd[0]] = np.nan
    elif values == "infinite":
        x[odd] = np.inf
        x[1][rng.random(x.shape[1:]) < 0.6] = -np.inf
    at = {"kernel": list(size), "stride": list(stride), "padding": list(padding), "dilation": list(dilation)}
    got = pools.call(pools.family.forward, {"x": x.astype(dtype)}, at)
    for name, found, nothing in (("most", np.max, -np.inf), ("fewest", np.min, np.inf)):
        np.testing.assert_array_equal(got[name].astype(float), found(windows(x, size, at, nothing), axis=(-2, -1)))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got["total"].astype(float), 1 + windows(x, size, at).sum((-2, -1)))


def test_lines(tmp_path_factory: pytest.TempPathFactory) -> None:
    family = only(compile_text(LINES))
    library = KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("lines")), odd_parallel_for)
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (3, 35, 11)).astype(np.float32)
    w = rng.integers(-2, 3, (35, 4)).astype(np.float32)
    expected = np.einsum("ncjq,cq->ncj", np.lib.stride_tricks.sliding_window_view(x, 4, 2), w)
    np.testing.assert_array_equal(library.call(family.forward, {"x": x, "w": w}, {})["y"], expected)


def test_an_infinite_weight_meets_the_padding(planes: KernelLibrary) -> None:
    """Zeros of the padding times infinity are NaN, in those sums alone whose window reaches it there."""
    at = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
    w = np.ones((32, 3, 3), np.float32)
    w[1, 0, 2] = np.inf
    y = planes.call(planes.family.forward, {"x": np.ones((1, 32, 6, 7), np.float32), "w": w}, at)["y"]
    assert np.isfinite(np.delete(y, 1, axis=1)).all()
    assert np.isnan(y[0, 1, 0]).all()
    assert np.isnan(y[0, 1, :, -1]).all()
    assert np.isposinf(y[0, 1, 1:, :-1]).all()


def test_an_infinite_weight_stays_inside_of_the_gradient(planes: KernelLibrary) -> None:
    """What lies outside of the output adds nothing to the gradient by the input, and no other channel gets any of it."""
    at = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1]}
    w = np.ones((32, 3, 3), np.float32)
    w[5, 0, 0] = np.inf
    given = {"x": np.ones((1, 32, 6, 6), np.float32), "w": w, "d_y": np.ones((1, 32, 4, 4), np.float32)}
    assert planes.family.backward is not None
    d_x = planes.call(planes.family.backward, given, at)["d_x"][0]
    assert np.isfinite(np.delete(d_x, 5, axis=0)).all()
    assert np.isposinf(d_x[5, :4, :4]).all()
    assert np.isfinite(d_x[5, 4:]).all()
    assert np.isfinite(d_x[5, :, 4:]).all()


def test_an_infinite_element_stays_in_its_windows(planes: KernelLibrary) -> None:
    at = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
    x = np.ones((1, 32, 7, 7), np.float32)
    x[0, 3, 3, 3] = np.inf
    y = planes.call(planes.family.forward, {"x": x, "w": np.ones((32, 3, 3), np.float32)}, at)["y"]
    assert np.isposinf(y[0, 3, 2:5, 2:5]).all()
    assert np.isfinite(y).sum() == y.size - 9


def test_the_kernel_takes_planes_together() -> None:
    text = "".join(kernel_files(compile_text(PLANES)).values())
    assert text.count("opc::reduce_channels<opc::combine::fma>(") >= 3
    assert text.count("opc::keep_channels(nest, 1);") >= 2
    pooled = "".join(kernel_files(compile_text(POOLS)).values())
    assert all(f"opc::reduce_channels<opc::combine::{name}>(" in pooled for name in ("add", "max", "min"))
