"""What passed on the same bytes is not run again; whatever counts and differs, is."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opc.testing import memory as memories
from opc.testing.memory import Memory
from opc.testing.results import Result, Status

PASSED = Result("relu", "numpy", "forward", "case 0", Status.PASSED, 0.25, 0.5)
ENTRY = "opc.testing.memory:Memory"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("relu/kernel/relu.cpp", "relu/build/build.ninja", "relu/build/librelu.so", "relu/build/stamp.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    return tmp_path / "relu"


def key(package: Path, backend: str = "numpy", python: str = sys.executable, entry: str = ENTRY) -> str | None:
    return Memory(package.parent).key(package, backend, python, entry)


def test_what_passed_is_recalled_under_the_same_key_only(package: Path) -> None:
    memory, now = Memory(package.parent), key(package)
    idle = replace(PASSED, name="case 1", status=Status.NOT_RUN, message="no strides")
    memory.keep("relu", "numpy", now, "2.0", [PASSED, idle])
    assert memory.recall("relu", "numpy", now) == ("2.0", [PASSED, idle])
    assert memory.recall("relu", "numpy", "other") is None
    assert memory.recall("relu", "numpy", None) is None
    assert memory.recall("relu", "torch", now) is None


@pytest.mark.parametrize(
    "more",
    [
        [replace(PASSED, status=Status.FAILED)],
        [Result("relu", "numpy", "load", "relu", Status.NOT_RUN, message="not installed")],
    ],
)
def test_a_failure_is_not_kept_and_ends_what_was(package: Path, more: list[Result]) -> None:
    memory, now = Memory(package.parent), key(package)
    memory.keep("relu", "numpy", now, "2.0", [PASSED])
    memory.keep("relu", "numpy", now, "2.0", [PASSED, *more])
    assert memory.recall("relu", "numpy", now) is None
    memory.keep("relu", "numpy", now, "2.0", [replace(PASSED, status=Status.NOT_RUN)])
    assert memory.recall("relu", "numpy", now) is None
    memory.keep("relu", "numpy", None, "2.0", [PASSED])
    assert not [*memory.folder.glob("*.json")]


def test_a_broken_file_is_a_run(package: Path) -> None:
    memory, now = Memory(package.parent), key(package)
    memory.keep("relu", "numpy", now, "2.0", [PASSED])
    (memory.folder / "relu.numpy.json").write_text('{"key": ')
    assert memory.recall("relu", "numpy", now) is None


def test_everything_that_counts_is_in_the_key(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = key(package)
    assert first is not None
    assert first == key(package)
    (package / "build" / "librelu.so").write_text("built again")
    (package / "build" / "stamp.json").write_text("built again")
    assert key(package) == first
    assert key(package, backend="torch") != first
    assert key(package, entry="") != first
    assert key(package, python=str(tmp_path / "bin" / "python")) is None
    for name in ("kernel/relu.cpp", "build/build.ninja"):
        with monkeypatch.context() as patch:
            (package / name).write_text("second")
            assert key(package) != first
            (package / name).write_text("first")
            for variable in ("OPC_VARIANT", "CXXFLAGS", "OMP_NUM_THREADS"):
                patch.setenv(variable, "v9")
                assert key(package) != first
                patch.delenv(variable)
    monkeypatch.undo()
    (tmp_path / ".opc").mkdir(exist_ok=True)
    (tmp_path / ".opc" / "toolchain").write_text("another compiler")
    assert key(package) != first
    (tmp_path / ".opc" / "toolchain").unlink()
    source = tmp_path / "source.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr("opc.build.stamp.own_files", lambda: [str(source)])
    own = key(package)
    source.write_text("x = 2\n")
    assert key(package) != own
    again = key(package)
    monkeypatch.setattr(memories, "_machine", lambda: iter(("x86_64", "flags: none")))
    assert key(package) != again


def test_native_code_reads_files_that_only_the_stamp_knows(package: Path) -> None:
    (package / "build" / "build.ninja").write_text("build relu_native.o: cxx")
    first = key(package)
    (package / "build" / "stamp.json").write_text("another library")
    assert key(package) != first
