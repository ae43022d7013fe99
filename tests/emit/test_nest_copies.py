"""Nests that copy rows: past the caches in calls that are more than these hold, and with rows that are asked for ahead."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends.kernel.backend import COMMON_FLAGS, instruction_sets
from opc.emit.kernel.files import kernel_files
from opc.pipeline import load_family
from tests.emit.conftest import Build
from tests.emit.kernel_library import INCLUDE, KernelError, KernelLibrary, odd_parallel_for, split_everywhere
from tests.emit.test_kernel import SPECS, judged, wrong
from tests.emit.test_nontemporal import BEST, EVERYWHERE

FAR = 1 << 22
"""Bytes of a table from which on rows are asked for ahead."""
DERIVED = ("backward", "backward_backward")


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("name", "variant"),
    [*(("embedding", name) for name in instruction_sets()), ("gather", BEST), ("index_select", BEST)],
)
def test_cases(build: Build, name: str, variant: str) -> None:
    forced = (f"-DOPC_FORCE_VARIANT={variant}",)
    family, library = build(name, EVERYWHERE, *forced, derived=DERIVED)
    for op in (family.forward, family.backward, family.backward_backward):
        assert op is not None
        calls = judged(op)
        for parallel_for in (None, odd_parallel_for, split_everywhere):
            assert wrong(KernelLibrary(family, library, parallel_for), calls) == []


@pytest.mark.rotating
@pytest.mark.parametrize("rows", [40, FAR], ids=["near", "far"])
@pytest.mark.parametrize("flags", [(), (EVERYWHERE,)], ids=["kept", "past the caches"])
@pytest.mark.parametrize("offset", [0, 1, 3, 16])
@pytest.mark.parametrize("columns", [1, 2, 7, 16, 31, 100, 300, 1100])
def test_rows_that_lie_anywhere(build: Build, columns: int, offset: int, flags: tuple[str, ...], rows: int) -> None:
    family, library = build("embedding", *flags, derived=DERIVED)
    rng = np.random.default_rng(columns)
    dtype = (np.float32, np.float16, np.float64)[offset % 3]
    count = max(3, 5000 // columns)
    rows = max(3, rows // (columns * np.dtype(dtype).itemsize) + 1)
    table = rng.integers(-1000, 1000, rows * columns + offset).astype(dtype)[offset:].reshape(rows, columns)
    ids = rng.integers(0, rows, count)
    for parallel_for in (None, odd_parallel_for, split_everywhere):
        memory = np.full(count * columns + offset + 64, 7, dtype)
        y = memory[offset : offset + count * columns].reshape(count, columns)
        KernelLibrary(family, library, parallel_for).call(family.forward, {"ids": ids, "table": table}, {}, outputs={"y": y})
        np.testing.assert_array_equal(y, table[ids])
        assert (memory[:offset] == 7).all(), "what is before the output is as it was"
        assert (memory[offset + y.size :] == 7).all(), "what is behind the output is as it was"


@pytest.mark.parametrize("flags", [(), (EVERYWHERE,)], ids=["kept", "past the caches"])
def test_rows_of_nothing_are_zeroed(build: Build, flags: tuple[str, ...]) -> None:
    """A derivative by a scatter's terms is zero where they name no row."""
    family, library = build("embedding", *flags, derived=DERIVED)
    op = family.backward_backward
    assert op is not None
    rng = np.random.default_rng(0)
    for columns in (3, 300, 1100):
        d_table = rng.standard_normal((20, columns)).astype(np.float32)
        ids = np.array([3, 25, -1, 19, 0, 0, 25])
        inside = (ids >= 0) & (ids < 20)
        given = {"ids": ids, "d_d_table": d_table, "d_y": np.zeros((7, columns), np.float32), "table": d_table}
        got = KernelLibrary(family, library, split_everywhere).call(op, {o.name: given[o.name] for o in op.inputs}, {})
        np.testing.assert_array_equal(got["d_d_y"], np.where(inside[:, None], d_table[np.where(inside, ids, 0)], 0))


@pytest.mark.parametrize("rows", [40, 5000])
def test_a_row_outside_is_refused(build: Build, rows: int) -> None:
    family, library = build("embedding", derived=DERIVED)
    table = np.zeros((rows, 300), np.float32)
    ids = np.arange(300) % rows
    ids[150] = rows
    with pytest.raises(KernelError, match=f"an index of table is {rows}"):
        KernelLibrary(family, library, odd_parallel_for).call(family.forward, {"ids": ids, "table": table}, {})


def test_the_stores_go_past_the_caches(build: Build) -> None:
    _, library = build("embedding", derived=DERIVED)
    text = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "movntdq" in text
    assert "sfence" in text
    assert "prefetcht0" in text


@pytest.mark.parametrize("name", ["embedding", "gather", "index_select"])
def test_rows_are_copied_as_they_are_stored(name: str) -> None:
    """Also where other calls of the nest find places along the lane: 16-bit floats are not widened and rounded."""
    text = kernel_files(load_family(SPECS / f"{name}.yaml"))[f"kernel/{name}_loops.cpp"]
    assert "copies.copy(" in text.split(f"void {name}_y")[1].split("\n}\n")[0]


DECISION = """
#include "opc/core/call.h"
#include "opc/nests/rows.h"
extern "C" __attribute__((visibility("default"))) int decide(int64_t table, int64_t rows, int64_t columns, int in_place) {
  static char memory[2];
  opc::row_functions functions = {};
  opc::flat_operand operands[2];
  opc::nest_fault fault;
  opc::row_nest nest;
  opc::start(nest, nullptr, functions, operands, fault);
  nest.operand_count = 2;
  operands[0] = {memory, opc::dtype_float32, 2, {table, columns}, {columns, 1}};
  operands[1] = {memory + !in_place, opc::dtype_float32, 2, {rows, columns}, {columns, 1}};
  opc::set_target(nest, operands[1], 2, 1);
  opc::plan_nontemporal(nest);
  return nest.nontemporal + 2 * nest.far;
}
"""


@pytest.fixture(scope="module")
def decide(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what decides for a table, taken rows and their columns in float32, with caches of 1 MiB."""
    directory: Path = tmp_path_factory.mktemp("decision")
    (directory / "decision.cpp").write_text(DECISION)
    flags = [*COMMON_FLAGS, "-O2", f"-I{INCLUDE}", "-DOPC_CACHE_BYTES=1048576", "-shared"]
    subprocess.run(["g++", *flags, directory / "decision.cpp", "-o", directory / "decision.so"], check=True)
    function = ctypes.CDLL(str(directory / "decision.so")).decide
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
    return function


@pytest.mark.parametrize(
    ("table", "rows", "columns", "in_place", "nontemporal", "far"),
    [
        (250, 64, 1024, False, True, False),
        (193, 64, 1024, False, True, False),
        (250, 63, 1024, False, False, False),  # the results take up less than a quarter of the caches
        (1 << 20, 63, 1024, False, False, True),
        (1 << 20, 3, 1024, False, False, False),  # a few rows are soon there
        (100, 100, 1024, False, False, False),  # all of it fits
        (4000, 4000, 255, False, False, False),  # short rows
        (4000, 4000, 256, False, True, False),
        (4200, 4000, 256, False, True, True),
        (4000, 4000, 1024, True, False, False),  # what is written in place is in the caches
    ],
)
def test_when_rows_go_past_the_caches(
    decide: Any, table: int, rows: int, columns: int, in_place: bool, nontemporal: bool, far: bool
) -> None:
    assert decide(table, rows, columns, in_place) == nontemporal + 2 * far
