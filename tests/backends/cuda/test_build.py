"""Kernels for GPUs of other machines, which nvcc compiles where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opc import config
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend
from opc.build.builder import build_families
from opc.diagnostics import SpecError
from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.narrow import only

SPEC = """\
op: doubled
domain: opc.test
version: 1
doc: Two times x.
types: {T: [float32]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = 2 * x
gradient: none
"""


@pytest.fixture
def doubled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Family:
    """An op, in a project of its own on a machine without a GPU."""
    monkeypatch.setattr(toolkit, "has_gpu", lambda: False)
    monkeypatch.setenv("OPC_CUDA", "native")
    monkeypatch.chdir(tmp_path)
    return only(compile_text(SPEC, "doubled.yaml"))


@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
def test_kernels_are_made_for_the_gpus_that_are_named(doubled: Family, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.opc.cuda]\narchitectures = ["sm_75", "sm_120"]\n')
    assert config.load().architectures == ("sm_75", "sm_120")
    backend = CudaBackend()
    assert backend.execution == "compiled"
    build_families([doubled], tmp_path, ["cuda"])
    library = tmp_path / "doubled" / "build" / "libdoubled_cuda.so"
    sections = subprocess.run(["readelf", "-S", "-W", library], check=True, capture_output=True, text=True).stdout
    assert ".nv_fatbin" in sections
    commands = (tmp_path / "doubled" / "build" / "build.ninja").read_text()
    for each in ("arch=compute_75,code=sm_75", "arch=compute_120,code=sm_120", "arch=compute_120,code=compute_120"):
        assert each in commands


def test_nobody_guesses_for_which(doubled: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvcc", lambda: "nvcc")
    with pytest.raises(SpecError, match="nothing says for which") as refused:
        CudaBackend().build(doubled)
    assert "architectures = [" in str(refused.value)


def test_nvcc_is_asked_for(doubled: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvcc", lambda: None)
    with pytest.raises(SpecError, match="there is no nvcc"):
        CudaBackend().build(doubled)


def test_without_being_asked_a_machine_without_a_gpu_runs_them_itself(doubled: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPC_CUDA")
    assert CudaBackend().execution == "emulated"
