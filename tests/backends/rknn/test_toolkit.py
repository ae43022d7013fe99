"""RKNN's toolkit on x86: what users do with dual_residual, each in a process of its own."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


CASES = ("exported", "several_outputs", "between_convolutions", "quantised", "refused", "logged")


@pytest.fixture(scope="module")
def printed(toolkit: Path, package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """By case the exit status, and what was printed."""
    folder = tmp_path_factory.mktemp("simulator")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    command = [str(toolkit), str(Path(__file__).with_name("on_simulator.py")), str(package), *CASES]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    statuses = dict(line.split() for line in done.stdout.splitlines())
    return {case: (status, (folder / f"{case}.log").read_text(errors="replace")) for case, status in statuses.items()}


@pytest.mark.rotating("file", seconds=12)
@pytest.mark.parametrize("case", CASES)
def test_on_simulator(case: str, printed: dict[str, tuple[str, str]]) -> None:
    status, said = printed[case]
    assert status == "0", said[-6000:]
