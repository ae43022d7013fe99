"""Kernels that order rows: every way to sort one, on every type, against Python's own stable sort."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel, odd_parallel_for

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ngradient: none\n"
TYPES = ("float16", "float32", "float64", "int8", "int64", "uint32", "uint64", "bool")
ORDERS = f"""\
types: {{T: [{", ".join(TYPES)}]}}
inputs: {{x: 'T[*A, N, *B]'}}
attributes:
  axis: {{type: axis, dim: N, default: -1}}
  count: {{type: int, check: count >= 0}}
  descending: {{type: bool, default: false}}
outputs: {{p: 'int64[*A, M, *B]', back: 'int64[*A, N, *B]', middle: 'int64[*A, *B]', last: 'int64[*A, M, *B]'}}
shape: {{M: count}}
require: [M <= N, N > 0]
kernel: |
  p[*A, i, *B] = argsort[k](x[*A, k, *B], descending)[i]
  back[*A, i, *B] = argsort[k](x[*A, k, *B], descending)[N - 1 - i]
  middle[*A, *B] = argsort[k](x[*A, k, *B], descending)[N // 2]
  last[*A, i, *B] = argsort[k](x[*A, k, *B], descending)[N - M + i]
"""
OTHERS = """\
inputs: {x: 'float32[N, N]', y: 'float32[N, 2]'}
outputs: {columns: 'int64[N, N]', reversed: 'int64[N]', skipped: 'int64[M]'}
shape: {M: (N + 1) // 2}
require: [N > 0]
kernel: |
  columns[i, j] = argsort[k](x[k, j])[i]
  reversed[i] = argsort[k:N](y[N - 1 - k, 1])[i]
  skipped[i] = argsort[k:N](y[k, 0], True)[N - 1 - 2*i]
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(HEAD + ORDERS, "f.yaml")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("orders")), odd_parallel_for)


def ordered(row: Any, descending: bool) -> list[int]:
    """Return the stable order of a row: NaN is greater than all numbers, and zeros of both signs are equal."""
    values = [(math.isnan(v), 0 if math.isnan(v) else v) for v in row.tolist()]
    if descending:
        values = [(not nan, -v) for nan, v in values]
    return sorted(range(len(values)), key=values.__getitem__)


def rows(dtype: str, count: int, columns: int, few: bool) -> Any:
    random = np.random.default_rng(count + few)
    if dtype == "bool":
        return random.integers(0, 2, (columns, count)).astype(bool)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = (max(info.min, -2), 2) if few else (info.min, info.max)
        x = random.integers(low, high, (columns, count), kind, endpoint=True)
        x[:, 0] = info.max
        return x
    x = random.normal(size=(columns, count)) * (1 if few else 1000)
    x = (np.round(x) if few else x).astype(kind)
    x[:, ::7] = -0.0
    x[:, 3::7] = 0.0
    x[:, 5::11] = np.nan
    x[:, 9::50] = np.inf
    x[:, 10::50] = -np.inf
    x[:, 12::60] = -np.nan
    return x


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_of_every_type(kernel: KernelLibrary, dtype: str) -> None:
    op = kernel.family.forward
    for length, few in ((1, False), (40, True), (1500, True), (1500, False)):
        x = rows(dtype, length, 2, few)
        for descending in (False, True):
            want = np.array([ordered(row, descending) for row in x])
            for count in sorted({0, length // 60, length // 9, length}):
                got = kernel.call(op, {"x": x}, {"axis": -1, "count": count, "descending": descending})
                np.testing.assert_array_equal(got["p"], want[:, :count])
                np.testing.assert_array_equal(got["last"], want[:, length - count :])
                np.testing.assert_array_equal(got["back"], want[:, ::-1])
                np.testing.assert_array_equal(got["middle"], want[:, length // 2])


@pytest.mark.parametrize("columns", [1, 3, 35])
def test_rows_across_memory(kernel: KernelLibrary, columns: int) -> None:
    op, x = kernel.family.forward, rows("float32", 70, columns, True)
    want = np.array([ordered(row, True) for row in x]).T
    for strided in (np.ascontiguousarray(x.T), np.repeat(x.T, 2, axis=1)[:, ::2], x.T):
        got = kernel.call(op, {"x": strided}, {"axis": 0, "count": 6, "descending": True})
        np.testing.assert_array_equal(got["p"], want[:6])
        np.testing.assert_array_equal(got["back"], want[::-1])
        np.testing.assert_array_equal(got["middle"], want[35])


def test_nothing_is_ordered_of_no_rows(kernel: KernelLibrary) -> None:
    got = kernel.call(kernel.family.forward, {"x": np.zeros((0, 4), np.float32)}, {"axis": 1, "count": 2, "descending": False})
    assert got["p"].shape == (0, 2)


def test_keys_at_any_index(tmp_path: Path) -> None:
    family = compile_text(HEAD + OTHERS, "f.yaml")
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path))
    x, y = rows("float32", 50, 50, False), np.ascontiguousarray(rows("float32", 50, 2, True).T)
    got = kernel.call(family.forward, {"x": x, "y": y}, {})
    np.testing.assert_array_equal(got["columns"], np.array([ordered(column, False) for column in x.T]).T)
    np.testing.assert_array_equal(got["reversed"], ordered(y[::-1, 1], False))
    np.testing.assert_array_equal(got["skipped"], ordered(y[:, 0], True)[::-2])
