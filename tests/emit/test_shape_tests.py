"""The generated shape tests: they pass on the generated `shape.py`, and notice when it is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opc.emit.shapes import python as shape_python
from opc.emit.shapes import tests as shape_tests
from opc.pipeline import load_family

SPECS = Path(__file__).parents[2] / "specs"


def run(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", str(directory)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def package(tmp_path: Path, spec: str) -> Path:
    family = load_family(SPECS / f"{spec}.yaml")
    directory = tmp_path / family.name
    (directory / "tests").mkdir(parents=True)
    for path, text in {
        "__init__.py": "",
        "shape.py": shape_python.emit(family),
        "tests/__init__.py": "",
        "tests/test_shape.py": shape_tests.emit(family),
    }.items():
        (directory / path).write_text(text)
    return directory


@pytest.mark.parametrize("spec", ["add", "layer_norm", "logsumexp"])
def test_generated_tests_pass(tmp_path: Path, spec: str) -> None:
    done = run(package(tmp_path, spec))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("spec", "right", "wrong"),
    [
        ("add", "return b if _is_one(a) else a", "return a"),
        ("layer_norm", 'call.dim("D", "w", w[0])', "pass"),
        ("logsumexp", 'call.group("*B", "x", x[axis + 1 :])', 'call.group("*B", "x", x[axis:])'),
    ],
)
def test_generated_tests_notice_mistakes(tmp_path: Path, spec: str, right: str, wrong: str) -> None:
    directory = package(tmp_path, spec)
    text = (directory / "shape.py").read_text()
    assert right in text
    (directory / "shape.py").write_text(text.replace(right, wrong, 1))
    assert run(directory).returncode == 1
