"""Sums of products on a device, in the emulation: tiles of every shape, tensor cores, and copies that nobody has waited for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).parent / "products.cpp"


@pytest.mark.rotating(seconds=8)
def test_tiles_add_up_what_plain_loops_do(tmp_path: Path) -> None:
    """Fragments lie as the PTX ISA says, and a copy is there when it has been waited for, and no sooner."""
    program = tmp_path / "products"
    command = ["g++", "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'runtime' / 'include'}", str(SOURCE)]
    subprocess.run([*command, "-o", str(program)], check=True)
    for seed in ("0", "5"):
        env = {**os.environ, "OPC_CUDA_SEED": seed}
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True, env=env)
        assert done.stdout == "4 0 6 0\n"
