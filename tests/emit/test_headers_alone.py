"""Each header of the runtime includes what it needs: one that an op's file includes first, or alone, compiles.

Where many ops are built, functions that are the same for all are compiled once, and a header is without those of others.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).parents[2] / "runtime" / "include"
FOLDERS = ("core", "rows", "nests", "contraction")
HEADERS = [h.relative_to(INCLUDE).as_posix() for folder in FOLDERS for h in sorted((INCLUDE / "opc" / folder).glob("*.h"))]
OF_C = ("opc/core/threads.h", "opc/core/host_threads.h")
"""Those that C includes, in what hosts without threads of their own are given."""


@pytest.mark.rotating
@pytest.mark.parametrize("functions", ["", "-DOPC_FUNCTIONS_ELSEWHERE", "-DOPC_FUNCTIONS_HERE"])
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(header: str, functions: str) -> None:
    compiler = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-x", "c"] if header in OF_C else ["g++", "-std=c++17", "-x", "c++"]
    flags = ["-DOPC_VARIANT=native", "-march=native", *filter(None, [functions])]
    command = [*compiler, "-fsyntax-only", "-Werror", *flags, f"-I{INCLUDE}", "-"]
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
