"""Contractions of 8-bit numbers against NumPy's int64: sizes around blocks, zero points, windows, few rows, instruction sets."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.lower.contractions.contraction import contraction_stage, extract
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {A: [int8, uint8], B: [int8, uint8]}\n"

PRODUCTS = """\
inputs: {a: 'A[M, K]', b: 'B[K, N]', w: 'B[N, K]', p: 'A[]', q: 'B[N]'}
outputs: {y: 'int32[M, N]', z: 'int64[M, N]', shifted: 'int64[M, N]'}
kernel: |
  y[m, n] = cast(int32, sum[k](cast(int32, a[m, k]) * cast(int32, b[k, n])))
  z[m, n] = sum[k](cast(int64, a[m, k]) * cast(int64, w[n, k]))
  shifted[m, n] = sum[k]((cast(int32, a[m, k]) - cast(int32, p[])) * (cast(int32, b[k, n]) - cast(int32, q[n])))
"""

CONV = """\
inputs: {x: 'A[N, C, H, W]', w: 'B[O, C, P, Q]', zero: 'A[]'}
attributes:
  stride: {type: int, default: 1, check: stride > 0}
  padding: {type: int, default: 0, check: padding >= 0}
outputs: {y: 'int32[N, O, OH, OW]'}
shape:
  OH: (H + 2*padding - P) // stride + 1
  OW: (W + 2*padding - Q) // stride + 1
require: [P <= H + 2*padding, Q <= W + 2*padding]
kernel: |
  y[n, o, i, j] = cast(int32, sum[c, p, q]((cast(int32, x[n, c, i*stride + p - padding, j*stride + q - padding])
    - cast(int32, zero[]) if 0 <= i*stride + p - padding and i*stride + p - padding < H
    and 0 <= j*stride + q - padding and j*stride + q - padding < W
    else 0) * cast(int32, w[o, c, p, q])))
"""

# As one writes it: what is above the zero point, in 32 bits, under `pad`, with groups of channels.
GROUPED = """\
inputs: {x: 'A[N, C, H, W]', w: 'B[O, I, P, Q]', 'zero?': 'A[]', w_zero: 'B[O]'}
attributes:
  stride: {type: int, check: stride > 0}
  padding: {type: int, check: padding >= 0}
  groups: {type: int, check: groups > 0}
outputs: {y: 'int32[N, O, OH, OW]'}
shape:
  OH: (H + 2*padding - P) // stride + 1
  OW: (W + 2*padding - Q) // stride + 1
