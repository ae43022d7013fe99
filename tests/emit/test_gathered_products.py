"""Products of rows that data names, at sizes at which they are matrix products, against NumPy. Every sum is exact here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import ContractionStage
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelError, KernelLibrary, compile_kernel, odd_parallel_for

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [bfloat16, float32]}
inputs:
  x: T[V, D]
  w: T[D, O]
  u: T[R, D, O]
  c: T[M, O]
  s: int64[M]
  t: int64[M]
  k: int64[M]
  q?: T[M]
outputs: {rows: 'T[M, O]', both: 'T[M, O]', added: 'T[V, D]', summed: 'T[D, O]', groups: 'T[R, D, O]', chosen: 'T[M, O]'}
kernel: |
  rows[m, o] = sum[d](x[s[m], d] * w[d, o])
  both[m, o] = sum[d](x[s[m], d] * u[k[m], d, o])
  added[v, d] = sum[m, o](c[m, o] * u[k[m], d, o] if v == t[m] else 0)
  summed[d, o] = sum[m](x[s[m], d] * c[m, o])
  groups[r, d, o] = sum[m](x[s[m], d] * c[m, o] if r == k[m] and t[m] > 0 else 0)
  chosen[m, o] = sum[d](x[s[m], d] * w[d, o]) if present(q) else 0
"""
V, D, WIDE, R, M = 40, 33, 35, 3, 170


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    family = compile_text(SPEC)
    return KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("gathered")), odd_parallel_for)


def arrays(dtype: str, q: bool = True) -> dict[str, Array | None]:
    """Small whole numbers; edges end at nodes 0 and -1, too, of which the last is none."""
    from ml_dtypes import bfloat16

    rng = np.random.default_rng(5)
    real = np.dtype(bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    found = {
        n: rng.integers(-1, 2, shape).astype(real)
        for n, shape in (("x", (V, D)), ("w", (D, WIDE)), ("u", (R, D, WIDE)), ("c", (M, WIDE)))
    }
    found |= {"s": rng.integers(0, V, M), "t": rng.integers(-1, V, M), "k": rng.choice([0, 2], M)}
    return {**found, "q": np.ones(M, real) if q else None}


def expected(given: dict[str, Array | None]) -> dict[str, Array]:
    a = {n: v.astype(np.int64) for n, v in given.items() if v is not None}
    gathered = a["x"][a["s"]]
    product = np.einsum("mo,mdo->md", a["c"], a["u"][a["k"]])
    added, groups = np.zeros((V, D), np.int64), np.zeros((R, D, WIDE), np.int64)
    np.add.at(added, a["t"][a["t"] >= 0], product[a["t"] >= 0])
    some = a["t"] > 0
    np.add.at(groups, a["k"][some], gathered[some, :, None] * a["c"][some, None, :])
    return {
        "rows": gathered @ a["w"],
        "both": np.einsum("md,mdo->mo", gathered, a["u"][a["k"]]),
        "added": added,
        "summed": gathered.T @ a["c"],
        "groups": groups,
        "chosen": gathered @ a["w"] * ("q" in a),
    }


def test_all_are_products() -> None:
    (variant, _) = cpu_programs(compile_text(SPEC).forward)
    found = [s.assign.target for s in variant.program.stages if isinstance(s, ContractionStage)]
    assert len(found) == 6
    assert {"rows", "both", "summed", "groups", "chosen"} < set(found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("q", [True, False])
def test_products(library: KernelLibrary, dtype: str, q: bool) -> None:
    given = arrays(dtype, q)
    found = library.call(library.family.forward, given, {})
    for name, exact in expected(given).items():
        np.testing.assert_array_equal(found[name], exact.astype(found[name].dtype), err_msg=name)


@pytest.mark.parametrize(("name", "what"), [("s", "x"), ("k", "u")])
def test_what_is_outside(library: KernelLibrary, name: str, what: str) -> None:
    given = arrays("float32")
    numbers = given[name]
    assert numbers is not None
    numbers[3] = 1000
    with pytest.raises(KernelError, match=f"an index of {what} is 1000, outside axis 0"):
        library.call(library.family.forward, given, {})


def test_rows_of_points_in_no_group_are_not_read(tmp_path: Path) -> None:
    """Nor are those that another condition leaves out: they may name rows that there are not, or hold what is no number."""
    head = SPEC[: SPEC.index("outputs:")]
    line = next(x for x in SPEC.split("\n") if x.startswith("  groups["))
    family = compile_text(f"{head}outputs: {{groups: 'T[R, D, O]'}}\nkernel: |\n{line}\n")
    library = KernelLibrary(family, compile_kernel(family, tmp_path), odd_parallel_for)
    given = arrays("float32")
    s, t, k, c = (given[n] for n in "stkc")
    assert s is not None
    assert t is not None
    assert k is not None
    assert c is not None
    s[:9], c[:9], t[:9] = 1 << 40, np.nan, 0
    s[9:11], k[9:11], t[9:11] = -7, (R, -1), 1
    left = np.arange(M) < 11
    read = {"s": np.where(left, 0, s), "k": np.where(left, 0, k), "t": np.where(left, 0, t), "c": np.nan_to_num(c)}
    exact = expected({**given, **read})["groups"]
    np.testing.assert_array_equal(library.call(family.forward, given, {})["groups"], exact.astype(np.float32))
