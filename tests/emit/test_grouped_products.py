"""Products with matrices that data names, at sizes at which they run as grouped ones, against NumPy. Every sum is exact here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.ir.dtypes import DType, numpy_dtype
from opc.pipeline import compile_text
from tests.emit.kernel_library import INCLUDE, Array, KernelError, KernelLibrary, compile_kernel, odd_parallel_for

TYPES = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [bfloat16, float32], I: [int32, int64]}
inputs:
  {x: 'T[..., D]', e: 'I[...]', w: 'T[E, D, O]', v: 'T[A, K, O]', g: 'I[A, K]', s: 'int8[A, D]', q: 'int8[E, D, O]',
   h: 'int64[A]'}
require: [K > 0, D > 0]
"""
TAKEN = "  taken[i, d, o] = sum[a](cast(T, s[a, d]) * v[a, 0, o] if i == h[a] else 0)\n"
SPEC = f"""\
{TYPES}
outputs:
  each: T[..., O]
  mixed: T[A, D]
  whole: int64[A, O]
  taken: T[E, D, O]
  apart: T[E, K, O, O]
  scaled: T[A, O]
kernel: |
  each[..., o] = 2 * sum[d](x[..., d] * w[e[...], d, o]) + 1
  mixed[a, d] = sum[k, o](v[a, k, o] * w[g[a, k], d, o])
  whole[a, o] = sum[d](cast(int32, s[a, d]) * cast(int32, q[h[a], d, o]))
{TAKEN}  apart[i, j, o, p] = sum[a, k](v[a, k, o] * v[a, k, p] if i == g[a, k] and j == k else 0)
  scaled[a, o] = sum[d](cast(T, s[a, d]) * cast(T, q[h[a], d, o])) * w[h[a], 0, o]
"""
GROUPS = 5


@pytest.fixture(scope="module", params=instruction_sets())
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family, flag = compile_text(SPEC), f"-DOPC_FORCE_VARIANT={request.param}"
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("grouped"), flag), odd_parallel_for)


def arrays(kind: DType, index: type, points: tuple[int, ...], rows: int, depth: int, wide: int) -> dict[str, Array]:
    """Small whole numbers; no point is in group 2, and most are in group 3."""
    rng = np.random.default_rng(rows + depth)
    real = numpy_dtype(kind)

    def small(*shape: int) -> Array:
        return rng.integers(-2, 3, shape)

    def groups(*shape: int) -> Array:
        return rng.choice([0, 1, 3, 3, 3, 3, 4], shape)

    return {
        "x": small(*points, depth).astype(real),
        "e": groups(*points).astype(index),
        "w": small(GROUPS, depth, wide).astype(real),
        "v": small(rows, 3, wide).astype(real),
        "g": groups(rows, 3).astype(index),
        "s": small(rows, depth).astype(np.int8),
        "q": small(GROUPS, depth, wide).astype(np.int8),
        "h": groups(rows),
    }


def expected(given: dict[str, Array]) -> dict[str, Array]:
    a = {n: v.astype(np.int64) for n, v in given.items()}
    taken = np.zeros(a["w"].shape, np.int64)
    np.add.at(taken, a["h"], a["s"][:, :, None] * a["v"][:, 0, None, :])
    apart = np.zeros((GROUPS, 3, *a["v"].shape[2:] * 2), np.int64)
    np.add.at(apart, (a["g"], np.arange(3)[None]), a["v"][..., :, None] * a["v"][..., None, :])
    return {
        "each": 2 * np.einsum("...d,...do->...o", a["x"], a["w"][a["e"]]) + 1,
        "mixed": np.einsum("ako,akdo->ad", a["v"], a["w"][a["g"]]),
        "whole": np.einsum("ad,ado->ao", a["s"], a["q"][a["h"]]),
        "scaled": np.einsum("ad,ado->ao", a["s"], a["q"][a["h"]]) * a["w"][a["h"], 0],
        "taken": taken,
        "apart": apart,
    }


def check_paying(given: dict[str, Array]) -> None:
    """Check that calls have a grouped product in each place where the op has one, by `groups_pay` of opc/contraction/groups.h."""
    found = re.search(r"group_work = 1 << (\d+)", (INCLUDE / "opc" / "contraction" / "groups.h").read_text())
    assert found is not None
    least = min(max(given[n].size / GROUPS, 1) for n in "egh") * given["w"][0].size
    assert least >= 1 << int(found[1])


def check(library: KernelLibrary, given: dict[str, Array]) -> None:
    check_paying(given)
    found, wanted = library.call(library.family.forward, given, {}), expected(given)
    for name, exact in wanted.items():
        np.testing.assert_array_equal(found[name], exact.astype(found[name].dtype), err_msg=name)


SIZES = [((77,), 150, 60, 80), ((3, 0, 2), 90, 260, 260), ((), 64, 300, 260), ((2, 3, 20), 131, 33, 128), ((1,), 1, 700, 130)]


@pytest.mark.parametrize(("points", "rows", "depth", "wide"), SIZES)
def test_groups_of_any_size(library: KernelLibrary, points: tuple[int, ...], rows: int, depth: int, wide: int) -> None:
    for kind, index in ((DType.FLOAT32, np.int64), (DType.FLOAT32, np.int32), (DType.BFLOAT16, np.int64)):
        check(library, arrays(kind, index, points, rows, depth, wide))


def test_operands_in_any_layout(library: KernelLibrary) -> None:
    given = arrays(DType.FLOAT32, np.int64, (40, 3), 150, 66, 90)
    for name, array in given.items():
        apart = np.repeat(array, 2, axis=0)[::2] if name in "ev" else np.asfortranarray(array)[::-1].copy(order="F")[::-1]
        assert not apart.flags.c_contiguous or apart.ndim < 2
        given[name] = apart
    check(library, given)


@pytest.mark.parametrize(("name", "number"), [("e", GROUPS), ("e", -1), ("g", 1 << 20), ("h", -(1 << 40))])
def test_a_number_of_no_group(library: KernelLibrary, name: str, number: int) -> None:
    given = arrays(DType.FLOAT32, np.int64, (77,), 150, 60, 80)
    given[name].flat[7] = number
    check_paying(given)
    with pytest.raises(KernelError, match=f"an index of [wq] is {number}, outside axis 0 of size {GROUPS}"):
        library.call(library.family.forward, given, {})


def test_sums_leave_out_what_is_in_no_group(tmp_path: Path) -> None:
    family = compile_text(f"{TYPES}outputs: {{taken: 'T[E, D, O]'}}\nkernel: |\n{TAKEN}")
    library = KernelLibrary(family, compile_kernel(family, tmp_path), odd_parallel_for)
    given = arrays(DType.FLOAT32, np.int64, (77,), 150, 60, 80)
    exact = expected(given)["taken"]
    exact[given["h"][7]] -= given["s"][7, :, None].astype(np.int64) * given["v"][7, 0, None, :].astype(np.int64)
    check_paying(given)
    for number in (GROUPS, -1, 2**62):
        given["h"][7] = number
        found = library.call(family.forward, given, {})
        np.testing.assert_array_equal(found["taken"], exact.astype(np.float32))
