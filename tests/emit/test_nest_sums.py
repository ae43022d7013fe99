"""Sums that loop nests add up row by row, against NumPy in whole numbers: dtypes, sizes, and threads that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, bfloat16, float32, float64]}
inputs: {x: 'T[N, C, *K]', at: 'int64[N, *K]', w: 'T[C]'}
outputs: {y: 'T[]'}
kernel: |
  v[n, *K] = 0 if at[n, *K] == 7 else w[at[n, *K]]
  y = sum[n, *K](0 if at[n, *K] == 7 else x[n, at[n, *K], *K] * v[n, *K]) / sum[n, *K](v[n, *K])
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Family, Path]:
    family = compile_text(SPEC)
    return family, compile_kernel(family, tmp_path_factory.mktemp("sums"))


def arguments(dtype: str, count: int, points: tuple[int, ...]) -> dict[str, Any]:
    """Return inputs for `count` rows of five classes, with numbers whose sums no dtype rounds."""
    rng = np.random.default_rng(count)
    at = np.where(rng.random((count, *points)) < 0.1, 7, rng.integers(0, 5, (count, *points)))
    return {"x": rng.choice([0, 1, -1], (count, 5, *points)).astype(dtype), "at": at, "w": np.array([1, 2, 0, 1, 4], dtype)}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums(kernel: tuple[Family, Path], dtype: str) -> None:
    family, library = kernel
    for count, points in ((1, ()), (5, (1, 1)), (1023, ()), (2100, ()), (3, (1500,)), (1300, (2, 1)), (70000, (2,))):
        given = arguments(dtype, count, points)
        x, at, w = (given[n] for n in ("x", "at", "w"))
        counted = at != 7
        v = np.where(counted, w[np.where(counted, at, 0)], 0).astype(np.float64)
        found = np.take_along_axis(x, np.where(counted, at, 0)[:, None], 1)[:, 0]
        right = ((found * v * counted).sum() / v.sum()).astype(dtype)
        for parallel_for in (None, odd_parallel_for, split_everywhere):
            got = KernelLibrary(family, library, parallel_for).call(family.forward, given, {})["y"]
            np.testing.assert_allclose(got.astype(float), right.astype(float), rtol=1e-3 if dtype == "float16" else 1e-6)


def test_results_do_not_depend_on_threads(kernel: tuple[Family, Path]) -> None:
    family, library = kernel
    given = arguments("float32", 70000, (2,))
    given["x"] = np.random.default_rng(1).standard_normal(given["x"].shape).astype("float32")
    ways = (None, odd_parallel_for, split_everywhere)
    found = {KernelLibrary(family, library, p).call(family.forward, given, {})["y"].item() for p in ways}
    assert len(found) == 1


def test_of_nothing(kernel: tuple[Family, Path]) -> None:
    family, library = kernel
    assert np.isnan(KernelLibrary(family, library).call(family.forward, arguments("float32", 0, (3,)), {})["y"])


def test_refuses_a_place_outside(kernel: tuple[Family, Path]) -> None:
    family, library = kernel
    given = arguments("float32", 3000, ())
    given["at"][2500] = 5
    with pytest.raises(KernelError, match="an index of w is 5, outside axis 0 of size 5"):
        KernelLibrary(family, library).call(family.forward, given, {})


def test_what_is_only_added_up_has_no_memory() -> None:
    files = kernel_files(compile_text(SPEC))
    entry, text = files["kernel/f.cpp"], files["kernel/f_loops.cpp"]
    assert "opc::describe(memory_y_partial, call.dim_N.size, call.group_K);" in entry
    assert entry.count("opc::run_sums(") == 2
    assert text.count("opc::sum_unit(nest, unit, out, count);") == 4
    assert "opc::with_stored(x, " in text
    assert "OPC_UNROLLED" in text
