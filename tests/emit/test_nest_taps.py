"""Sums over weighted windows, and the sums of products in their gradients, against NumPy in whole numbers, which add exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for
from tests.emit.windows import windows
from tests.narrow import only

DEPTHWISE = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64]}
inputs: {x: 'T[N, C, H, W]', w: 'T[C, P, Q]'}
attributes:
  stride: {type: 'int[2]', default: [1, 1], check: stride > 0}
  padding: {type: 'int[2]', default: [0, 0], check: padding >= 0}
  dilation: {type: 'int[2]', default: [1, 1], check: dilation > 0}
outputs: {y: 'T[N, C, OH, OW]'}
shape:
  OH: (H + 2*padding[0] - dilation[0]*(P - 1) - 1) // stride[0] + 1
  OW: (W + 2*padding[1] - dilation[1]*(Q - 1) - 1) // stride[1] + 1
kernel: |
  y[n, c, i, j] = sum[p, q](
      w[c, p, q] * pad(x[n, c, i*stride[0] + p*dilation[0] - padding[0], j*stride[1] + q*dilation[1] - padding[1]], 0))
"""


@pytest.fixture(scope="module")
def depthwise(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = only(compile_text(DEPTHWISE), "backward")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("depthwise")), odd_parallel_for)


def attributes(stride: int, padding: int, dilation: int) -> dict[str, Any]:
    return {"stride": [stride] * 2, "padding": [padding] * 2, "dilation": [dilation] * 2}


CASES = [
    # The width of an image and a window, stride, padding, dilation: narrow rows, less and more than a few vectors, cut rows.
    (5, 3, 1, 1, 1),
    (11, 3, 1, 1, 1),
    (17, 3, 1, 1, 1),
    (56, 3, 1, 1, 1),
    (40, 5, 1, 0, 2),
    (130, 4, 1, 3, 1),
    (1500, 3, 1, 1, 1),
    (90, 3, 2, 1, 1),
    (33, 1, 1, 2, 1),
    (64, 7, 3, 3, 2),
    (80, 9, 1, 4, 1),
    (21, 7, 1, 3, 2),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("width", "size", "stride", "padding", "dilation"), CASES)
def test_windows(depthwise: KernelLibrary, dtype: type, width: int, size: int, stride: int, padding: int, dilation: int) -> None:
    rng = np.random.default_rng(width)
    at = attributes(stride, padding, dilation)
    height = dilation * (size - 1) + 3
    x = rng.integers(-2, 3, (2, 3, height, width)).astype(dtype)
    w = rng.integers(-2, 3, (3, size, size)).astype(dtype)
    found = windows(x.astype(np.float64), (size, size), at)
    expected = np.einsum("ncijpq,cpq->ncij", found, w.astype(np.float64))
    np.testing.assert_array_equal(depthwise.call(depthwise.family.forward, {"x": x, "w": w}, at)["y"], expected)
    for turned in (np.ascontiguousarray(x[..., ::-1])[..., ::-1], np.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :]):
        np.testing.assert_array_equal(depthwise.call(depthwise.family.forward, {"x": turned, "w": w}, at)["y"], expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("width", "size", "stride", "padding", "dilation"), CASES)
def test_gradients(
    depthwise: KernelLibrary, dtype: type, width: int, size: int, stride: int, padding: int, dilation: int
) -> None:
    rng = np.random.default_rng(width)
    at = attributes(stride, padding, dilation)
    x = rng.integers(-1, 2, (1, 3, dilation * (size - 1) + 2, width)).astype(dtype)
    w = rng.integers(-1, 2, (3, size, size)).astype(dtype)
    found = windows(x.astype(np.float64), (size, size), at)
    d_y = rng.integers(-1, 2, found.shape[:4]).astype(dtype)
    assert depthwise.family.backward is not None
    got = depthwise.call(depthwise.family.backward, {"x": x, "w": w, "d_y": d_y}, at)
    np.testing.assert_array_equal(got["d_w"], np.einsum("ncijpq,ncij->cpq", found, d_y.astype(np.float64)))
    moved = rng.integers(-1, 2, x.shape).astype(np.float64)
    along = np.einsum("ncijpq,cpq->ncij", windows(moved, (size, size), at), w.astype(np.float64))
    assert (got["d_x"] * moved).sum() == (d_y * along).sum()


def test_an_infinite_weight_meets_the_padding(depthwise: KernelLibrary) -> None:
    """Zeros of the padding times infinity are NaN, in those sums alone whose window reaches it there."""
    at = attributes(1, 1, 1)
    x = np.ones((1, 2, 6, 70), np.float32)
    w = np.ones((2, 3, 3), np.float32)
    w[1, 0, 2] = np.inf
    y = depthwise.call(depthwise.family.forward, {"x": x, "w": w}, at)["y"]
    assert np.isfinite(y[0, 0]).all()
    assert np.isnan(y[0, 1, 0]).all()
    assert np.isnan(y[0, 1, :, -1]).all()
    assert np.isposinf(y[0, 1, 1:, :-1]).all()


def test_an_infinite_weight_stays_inside_of_the_gradient(depthwise: KernelLibrary) -> None:
    """What lies outside of the output adds nothing to the gradient by the input."""
    at = attributes(1, 0, 1)
    w = np.ones((1, 3, 3), np.float32)
    w[0, 0, 0] = np.inf
    given = {"x": np.ones((1, 1, 5, 70), np.float32), "w": w, "d_y": np.ones((1, 1, 3, 68), np.float32)}
    assert depthwise.family.backward is not None
    d_x = depthwise.call(depthwise.family.backward, given, at)["d_x"][0, 0]
    assert np.isposinf(d_x[:3, :68]).all()
    assert np.isfinite(d_x[3:]).all()
    assert np.isfinite(d_x[:, 68:]).all()


def test_the_kernel_holds_strips_of_windows_and_sums_of_products() -> None:
    text = "".join(kernel_files(compile_text(DEPTHWISE)).values())
    text = " ".join(text.split())
    assert "opc::reduce_windows<opc::combine::fma>(window, total, count, padded)" in text
    assert "stride_0 == 1 && stride_1 == 1 && opc::reduce_windows<opc::combine::fma>(window, total, lanes, padded)" in text
    assert "opc::add_products(total, " in text or "opc::add_products(total,\n" in text
