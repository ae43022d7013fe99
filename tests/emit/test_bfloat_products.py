"""Contractions of bfloat16 against float64: sizes around blocks, numbers at both ends of the exponents, few rows, any layout."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from opc.ir.dtypes import DType, numpy_dtype
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, bfloat16, float32]}
inputs: {a: 'T[M, K]', b: 'T[K, N]', w: 'T[N, K]'}
outputs: {y: 'T[M, N]', z: 'T[M, N]'}
kernel: |
  y[m, n] = sum[k](a[m, k] * b[k, n])
  z[m, n] = sum[k](a[m, k] * w[n, k])
"""
SIZES = [
    (1, 1, 1),
    (1, 100, 64),
    (2, 1300, 70),
    (3, 5, 7),
    (4, 641, 48),
    (5, 1301, 49),
    (67, 129, 97),
    (2, 0, 3),
    (8, 5000, 5),
    (9, 1, 65),
]
SIZES += [(67, 130, 97), (64, 1302, 49), (33, 642, 48), (40, 2, 40), (100, 64, 33)]
SIZES += [(64, 1301, 48), (33, 3, 40), (50, 77, 49)]
"""The last are of elements that are multiplied often, so that pairs of them are words."""
NARROW = (DType.BFLOAT16, DType.FLOAT16)


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(SPEC)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("products")), odd_parallel_for)


def numbers(dtype: DType, *shape: int, scale: float = 1.0) -> Array:
    drawn = np.random.default_rng(sum(shape)).standard_normal(shape) * scale
    return np.asarray(drawn.astype(numpy_dtype(dtype)))


def check(library: KernelLibrary, a: Array, b: Array, w: Array) -> None:
    """Hold the outputs to exact sums, within what roundings of sums as floats and of the result leave open."""
    found = library.call(library.family.forward, {"a": a, "b": b, "w": w}, {})
    wide, last = a.astype(np.float64), np.finfo(np.float32)
    digits = 8 if a.dtype == numpy_dtype(DType.BFLOAT16) else 11
    for name, right in (("y", b.astype(np.float64)), ("z", w.astype(np.float64).T)):
        exact, terms = wide @ right, np.abs(wide) @ np.abs(right)
        # Half a unit of the result, at most that of the least number; of each sum of floats one rounding.
        least = 2.0**-134 if digits == 8 else 2.0**-25
        bound = np.abs(exact) * 2.0**-digits + least + terms * (a.shape[1] + 1) * last.eps / 2
        np.testing.assert_array_less(np.abs(found[name].astype(np.float64) - exact), bound * 1.01 + 1e-300, err_msg=name)


@pytest.mark.rotating
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products(products: KernelLibrary, m: int, k: int, n: int) -> None:
    for dtype in NARROW:
        check(products, numbers(dtype, m, k), numbers(dtype, k, n), numbers(dtype, n, k))


@pytest.mark.parametrize(("left", "right"), list(product((1e-39, 1e-30, 1e-19, 1e-8), (1e-39, 1e-12, 1.0, 1e30))))
def test_products_that_are_subnormal_or_of_subnormal_numbers(products: KernelLibrary, left: float, right: float) -> None:
    bfloat = DType.BFLOAT16
    a, b, w = numbers(bfloat, 41, 66, scale=left), numbers(bfloat, 66, 50, scale=right), numbers(bfloat, 50, 66, scale=right)
    check(products, a, b, w)
    # One such number among others of a panel.
    a, b = numbers(bfloat, 41, 66), numbers(bfloat, 66, 50)
    a[3, 5], b[5, 7], w[7, 5] = left, right, right
    check(products, a, b, w)


def test_a_sum_of_normal_products_that_is_subnormal(products: KernelLibrary) -> None:
    bfloat = numpy_dtype(DType.BFLOAT16)
    a, b = np.zeros((40, 64), bfloat), np.zeros((64, 48), bfloat)
    a[:, 0], a[:, 1] = (1 + 2.0**-7) * 2.0**-60, -(2.0**-60)
    b[:2] = 2.0**-60
    found = products.call(products.family.forward, {"a": a, "b": b, "w": np.ascontiguousarray(b.T)}, {})
    for name in ("y", "z"):
        assert (found[name].astype(np.float64) == 2.0**-127).all()


