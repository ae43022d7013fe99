"""Generated packages in MindSpore itself, in a process of the interpreter that has it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHECKS = Path(__file__).parent / "in_mindspore.py"


def failures(interpreter: Path, packages: Path, folder: Path, *names: str) -> dict[str, str]:
    """Run checks, all in one process, for MindSpore takes seconds to import; return how those that failed did."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive", "GLOG_v": "4"}
    command = [str(interpreter), str(CHECKS), str(packages), *names]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.rotating("file", seconds=30)
def test_in_mindspore(interpreter: Path, packages: Path, tmp_path: Path) -> None:
    names = (
        "attributes",
        "signs_of_zero",
        "bad_calls",
        "out_of_range",
        "ranks_of_zero",
        "denormals",
        "training",
        "integers_are_constants",
        "on_an_emulated_gpu",
        "aten",
    )
    # A name that no check has shows that a check that fails is told.
    found = failures(interpreter, packages, tmp_path, *names, "no_such_check")
    assert "KeyError: 'no_such_check'" in found.pop("no_such_check")
    assert found == {}


@pytest.mark.rotating("file")
def test_torch_imported_first(interpreter: Path, packages: Path, tmp_path: Path) -> None:
    assert failures(interpreter, packages, tmp_path, "aten_after_torch") == {}
