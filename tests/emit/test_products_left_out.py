"""Products whose rows or matrices data names, where conditions leave points out: these may name what there is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.lower.fuse import cpu_programs
from opc.pipeline import compile_text
from tests.emit.kernel_library import Array, KernelError, KernelLibrary, compile_kernel, odd_parallel_for

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32]}
inputs:
  x: T[N, D]
  c: T[N, O]
  w: T[E, D, O]
  u: T[D, O]
  h: T[V, D]
  e: int64[N]
  g: int64[N, K]
  s: int64[N]
  t: int64[N]
  m: T[N]
  b: T[N, K]
  q?: T[N]
"""
N, K, D, WIDE, E, V, LEFT = 150, 2, 60, 64, 3, 50, 5

PAYING = {
    "scattered": ("T[V, D]", "y[v, d] = sum[n, o](c[n, o] * w[e[n], d, o] if v == t[n] else 0)"),
    "gathered, scattered": ("T[V, O]", "y[v, o] = sum[n, d](h[s[n], d] * u[d, o] if v == t[n] else 0)"),
    "under more": ("T[V, D]", "y[v, d] = sum[n, o](c[n, o] * w[e[n], d, o] if v == t[n] and m[n] > 0 else 0)"),
    "in no call": ("T[N, O]", "y[n, o] = sum[p:K](sum[d](x[n, d] * w[g[n, p], d, o])) if present(q) else 0"),
    "in a sum, in no call": ("T[N, O]", "y[n, o] = sum[p:K](sum[d](x[n, d] * w[g[n, p], d, o]) if present(q) else 0)"),
}
POINTS = {
    "points": ("T[N, O]", "y[n, o] = sum[d](x[n, d] * w[e[n], d, o]) if m[n] > 0 else 0"),
    "rows": ("T[N, O]", "y[n, o] = sum[d](h[s[n], d] * u[d, o]) if m[n] > 0 else 0"),
    "in a sum": ("T[N, O]", "y[n, o] = sum[p:K](sum[d](x[n, d] * w[g[n, p], d, o]) if b[n, p] > 0 else 0)"),
}


def arrays() -> dict[str, Array | None]:
    """Small whole numbers; the first points are left out by all conditions, and name what there is not."""
    rng = np.random.default_rng(0)
    real = {"x": (N, D), "c": (N, WIDE), "w": (E, D, WIDE), "u": (D, WIDE), "h": (V, D)}
    found: dict[str, Array | None] = {n: rng.integers(-2, 3, shape).astype(np.float32) for n, shape in real.items()}
    mask, twice = np.ones(N, np.float32), np.ones((N, K), np.float32)
    e, g, s, t = (rng.integers(0, most, shape) for most, shape in ((E, N), (E, (N, K)), (V, N), (V, N)))
    mask[:LEFT], twice[:LEFT], t[:LEFT] = 0, 0, -1
    e[:LEFT], g[:LEFT], s[:LEFT] = 99, 99, -5
    return {**found, "e": e, "g": g, "s": s, "t": t, "m": mask, "b": twice, "q": None}


def expected(name: str, a: dict[str, Array]) -> Array:
    matrices, rows = a["w"][a["e"][LEFT:]], a["h"][a["s"][LEFT:]]
    y = np.zeros((V, D) if name in ("scattered", "under more") else (V, WIDE) if name == "gathered, scattered" else (N, WIDE))
    match name:
        case "scattered" | "under more":
            np.add.at(y, a["t"][LEFT:], np.einsum("no,ndo->nd", a["c"][LEFT:], matrices))
        case "gathered, scattered":
            np.add.at(y, a["t"][LEFT:], rows @ a["u"])
        case "points":
            y[LEFT:] = np.einsum("nd,ndo->no", a["x"][LEFT:], matrices)
        case "rows":
            y[LEFT:] = rows @ a["u"]
        case "in a sum":
            y[LEFT:] = np.einsum("nd,nkdo->no", a["x"][LEFT:], a["w"][a["g"][LEFT:]])
    return y


@pytest.mark.parametrize("name", [*PAYING, *POINTS])
def test_what_is_left_out_may_name_nothing(name: str, tmp_path: Path) -> None:
    outputs, body = (PAYING | POINTS)[name]
    family = compile_text(f"{HEAD}outputs: {{y: '{outputs}'}}\nkernel: |\n  {body}\n")
    assert any(v.case.pays for v in cpu_programs(family.forward)) == (name in PAYING)
    library = KernelLibrary(family, compile_kernel(family, tmp_path), odd_parallel_for)
    given = arrays()
    exact = expected(name, {n: a for n, a in given.items() if a is not None})
    np.testing.assert_array_equal(library.call(family.forward, given, {})["y"], exact)
    if name in ("scattered", "gathered, scattered"):
        where = given["t"]
        assert where is not None
        where[0] = 0
        with pytest.raises(KernelError, match=r"an index of [wh] is (99|-5), outside axis 0"):
            library.call(family.forward, given, {})
