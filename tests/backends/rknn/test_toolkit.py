"""RKNN's toolkit on x86: what users do with dual_residual, each in a process of its own."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("case", ["exported", "several_outputs", "between_convolutions", "quantised", "refused", "logged"])
def test_on_simulator(case: str, toolkit: Path, package: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    command = [str(toolkit), str(Path(__file__).with_name("on_simulator.py")), str(package), case]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