require: [P <= H + 2*padding, Q <= W + 2*padding, C == I * groups, O % groups == 0]
kernel: |
  above[n, c, h, v] = cast(int32, x[n, c, h, v]) - (cast(int32, zero[]) if present(zero) else 0)
  w_above[o, c, p, q] = cast(int32, w[o, c, p, q]) - cast(int32, w_zero[o])
  y[n, o, i, j] = cast(int32, sum[c, p, q](w_above[o, c, p, q]
    * pad(above[n, o // (O // groups) * I + c, i*stride + p - padding, j*stride + q - padding], 0)))
"""

SIZES = [(1, 1, 1), (1, 100, 64), (2, 1300, 70), (3, 5, 7), (4, 641, 48), (5, 1300, 49), (67, 129, 97), (2, 0, 3), (8, 5000, 5)]


def _numbers(dtype: type, *shape: int) -> Array:
    """Numbers of all the type holds, its ends often among them: the largest products."""
    ends = np.iinfo(dtype)
    numbers = np.random.default_rng(sum(shape)).integers(ends.min - 60, ends.max + 61, shape)
    return np.asarray(numbers.clip(ends.min, ends.max), dtype)


@pytest.fixture(scope="module", params=instruction_sets())
def products(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family, flag = compile_text(HEAD + PRODUCTS), f"-DOPC_FORCE_VARIANT={request.param}"
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("products"), flag), odd_parallel_for)


def _expected(a: Array, b: Array, w: Array, p: Array, q: Array) -> dict[str, Array]:
    a, b, w, p, q = (x.astype(np.int64) for x in (a, b, w, p, q))
    return {"y": (a @ b).astype(np.int32), "z": a @ w.T, "shifted": (a - p) @ (b - q)}


def _check(library: KernelLibrary, left: type, right: type, m: int, k: int, n: int) -> None:
    given = _numbers(left, m, k), _numbers(right, k, n), _numbers(right, n, k), _numbers(left), _numbers(right, n)
    found = library.call(library.family.forward, dict(zip("abwpq", given, strict=True)), {})
    for name, expected in _expected(*given).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=f"{name} of {left} and {right}")


@pytest.mark.rotating
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products(products: KernelLibrary, m: int, k: int, n: int) -> None:
    for left, right in product((np.int8, np.uint8), repeat=2):
        _check(products, left, right, m, k, n)


def test_a_long_sum_in_parts(products: KernelLibrary) -> None:
    _check(products, np.uint8, np.int8, 16, 40_000, 24)


def test_operands_in_any_layout(products: KernelLibrary) -> None:
    a, b, w = _numbers(np.int8, 70, 130), _numbers(np.int8, 130, 50), _numbers(np.int8, 100, 130)
    given = {"a": np.asfortranarray(a)[::-1], "b": b[:, ::-1], "w": w[::2], "p": _numbers(np.int8), "q": _numbers(np.int8, 50)}
    found = products.call(products.family.forward, given, {})
    for name, expected in _expected(*(given[n] for n in "abwpq")).items():
        np.testing.assert_array_equal(found[name], expected)


def test_sums_that_32_bits_do_not_hold(products: KernelLibrary) -> None:
    k = 140_000
    for rows in (1, 3):
        a, b, w = np.full((rows, k), -128, np.int8), np.full((k, 16), -128, np.int8), np.full((16, k), -128, np.int8)
        found = products.call(
            products.family.forward, {"a": a, "b": b, "w": w, "p": np.asarray(np.int8(127)), "q": np.full(16, 127, np.int8)}, {}
        )
        assert (found["z"] == 128 * 128 * k).all()
        assert (found["shifted"] == 255 * 255 * k).all()
        assert (found["y"] == np.int64(128 * 128 * k).astype(np.int32)).all()


@pytest.mark.rotating
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1), (3, 2)])
def test_convolution_with_a_zero_point(tmp_path: Path, stride: int, padding: int) -> None:
    family = compile_text(HEAD + CONV)
    library = KernelLibrary(family, compile_kernel(family, tmp_path), split_everywhere)
    x, w, zero = _numbers(np.uint8, 2, 3, 11, 13), _numbers(np.int8, 9, 3, 3, 2), np.asarray(np.uint8(137))
    padded = np.pad(x.astype(np.int64) - 137, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("ncijpq,ocpq->noij", windows, w.astype(np.int64))
    found = library.call(library.family.forward, {"x": x, "w": w, "zero": zero}, {"stride": stride, "padding": padding})
    np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_convolution_of_temporaries_is_a_contraction(tmp_path: Path, groups: int) -> None:
    family = compile_text(HEAD + GROUPED)
    op = extract(family.forward)
    assert contraction_stage(op, op.assignments["y"], "y") is not None
    library = KernelLibrary(family, compile_kernel(family, tmp_path), split_everywhere)
    x, w, w_zero = _numbers(np.uint8, 2, 6, 11, 13), _numbers(np.int8, 9, 6 // groups, 3, 2), _numbers(np.int8, 9)
    for zero in (np.asarray(np.uint8(137)), None):
        above = x.astype(np.int64) - (0 if zero is None else int(zero))
        padded = np.pad(above, ((0, 0), (0, 0), (2, 2), (2, 2)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2, ::2]
        parts = [windows[:, g * 6 // groups : (g + 1) * 6 // groups] for g in range(groups)]
        filters = np.split(w.astype(np.int64) - w_zero.astype(np.int64)[:, None, None, None], groups)
        expected = [np.einsum("ncijpq,ocpq->noij", part, f) for part, f in zip(parts, filters, strict=True)]
        given = {"x": x, "w": w, "zero": zero, "w_zero": w_zero}
        found = library.call(library.family.forward, given, {"stride": 2, "padding": 2, "groups": groups})
        np.testing.assert_array_equal(found["y"], np.concatenate(expected, 1))


def test_a_padding_that_int16_does_not_hold_keeps_a_factor_wide() -> None:
    text = GROUPED.replace("j*stride + q - padding], 0)", "j*stride + q - padding], 40000)")
    op = extract(compile_text(HEAD + text).forward)
    assert contraction_stage(op, op.assignments["y"], "y") is None
