"""Kernels of a GPU under sanitizers: clean ones pass, with threads that wait for each other, and what is wrong fails its call."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc import config
from opc.backends.cuda.backend import CudaBackend
from opc.build import toolchain
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.call_file import KernelCall
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.results import Report, Result, Status
from opc.testing.sanitize_device import check_device, sanitize_device

SPEC = """
op: rows_of
domain: opc.test
version: 1
doc: Rows by number, without their greatest element.
types: {T: [float32]}
inputs: {t: 'T[V, D]', ids: 'int64[N]'}
outputs: {y: 'T[N, D]'}
gradient: none
kernel: |
  r[n, d] = t[ids[n], d]
  y[n, d] = r[n, d] - max[e:D](r[n, e])
"""


def checked(folder: Path, family: Family, *ids: int) -> list[Result]:
    """Return what becomes of a call for rows of these numbers, of three rows of 300."""
    t, rows = np.linspace(0, 1, 900, dtype=np.float32).reshape(3, 300), np.array(ids, np.int64)
    case = Case("one", family.name, {"t": TensorArg(t), "ids": TensorArg(rows)})
    call = KernelCall(family.forward, case)
    return list(check_device(family, folder, toolchain.find(config.load()).command, ("address", "undefined"), [call]))


def test_clean_kernels_pass_and_what_is_read_outside_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = compile_text(SPEC, "rows_of.yaml")
    assert [(r.status, r.message) for r in checked(tmp_path / "clean", family, 2, 0, 2)] == [(Status.EMULATED, "")]
    emit = CudaBackend.emit

    def careless(self: CudaBackend, family: Family) -> dict[str, str]:
        texts = emit(self, family).items()
        return {
            path: re.sub(r"!?opc::outside\(", lambda m: f"{'true ||' if m[0][0] == '!' else 'false &&'} {m[0]}", t)
            for path, t in texts
        }

    monkeypatch.setattr(CudaBackend, "emit", careless)
    (found,) = checked(tmp_path / "careless", family, 2, 4)
    assert found.status is Status.FAILED
    assert "heap-buffer-overflow" in found.message


def test_mistakes_and_refusals_are_told(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("op: bad\n")
    native = Path(__file__).parents[2] / "specs" / "native" / "inverse.yaml"
    report = Report()
    sanitize_device(report, [bad, native], ("address", "thread"))
    assert [*report.mistakes] == [str(bad)]
    assert [(r.op, r.status) for r in report.results] == [("inverse", Status.REFUSED)]
    assert [*report.backends] == ["CUDA address"]
    nothing = Report()
    sanitize_device(nothing, [native], ("thread",))
    assert not nothing.backends
