"""Frameworks on a GPU as the proof calls them: what they are made of, and where they can't be run. Calls are `opc test`'s."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from opc.backends import registry
from opc.backends.base import Link, OpError, Unsupported
from opc.backends.cuda import toolkit
from opc.backends.cuda.frameworks import beside, linked, refuse_what_stops
from opc.backends.cuda.session import CudaSession
from opc.build import generate
from opc.pipeline import load_family
from opc.testing.runner import run_tests

SPECS = Path(__file__).parents[3] / "specs"
NAMES = ("mindspore_cuda", "onnxruntime_cuda", "paddle_cuda", "torch_cuda")


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toolkit.VARIABLE, toolkit.EMULATED)


def test_every_framework_with_kernels_on_gpus_has_one() -> None:
    found = [beside.name for b in registry.select() if (beside := registry.companion(b)) is not None]
    assert tuple(found) == NAMES
    assert [registry.load(name).execution for name in NAMES] == ["emulated"] * 4


def test_a_package_holds_the_parts(tmp_path: Path) -> None:
    backends = [registry.load(name) for name in NAMES]
    made = generate.generate(load_family(SPECS / "relu.yaml"), tmp_path, backends)
    assert {b.name for b in made.backends} > {*NAMES}
    held = generate.manifest.read(tmp_path / "relu").backends
    assert held == ("cuda", "mindspore", "onnxruntime", "paddle", "torch")


def test_what_has_no_kernels_is_refused() -> None:
    family = load_family(SPECS / "native" / "inverse.yaml")
    assert all(registry.load(name).requires(family) for name in NAMES)


def test_a_framework_for_cpus_is_not_run_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "is_emulated", lambda: False)
    found = registry.load("torch_cuda").probe()
    assert not found.available
    assert "kernels are made for this machine's GPU" in str(found.reason)
    assert found.install == "OPC_CUDA=emulated runs them on the CPU"


def test_another_library_lies_in_a_folder_of_its_own(tmp_path: Path) -> None:
    family = load_family(SPECS / "relu.yaml")
    backend = registry.load("mindspore_cuda")
    made = [s.output for s in backend.build(family) if isinstance(s, Link)]
    assert made == [f"{beside(family, 'mindspore')}/build/librelu_mindspore.so"]
    with pytest.raises(ImportError, match="has not been built"):
        linked(family, tmp_path, "mindspore")
    (tmp_path / made[0]).parent.mkdir(parents=True)
    (tmp_path / "mindspore").mkdir()
    for _ in range(2):
        folder = linked(family, tmp_path, "mindspore")
        assert (folder / "mindspore").resolve() == tmp_path / "mindspore"
        assert not (folder / "build").is_symlink()


class _Kernels:
    def __init__(self, told_by_data: bool) -> None:
        self.told_by_data = told_by_data

    def call(self, *_: Any) -> None:
        raise OpError("an index of x is 4, outside axis 0 of size 4")


def test_data_that_stop_a_gpu_are_not_given_to_it() -> None:
    refuse_what_stops(None, "relu", {}, {})
    refuse_what_stops(cast(CudaSession, _Kernels(False)), "relu", {}, {})
    with pytest.raises(Unsupported, match="outside axis 0 of size 4"):
        refuse_what_stops(cast(CudaSession, _Kernels(True)), "relu", {}, {})


def test_opc_test_has_a_column_of_each(tmp_path: Path) -> None:
    titles = [column.title for column in run_tests([], None, tmp_path).backends.values()]
    for framework in ("ONNX Runtime", "PyTorch", "MindSpore", "Paddle"):
        assert titles[titles.index(framework) + 1] == f"{framework} CUDA"
