"""An op without tensors, such as a window, on the backends that can hold one: no operand says which device or type it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.testing.results import Status
from opc.testing.runner import run_tests

SPEC = """\
op: ramp
domain: opc.test
version: 1
doc: Numbers that rise by steps of one size.
types: {T: [float32, float64]}
inputs: {}
attributes:
  count: {type: int, check: count > 0}
  step: {type: float, default: 0.5}
  dtype: {type: dtype, binds: T, default: float32}
outputs: {y: 'T[N]'}
shape: {N: count}
kernel: |
  y[i] = cast(T, i * cast(float64, step))
examples:
  - {count: 3, y: [0.0, 0.5, 1.0]}
"""
HOLDING = ("numpy", "onnx", "tvm_ffi", "paddle", "jax", "cuda")
"""Those that run an op without operands; PyTorch and ONNX Runtime, whose ops choose a device or types by them, refuse it."""


@pytest.mark.rotating
def test_an_op_without_tensors(tmp_path: Path) -> None:
    spec = tmp_path / "ramp.yaml"
    spec.write_text(SPEC)
    report = run_tests([spec], [*HOLDING, "torch", "onnxruntime"], tmp_path / "out", 2)
    assert not report.mistakes
    assert [f"{r.backend}: {r.label}: {r.message}" for r in report.results if r.status is Status.FAILED] == []
    for backend in HOLDING:
        ran = [r for r in report.results if r.backend == backend and r.status in (Status.PASSED, Status.EMULATED)]
        assert len(ran) > 20, backend
    for backend in ("torch", "onnxruntime"):
        assert not any(r.backend == backend and r.kind == "forward" and r.status is Status.PASSED for r in report.results)
