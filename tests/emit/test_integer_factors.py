"""Contractions of floats with factors of 8 bits: none is stored as floats first. Every sum is exact here."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.ir.dtypes import DType, numpy_dtype
from opc.lower.contractions.contraction import extract
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = (
    "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
    "types: {T: [float16, bfloat16, float32, float64], A: [int8, uint8], B: [int8, uint8]}\n"
)
TYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)

PRODUCTS = """\
inputs: {x: 'T[M, K]', u: 'A[M, K]', v: 'B[K, N]', w: 'B[N, K]', c: 'T[K, N]', s: 'A[K, N]'}
outputs: {lines: 'T[M, N]', dots: 'T[M, N]', first: 'T[M, N]', both: 'T[M, N]'}
kernel: |
  lines[m, n] = sum[k](x[m, k] * cast(T, v[k, n]))
  dots[m, n] = sum[k](cast(T, w[n, k]) * x[m, k])
  first[m, n] = sum[k](cast(T, u[m, k]) * c[k, n])
  both[m, n] = sum[k](cast(T, u[m, k]) * cast(T, s[k, n]))
"""

CONV = """\
inputs: {x: 'T[N, C, H, W]', b: 'A[N, C, H, W]', w: 'B[O, C, P, Q]', g: 'T[O, C, P, Q]'}
outputs: {taps: 'T[N, O, H + 3 - P, W + 3 - Q]', field: 'T[N, O, H + 3 - P, W + 3 - Q]'}
require: [1 <= P, 1 <= Q, P <= H + 2, Q <= W + 2]
kernel: |
  taps[n, o, i, j] = sum[c, p, q](pad(x[n, c, i + p - 1, j + q - 1], 0) * cast(T, w[o, c, p, q]))
  field[n, o, i, j] = sum[c, p, q](cast(T, pad(b[n, c, i + p - 1, j + q - 1], 0)) * g[o, c, p, q])
"""

SIZES = [(1, 1, 1), (1, 100, 64), (2, 1300, 70), (3, 6, 7), (4, 641, 48), (66, 130, 97), (2, 0, 3), (140, 256, 96)]


def _floats(kind: DType, *shape: int) -> Array:
    """Whole numbers of which products and sums are exact, 0 seldom, so that sums are of both signs."""
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(numpy_dtype(kind))


def _bytes(kind: type, *shape: int) -> Array:
    ends = np.iinfo(kind)
    numbers = np.random.default_rng(sum(shape) + 1).integers(ends.min - 60, ends.max + 61, shape)
    return np.asarray(numbers.clip(ends.min, ends.max), kind)


def _sum(kind: DType, left: Array, right: Array) -> Array:
    return (left.astype(np.int64) @ right.astype(np.int64)).astype(np.float64).astype(numpy_dtype(kind))


def test_no_factor_is_stored_first() -> None:
    for text in (PRODUCTS, CONV):
        assert not extract(compile_text(HEAD + text).forward).temporaries


def test_a_type_that_does_not_hold_them_stores_the_factor() -> None:
    text = HEAD.replace("bfloat16", "float8_e4m3fn") + PRODUCTS
    assert extract(compile_text(text).forward).temporaries


@pytest.fixture(scope="module", params=instruction_sets())
def products(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family, flag = compile_text(HEAD + PRODUCTS), f"-DOPC_FORCE_VARIANT={request.param}"
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("factors"), flag), odd_parallel_for)


def _check(library: KernelLibrary, kind: DType, given: dict[str, Array]) -> None:
    found = library.call(library.family.forward, given, {})
    x, u, v, w, c, s = (given[n] for n in "xuvwcs")
    expected = {"lines": (x, v), "dots": (x, w.T), "first": (u, c), "both": (u, s)}
    with np.errstate(over="ignore"):
        for name, factors in expected.items():
            np.testing.assert_array_equal(found[name], _sum(kind, *factors), err_msg=f"{name} of {kind}")


@pytest.mark.rotating
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products(products: KernelLibrary, m: int, k: int, n: int) -> None:
    for kind, left, right in product(TYPES, (np.int8, np.uint8), (np.int8, np.uint8)):
        given = (
            _floats(kind, m, k),
            _bytes(left, m, k),
            _bytes(right, k, n),
            _bytes(right, n, k),
            _floats(kind, k, n),
            _bytes(left, k, n) % 7,
        )
        _check(products, kind, dict(zip("xuvwcs", given, strict=True)))


def test_operands_in_any_layout(products: KernelLibrary) -> None:
    for kind, rows in product(TYPES, (1, 2, 70)):
        given = {
            "x": _floats(kind, 2 * rows, 130)[::2, ::-1],
            "u": np.asfortranarray(_bytes(np.int8, rows, 130)),
            "v": _bytes(np.uint8, 50, 130).T,
            "w": _bytes(np.uint8, 50, 260)[::-1, ::2],
            "c": np.asfortranarray(_floats(kind, 130, 50)),
            "s": _bytes(np.int8, 130, 50) % 7,
        }
        _check(products, kind, given)


def test_convolutions(tmp_path: Path) -> None:
    family = compile_text(HEAD + CONV)
    library = KernelLibrary(family, compile_kernel(family, tmp_path), split_everywhere)
    for kind in TYPES:
        given = {
            "x": _floats(kind, 2, 4, 11, 13),
            "b": _bytes(np.uint8, 2, 4, 11, 13),
            "w": _bytes(np.int8, 9, 4, 3, 2),
            "g": _floats(kind, 9, 4, 3, 2),
        }
        found = library.call(family.forward, given, {})
        for name, image, taps in (("taps", "x", "w"), ("field", "b", "g")):
            padded = np.pad(given[image].astype(np.int64), ((0, 0), (0, 0), (1, 1), (1, 1)))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))
            exact = np.einsum("ncijpq,ocpq->noij", windows, given[taps].astype(np.int64))
            np.testing.assert_array_equal(
                found[name], exact.astype(np.float64).astype(numpy_dtype(kind)), err_msg=f"{name} of {kind}"
            )
