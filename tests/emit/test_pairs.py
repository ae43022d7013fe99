"""Products of whole numbers in blocks: what one instruction adds is what two do, on machines that have it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from opc.backends.kernel.backend import COMMON_FLAGS, LOOP_FLAGS, VARIANTS, instruction_sets
from tests.emit.compilers import COMPILERS, run_compiler
from tests.emit.kernel_library import INCLUDE

SOURCE = """
#include "opc/contraction/whole_numbers.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT bool multiply(int64_t depth, const void *a, const void *b, void *c, bool at_once, bool add) {
  using namespace opc;
  constexpr int vectors = 3, rows = strip_rows;
  const int64_t pitch = vectors * vector_bytes / sizeof(int32_t);
  const panel_product p = {depth, a, b, nullptr, c, pitch, add, 1, 0, nullptr, nullptr};
  if (at_once && !adds_pairs_at_once()) return false;
  at_once ? multiply_pairs_by<rows, vectors, true>(p) : multiply_pairs_by<rows, vectors, false>(p);
  return true;
}
EXPORT int32_t bytes() { return opc::vector_bytes; }
EXPORT int32_t rows() { return opc::strip_rows; }
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_both_ways_of_adding_pairs(compiler: str, tmp_path: Path) -> None:
    best = instruction_sets()[0]
    source, library = tmp_path / "pairs.cpp", tmp_path / "pairs.so"
    source.write_text(SOURCE)
    flags = (*COMMON_FLAGS, *LOOP_FLAGS, *VARIANTS[best], f"-DOPC_VARIANT={best}", "-I", INCLUDE)
    run_compiler(COMPILERS[compiler], *flags, "-shared", source, "-o", library)
    loaded = ctypes.CDLL(str(library))
    loaded.multiply.restype = ctypes.c_bool
    rows, columns, depth = loaded.rows(), 3 * loaded.bytes() // 4, 64
    rng = np.random.default_rng(0)
    a = rng.integers(-(2**15), 2**15, (depth // 2, rows, 2)).astype(np.int16)
    b = rng.integers(-100, 100, (depth // 2, columns, 2)).astype(np.int16)
    a, b = (np.ascontiguousarray(x) for x in (a, b))
    want = np.einsum("kip,kjp->ij", a.astype(np.int64), b.astype(np.int64))
    for at_once in (False, True):
        c = np.empty((rows, columns), np.int64)
        for times, add in ((1, False), (2, True)):
            given = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, c))
            ran = loaded.multiply(ctypes.c_int64(depth), *given, ctypes.c_bool(at_once), ctypes.c_bool(add))
            assert ran or at_once
            if ran:
                np.testing.assert_array_equal(c, times * want)
