"""Sums over rows in the emulation: at columns that lie in packs, and of rows first where what is summed lies within rows too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text

SPEC = """\
op: sums
domain: opc.test
version: 1
doc: Sums at columns and at channels, and rows that read a sum over all.
types: {T: [float32]}
inputs: {a: 'T[N, J]', s: 'T[N]', x: 'T[B, C, H, W]', v: 'T[K]', r: 'T[M, L]'}
outputs: {y: 'T[J]', b: 'T[C]', z: 'T[M, L]'}
kernel: |
  y[j] = sum[n](s[n] * a[n, j])
  b[c] = sum[k, h, w](x[k, c, h, w])
  t[()] = sum[k](v[k])
  m[i] = max[l](r[i, l])
  z[i, l] = (r[i, l] - m[i]) / t[()]
gradient: none
"""


@pytest.fixture(scope="module")
def session(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(SPEC, "sums.yaml"))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(300, 16), (300, 15), (5, 8), (0, 8), (300, 4), (1000, 64)],
    ids=["parts of packs", "parts of points", "packs", "no rows", "few columns", "many parts"],
)
def test_sums(session: CudaSession, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"a": (rows, columns), "s": (rows,), "x": (3, 4, 5, columns), "v": (rows + 1,), "r": (7, columns)}
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    found = session.call("sums", given, {})
    a, s, x, v, r = (given[name].astype(np.float64) for name in shapes)
    np.testing.assert_allclose(found["y"], s @ a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["b"], x.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["z"], (r - r.max(1, keepdims=True)) / v.sum(), rtol=1e-3, atol=1e-4)