def test_infinities_and_nan(products: KernelLibrary) -> None:
    bfloat = DType.BFLOAT16
    a, b, w = numbers(bfloat, 37, 40), numbers(bfloat, 40, 60), numbers(bfloat, 60, 40)
    a[2, 3], a[5, 0], b[3, 4], w[8, 1] = np.inf, np.nan, 0.0, -np.inf
    found = products.call(products.family.forward, {"a": a, "b": b, "w": w}, {})
    with np.errstate(invalid="ignore"):
        for name, right in (("y", b.astype(np.float32)), ("z", w.astype(np.float32).T)):
            exact = a.astype(np.float32) @ right
            np.testing.assert_array_equal(np.isnan(found[name].astype(np.float32)), np.isnan(exact))
            np.testing.assert_array_equal(np.isinf(found[name].astype(np.float32)), np.isinf(exact))


def test_operands_in_any_layout(products: KernelLibrary) -> None:
    for dtype in NARROW:
        a, b, w = numbers(dtype, 70, 132), numbers(dtype, 132, 50), numbers(dtype, 100, 132)
        check(products, np.asfortranarray(a)[::-1], b[:, ::-1], w[::2])


@pytest.mark.parametrize("rows", [1, 16, 40])
def test_long_sums(products: KernelLibrary, rows: int) -> None:
    for dtype in NARROW:
        check(products, numbers(dtype, rows, 20_000), numbers(dtype, 20_000, 32), numbers(dtype, 32, 20_000))


CONV = """\
op: conv
domain: opc.test
version: 1
doc: A test.
types: {T: [bfloat16]}
inputs: {x: 'T[N, C, H, W]', w: 'T[O, I, P, Q]'}
attributes:
  stride: {type: int, check: stride > 0}
  padding: {type: int, check: padding >= 0}
  groups: {type: int, check: groups > 0}
outputs: {y: 'T[N, O, OH, OW]'}
shape:
  OH: (H + 2*padding - P) // stride + 1
  OW: (W + 2*padding - Q) // stride + 1
require: [P <= H + 2*padding, Q <= W + 2*padding, C == I * groups, O % groups == 0]
kernel: |
  y[n, o, i, j] = sum[c, p, q](w[o, c, p, q]
    * pad(x[n, o // (O // groups) * I + c, i*stride + p - padding, j*stride + q - padding], 0))
"""


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(CONV)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("conv")), odd_parallel_for)


@pytest.mark.parametrize(
    ("channels", "groups", "stride", "padding", "window"),
    [(4, 1, 1, 1, 3), (4, 2, 1, 0, 3), (6, 1, 2, 1, 3), (3, 1, 1, 1, 3), (8, 1, 1, 0, 1), (130, 1, 1, 2, 5), (12, 3, 2, 2, 4)],
)
def test_convolutions_and_their_gradients(
    convolution: KernelLibrary, channels: int, groups: int, stride: int, padding: int, window: int
) -> None:
    family, dtype = convolution.family, numpy_dtype(DType.BFLOAT16)
    attributes = {"stride": stride, "padding": padding, "groups": groups}
    x = numbers(DType.BFLOAT16, 2, channels, 13, 18)
    w = numbers(DType.BFLOAT16, 48, channels // groups, window, window)
    given = {n: torch.from_numpy(a.astype(np.float64)).requires_grad_() for n, a in (("x", x), ("w", w))}
    exact = torch.nn.functional.conv2d(given["x"], given["w"], stride=stride, padding=padding, groups=groups)
    found = convolution.call(family.forward, {"x": x, "w": w}, attributes)["y"]
    dy = numbers(DType.BFLOAT16, *exact.shape)
    exact.backward(torch.from_numpy(dy.astype(np.float64)))
    assert family.backward is not None
    derived = convolution.call(family.backward, {"x": x, "w": w, "d_y": dy}, attributes)
    for got, want in ((found, exact.detach()), (derived["d_x"], given["x"].grad), (derived["d_w"], given["w"].grad)):
        assert want is not None
        assert got.dtype == dtype
        wide = want.numpy()
        # A sum of n products of numbers of about 1 is of about n ** 0.5; its roundings are as floats.
        np.testing.assert_allclose(got.astype(np.float64), wide, rtol=2.0**-8, atol=1e-4 * np.abs(wide).max())
