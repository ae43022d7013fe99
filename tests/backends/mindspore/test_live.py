"""Generated packages in MindSpore itself, each check in a process of the interpreter that has it."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHECKS = Path(__file__).parent / "in_mindspore.py"


def run(interpreter: Path, folder: Path, *arguments: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive", "GLOG_v": "4"}
    command = [str(interpreter), str(CHECKS), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["fine"]), done.stderr[-3000:]


@pytest.mark.parametrize(
    "name", ["attributes", "signs_of_zero", "bad_calls", "out_of_range", "ranks_of_zero", "denormals", "training", "aten"]
)
def test_in_mindspore(interpreter: Path, packages: Path, tmp_path: Path, name: str) -> None:
    run(interpreter, tmp_path, str(packages), name)


def test_torch_imported_first(interpreter: Path, packages: Path, tmp_path: Path) -> None:
    run(interpreter, tmp_path, str(packages), "aten", "torch first")
