"""What only those need who prove is an extra: opc writes, builds and loads without it, and says what to install elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.packaging.scaled import SPEC

ROOT = Path(__file__).parents[2]
PROVERS = ("hypothesis", "onnx")
BLOCKER = f"""
import sys
from importlib.abc import MetaPathFinder


class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {PROVERS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has neither package, and a spec in the working folder."""
    (tmp_path / "blocker").mkdir()
    (tmp_path / "blocker/sitecustomize.py").write_text(BLOCKER)
    (tmp_path / "scaled.yaml").write_text(SPEC)
    path = os.pathsep.join((str(tmp_path / "blocker"), str(ROOT)))
    return {**os.environ, "PYTHONPATH": path, "OPC_CACHE_DIR": str(tmp_path / "cache"), "OMP_WAIT_POLICY": "passive"}


def python(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_they_are_no_requirements_of_opc_but_of_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^A-Za-z0-9_-]", r)[0] for r in requirements}

    assert not names(project["dependencies"]) & {*PROVERS}
    extras = project["optional-dependencies"]
    assert names(extras["prove"]) == {*PROVERS}
    # The README's first command proves an op, and the test suite proves all: both have them.
    assert extras["all"][0].startswith("opc-compiler[prove,")
    assert extras["test"][0].startswith("opc-compiler[all,")
    assert "onnx" in names(extras["onnxruntime"])


def test_their_names_are_normalized() -> None:
    """pip 23.2 compares an extra in the spelling of the command to that of the metadata, which is normalized."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [name for name in project["optional-dependencies"] if canonicalize_name(name) != name] == []


@pytest.mark.rotating
def test_specs_are_checked_written_built_and_loaded_without_them(without: dict[str, str], tmp_path: Path) -> None:
    for command in (("check",), ("generate", "--backend", "numpy"), ("build", "--backend", "numpy"), ("show",)):
        code, out, err = python(tmp_path, without, "-m", "opc", command[0], "scaled.yaml", *command[1:])
        assert code == 0, out + err
    program = "import opc, numpy; print(opc.load('scaled.yaml')(numpy.float64([1, 2])))"
    assert python(tmp_path, without, "-c", program) == (0, "[2. 4.]\n", "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("test", "scaled.yaml", "--backend", "numpy"),
            'error: opc test needs the packages hypothesis and onnx: run `pip install "opc-compiler[prove]"`\n',
        ),
        (
            ("run", "model.onnx", "--spec", "scaled.yaml"),
            'error: opc run on an ONNX model needs the package onnx: run `pip install "opc-compiler[onnxruntime]"`\n',
        ),
    ],
)
def test_what_needs_them_says_so_in_a_line(without: dict[str, str], tmp_path: Path, command: tuple[str, ...], said: str) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    assert python(tmp_path, without, "-m", "opc", *command) == (1, "", said)
