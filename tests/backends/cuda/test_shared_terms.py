"""Sums at a point whose terms the threads of a team share, in the emulation: several of them, of one loop and of two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opc.backends.cuda.session import CudaSession
from opc.pipeline import compile_text

SPEC = """\
op: two_sums
domain: opc.test
version: 1
doc: Sums over rows, and over rows and columns.
types: {T: [float64]}
inputs: {a: 'T[N, J]', b: 'T[N, K]', c: 'T[K, J]'}
outputs: {y: 'T[J]'}
kernel: 'y[j] = sum[i](a[i, j]) + sum[r, k](b[r, k] * abs(c[k, j] - r))'
gradient: none
"""


@pytest.fixture(scope="module")
def session(loaded: Callable[..., CudaSession]) -> CudaSession:
    return loaded(compile_text(SPEC, "two_sums.yaml"))


@pytest.mark.parametrize(("rows", "columns"), [(3, 300), (300, 3), (300, 300), (1, 40)])
def test_sums_of_one_loop_beside_sums_of_two(session: CudaSession, rows: int, columns: int) -> None:
    """Whichever loop threads share, each term is added up once."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape) for shape in ((rows, 2), (rows, columns), (columns, 2)))
    found = session.call("two_sums", {"a": a, "b": b, "c": c}, {})["y"]
    expected = a.sum(0) + np.einsum("rk,rkj->j", b, np.abs(c - np.arange(rows)[:, None, None]))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
