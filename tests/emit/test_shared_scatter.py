"""`scatter: atomic`: threads share the terms of a sum and add to the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel
from tests.narrow import only

ROWS = """\
op: looked_up
domain: opc.test
version: 1
doc: Elements by number.
types: {T: [float16, float32, float64, int32, int64]}
inputs: {t: 'T[V, D]', ids: 'int64[M, N]'}
outputs: {y: 'T[M, N, D]'}
kernel: |
  y[m, n, d] = t[ids[m, n], d]
gradient: {scatter: atomic}
"""
FORWARD = """\
op: counted
domain: opc.test
version: 1
doc: Sums by number.
types: {T: [float16, float32, float64, int32, int64]}
inputs: {like: 'T[V]', ids: 'int64[N]', x: 'T[N]'}
outputs: {y: 'T[V]'}
kernel: |
  y[v] = cast(T, sum[n](x[n] if ids[n] == v else 0))
"""
rng = np.random.default_rng(5)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> tuple[KernelLibrary, list[int]]:
    """Return the kernel and a list of the units of work that its last calls were split into."""
    units: list[int] = []

    def split(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
        units.append(count)
        for k in reversed(range(count)):
            body(argument, k, k + 1)

    family = only(compile_text(ROWS, "looked_up.yaml"), "backward")
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("shared")), split), units


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "columns", "expected"), [((2, 100_000), 1, 6), ((100_000, 2), 1, 6), ((2, 100_000), 3, 4)])
def test_terms_are_cut_where_single_elements_are_added(
    kernel: tuple[KernelLibrary, list[int]], shape: tuple[int, int], columns: int, expected: int, dtype: str
) -> None:
    library, units = kernel
    ids = rng.integers(0, 50, shape)
    d_y = rng.integers(-1, 2, (*shape, columns)).astype(dtype)
    backward = library.family.backward
    assert backward is not None
    given = {"t": np.zeros((50, columns), dtype), "ids": ids, "d_y": d_y}
    units.clear()
    got = library.call(backward, {o.name: given[o.name] for o in backward.inputs}, {})["d_t"]
    want = np.stack([np.bincount(ids.ravel(), d_y.reshape(-1, columns)[:, c].astype(float), 50) for c in range(columns)], 1)
    np.testing.assert_array_equal(got.astype(float), want)
    assert expected in units


def test_only_gradients_that_ask_for_it_add_atomically() -> None:
    assert "opc::add_shared" in kernel_files(compile_text(ROWS, "f.yaml"))["kernel/looked_up_loops.cpp"]
    fixed = compile_text(ROWS.replace("atomic", "deterministic"), "f.yaml")
    assert "add_shared" not in kernel_files(fixed)["kernel/looked_up_loops.cpp"]
    assert "add_shared" not in kernel_files(compile_text(FORWARD, "f.yaml"))["kernel/counted_loops.cpp"]
