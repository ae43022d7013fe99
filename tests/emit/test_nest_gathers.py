"""Rows of elements from places found lane by lane, against NumPy in whole numbers: dtypes, strides, long rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelError, KernelLibrary, compile_kernel, odd_parallel_for, split_everywhere

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int32]}
inputs: {x: 'T[N, C, W]', ids: 'int64[N, M]', w: 'T[C]'}
"""
FORMS = {
    "padded": """\
outputs: {y: 'T[N, C, M]'}
kernel: 'y[n, c, m] = w[c] * pad(x[n, c, ids[n, m]], 3) + pad(x[n, 0, ids[n, m] + c], 1)'
""",
    "taps": "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = cast(T, sum[p:3](pad(x[n, c, ids[n, m] + p], 0) * (p + 1)))'\n",
    "refused": "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = x[n, c, ids[n, m]] * w[c]'\n",
    "summed": "outputs: {y: 'T[N, M]'}\nkernel: 'y[n, m] = cast(T, sum[c, p:2](pad(x[n, c, ids[n, m] + p], 0) * w[c]))'\n",
}


def padded(x: Array, at: Array, outside: float) -> Array:
    """Return x[n, c, at[n, c, m]], a number where that is outside."""
    inside = (at >= 0) & (at < x.shape[2])
    if x.shape[2] == 0:
        return np.full(at.shape, outside)
    return np.where(inside, np.take_along_axis(x, np.where(inside, at, 0), 2), outside)


def expected(form: str, x: Array, ids: Array, w: Array) -> Array:
    at = np.broadcast_to(ids[:, None], (len(x), x.shape[1], ids.shape[1]))
    if form == "padded":
        shifted = at + np.arange(x.shape[1])[:, None]
        first = np.broadcast_to(x[:, :1], x.shape)
        return w[:, None] * padded(x, at, 3) + padded(first, shifted, 1)
    if form == "taps":
        return np.sum([padded(x, at + p, 0) * (p + 1) for p in range(3)], 0)
    if form == "refused":
        return padded(x, at, 0) * w[:, None]
    return np.sum([(padded(x, at + p, 0) * w[:, None]).sum(1) for p in range(2)], 0)


@pytest.fixture(scope="module", params=list(FORMS))
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, KernelLibrary]:
    family = compile_text(HEAD + FORMS[request.param])
    library = compile_kernel(family, tmp_path_factory.mktemp("places"))
    return request.param, KernelLibrary(family, library)


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_places(kernel: tuple[str, KernelLibrary], dtype: str) -> None:
    form, library = kernel
    for parallel_for in (None, odd_parallel_for, split_everywhere):
        again = KernelLibrary(library.family, library.library._name, parallel_for)
        for width, lanes in ((1, 1), (5, 7), (9, 40), (40, 255), (7, 300), (3, 1100), (0, 3)):
            rng = np.random.default_rng(lanes)
            if form == "refused" and width == 0:
                continue
            x, w = (rng.integers(-3, 4, s).astype(dtype) for s in ((2, 4, width), (4,)))
            ids = rng.integers(0, width, (2, lanes)) if form == "refused" else rng.integers(-3, width + 3, (2, lanes))
            right = expected(form, x.astype(float), ids, w.astype(float))
            turned = np.ascontiguousarray(x[:, ::-1, ::-1])[:, ::-1, ::-1]
            for one in (x, np.asfortranarray(x), turned):
                got = again.call(library.family.forward, {"x": one, "ids": ids, "w": w}, {})["y"]
                np.testing.assert_array_equal(got.astype(float), right, f"{width} {lanes}")


def test_the_first_place_outside_is_told(kernel: tuple[str, KernelLibrary]) -> None:
    form, library = kernel
    x, ids, w = np.ones((2, 4, 5), np.float32), np.zeros((2, 40), np.int64), np.ones(4, np.float32)
    ids[1, 23], ids[1, 30] = 5, 6
    if form != "refused":
        library.call(library.family.forward, {"x": x, "ids": ids, "w": w}, {})
        return
    with pytest.raises(KernelError, match="an index of x is 5, outside axis 2 of size 5"):
        library.call(library.family.forward, {"x": x, "ids": ids, "w": w}, {})
    none: dict[str, Any] = {"x": x[:, :0], "ids": ids, "w": w[:0]}
    assert library.call(library.family.forward, none, {})["y"].size == 0


@pytest.mark.parametrize("form", list(FORMS))
def test_places_are_found_ahead(form: str) -> None:
    """The kernel holds no lambda that tests each element where it is used."""
    text = kernel_files(compile_text(HEAD + FORMS[form]))["kernel/f_loops.cpp"]
    assert "[&]()" not in text
    assert "opc::fetch_row(" in text
    assert ("at.begins()" in text) == (form == "refused")


SCATTER = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64]}
inputs: {src: 'T[N, C, M]', at: 'T[N, M]', like: 'T[V]'}
outputs: {y: 'T[N, C, V]'}
kernel: |
  y[n, c, v] = sum[m, p:2](src[n, c, m] * (p + 1) if v == cast(int64, floor(at[n, m] / 2)) + p else 0)
"""


def test_rows_of_terms_are_added_to_their_places(tmp_path: Path) -> None:
    family = compile_text(SCATTER)
    path = compile_kernel(family, tmp_path)
    assert "opc::add_row(" in kernel_files(family)["kernel/f_loops.cpp"]
    for parallel_for in (None, odd_parallel_for, split_everywhere):
        library = KernelLibrary(family, path, parallel_for)
        for size, count in ((1, 1), (5, 3), (40, 100), (7, 300), (3, 1100), (0, 2), (4, 0)):
            rng = np.random.default_rng(count)
            src, at = rng.integers(-1, 2, (2, 3, count)), rng.integers(-5, 2 * size + 5, (2, count))
            right = np.zeros((2, 3, size))
            for n, m, p in np.ndindex(2, count, 2):
                v = at[n, m] // 2 + p
                if 0 <= v < size:
                    right[n, :, v] += src[n, :, m] * (p + 1)
            for dtype in (np.float16, np.float32, np.float64):
                given = {"src": src.astype(dtype), "at": at.astype(dtype), "like": np.zeros(size, dtype)}
                got = library.call(family.forward, given, {})["y"]
                np.testing.assert_array_equal(got.astype(float), right, f"{size} {count} {dtype}")
