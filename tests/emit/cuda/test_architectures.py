"""Kernels for the oldest and the newest GPUs that nvcc makes kernels for: each form that has instructions of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc import config
from opc.backends.cuda import toolkit
from opc.ir.dtypes import DType
from opc.pipeline import compile_text
from tests.gpu import gates
from tests.narrow import only

from .test_source import WEIGHED

DTYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32)

PRODUCTS = """\
op: multiplied
domain: opc.test
version: 1
doc: Products of matrices, running sums and rows of them, and what scatters them.
types: {T: [float16, bfloat16, float32]}
inputs: {a: 'T[M, K]', b: 'T[K, N]', ids: 'int64[M]'}
attributes: {places: {type: int, check: places > 0}}
outputs: {y: 'T[M, N]', s: 'T[M, K]', e: 'T[M, K]', r: 'T[places, K]'}
kernel: |
  y[m, n] = sum[k](a[m, k] * b[k, n])
  s[m, k] = sum[q:k+1](a[m, q])
  t[m] = max[k](a[m, k])
  e[m, k] = exp(a[m, k] - t[m])
  r[i, k] = sum[m](a[m, k] if ids[m] == i else 0)
gradient: none
"""


@pytest.mark.rotating(seconds=30)
@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("architecture", [config.ARCHITECTURES[0], config.ARCHITECTURES[-1]])
@pytest.mark.parametrize(
    "spec", [WEIGHED.replace("[bfloat16, float32]", "[float16, bfloat16, float32]"), PRODUCTS], ids=["weighed", "products"]
)
def test_kernels_are_assembled(spec: str, architecture: str, tmp_path: Path) -> None:
    family = only(compile_text(spec, "spec.yaml"))
    for dtype in DTYPES:
        found = gates.kernels(gates.ptx_of(family, tmp_path, (dtype,), architecture))
        said = gates.assembled(family.name, tmp_path, architecture)
        assert found.keys() == gates.spilled(said).keys()
