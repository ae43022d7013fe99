"""What is declared of cuBLASLt, beside NVIDIA's own headers where a machine has them."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).parent / "cublaslt.cpp"


def _headers() -> list[Path]:
    """Return the folders that may have headers of a toolkit: of CUDA_HOME, of a system, and of wheels."""
    found = find_spec("nvidia")
    places = [Path(p) for p in (found.submodule_search_locations or ())] if found is not None else []
    wheels = [f for place in places for pattern in ("cu[0-9]*/include", "*/include") for f in sorted(place.glob(pattern))]
    toolkits = [Path(home) / "include" for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    return [*toolkits, *sorted(Path("/usr/local").glob("cuda-*/include")), *wheels]


def test_values_and_sizes_are_those_of_the_headers(tmp_path: Path) -> None:
    """Last seen to hold for cuBLAS 12.9.3 and 13.10.0."""
    folders = _headers()
    needed = ("cublasLt.h", "cuda_runtime_api.h", "crt/host_defines.h")
    if missing := [name for name in needed if not any((f / name).exists() for f in folders)]:
        pytest.skip(f"there is no {missing[0]}")
    include = [f"-I{folder}" for folder in (ROOT / "runtime" / "include", *folders)]
    program = tmp_path / "values"
    subprocess.run(["g++", "-std=c++17", "-Wno-unused-function", *include, str(SOURCE), "-o", str(program)], check=True)
    assert int(subprocess.run([str(program)], capture_output=True, check=True).stdout) >= 120000
