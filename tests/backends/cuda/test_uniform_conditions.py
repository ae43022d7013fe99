"""Reads that a condition on attributes and sizes alone keeps inside, in kernels that take points in packs: no others are made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text

ROWS = """\
op: kept_rows
domain: opc.test
version: 1
doc: Rows that are read where they are, and zeros elsewhere.
types: {T: [float32]}
inputs: {x: 'T[N, D]', w: 'T[D]'}
attributes: {k: {type: int, check: k >= 0}}
outputs: {one: 'T[D]', either: 'T[N, D]', twice: 'T[D]', total: 'T[D]'}
kernel: |
  one[d] = x[k, d] if k < N else 0
  either[n, d] = x[N - 1 - k, d] if k < N else w[d]
  twice[d] = (x[k, d] if k < N else 1) * (x[k, d] if k < N and k > 1 else w[d])
  total[d] = sum[n](x[n, d] * (x[k, d] if k < N else 1))
gradient: none
"""
FAR = 1 << 40


@pytest.fixture(scope="module")
def session(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(ROWS, "kept_rows.yaml"))


@pytest.mark.parametrize("k", [0, 2, 4, FAR])
def test_nothing_outside_is_read(session: CudaSession, k: int) -> None:
    x, w = np.arange(5 * 64, dtype=np.float32).reshape(5, 64), np.arange(64, dtype=np.float32)
    found = session.call("kept_rows", {"x": x, "w": w}, {"k": k})
    inside = k < len(x)
    assert np.array_equal(found["one"], x[k] if inside else 0 * w)
    assert np.array_equal(found["either"], np.broadcast_to(x[len(x) - 1 - k] if inside else w, x.shape))
    assert np.array_equal(found["twice"], (x[k] if inside else 1) * (x[k] if inside and k > 1 else w))
    assert np.array_equal(found["total"], (x * (x[k] if inside else 1)).sum(0))
