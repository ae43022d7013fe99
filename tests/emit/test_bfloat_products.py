"""Contractions of bfloat16 against float64: sizes around blocks, numbers at both ends of the exponents, few rows, any layout."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

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
    a, b, w = numbers(bfloat, 19, 66, scale=left), numbers(bfloat, 66, 50, scale=right), numbers(bfloat, 50, 66, scale=right)
    check(products, a, b, w)
    # One such number among others of a panel.
    a, b = numbers(bfloat, 19, 66), numbers(bfloat, 66, 50)
    a[3, 5], b[5, 7], w[7, 5] = left, right, right
    check(products, a, b, w)


def test_a_sum_of_normal_products_that_is_subnormal(products: KernelLibrary) -> None:
    bfloat = numpy_dtype(DType.BFLOAT16)
    a, b = np.zeros((16, 64), bfloat), np.zeros((64, 48), bfloat)
    a[:, 0], a[:, 1] = (1 + 2.0**-7) * 2.0**-60, -(2.0**-60)
    b[:2] = 2.0**-60
    found = products.call(products.family.forward, {"a": a, "b": b, "w": np.ascontiguousarray(b.T)}, {})
    for name in ("y", "z"):
        assert (found[name].astype(np.float64) == 2.0**-127).all()


def test_infinities_and_nan(products: KernelLibrary) -> None:
    bfloat = DType.BFLOAT16
    a, b, w = numbers(bfloat, 17, 40), numbers(bfloat, 40, 60), numbers(bfloat, 60, 40)
    a[2, 3], a[5, 0], b[3, 4], w[8, 1] = np.inf, np.nan, 0.0, -np.inf
    found = products.call(products.family.forward, {"a": a, "b": b, "w": w}, {})
    with np.errstate(invalid="ignore"):
        for name, right in (("y", b.astype(np.float32)), ("z", w.astype(np.float32).T)):
            exact = a.astype(np.float32) @ right
            np.testing.assert_array_equal(np.isnan(found[name].astype(np.float32)), np.isnan(exact))
            np.testing.assert_array_equal(np.isinf(found[name].astype(np.float32)), np.isinf(exact))


def test_operands_in_any_layout(products: KernelLibrary) -> None:
    for dtype in NARROW:
        a, b, w = numbers(dtype, 70, 131), numbers(dtype, 131, 50), numbers(dtype, 100, 131)
        check(products, np.asfortranarray(a)[::-1], b[:, ::-1], w[::2])


@pytest.mark.parametrize("rows", [1, 16])
def test_long_sums(products: KernelLibrary, rows: int) -> None:
    for dtype in NARROW:
        check(products, numbers(dtype, rows, 20_000), numbers(dtype, 20_000, 24), numbers(dtype, 24, 20_000))
