"""The compilers that kernels are held to: g++, and the clang++ of Python's package ziglang, which the extra `test` installs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opc.build import zig

CLANG = zig.COMMAND
COMPILERS = {"g++": ("g++",), "clang++": CLANG}


def run_compiler(command: tuple[str, ...], *arguments: str | Path) -> None:
    """Compile.

    Raises:
        CalledProcessError: when the compiler refuses; its message is there.
    """
    subprocess.run([*command, *map(str, arguments)], check=True, capture_output=True, text=True)
