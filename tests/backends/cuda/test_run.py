"""What `nox -s gpu` runs, with kernels on the CPU and programs that stand in for those of a GPU's driver and toolkit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAMS = {
    "nvidia-smi": "echo emulated",
    "nvcc": "echo emulated",
    "compute-sanitizer": 'echo "sanitized: $*" >> "$SAID"',
    "python3": f'exec "{sys.executable}" "$@"',
}


@pytest.mark.rotating(seconds=15)
def test_the_proof_runs_and_is_watched(tmp_path: Path) -> None:
    for name, line in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    said = tmp_path / "said"
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path / "out"), "OPC_CUDA": "emulated", "SAID": str(said)}
    command = ["sh", str(ROOT / "tests" / "gpu" / "run.sh"), "leaky_relu"]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "measurements are left out" in done.stdout
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "leaky_relu" in json.dumps(results)
    assert "emulated" in (tmp_path / "out" / "gpu.md").read_text()
    assert "-m opc test specs/softmax.yaml specs/matmul.yaml --backend cuda" in said.read_text()
