"""The compilers that kernels are held to: g++, and a clang++ where one is installed or comes with Python's package ziglang."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from opc.build.toolchain import NAMES

NO_CLANG = "no clang++ here, and no package ziglang, which brings one"


def clang() -> tuple[str, ...] | None:
    """Return the command of a clang++, None where there is none."""
    for name in NAMES:
        if name.startswith("clang++") and (path := shutil.which(name)):
            return (path,)
    return (sys.executable, "-m", "ziglang", "c++") if importlib.util.find_spec("ziglang") else None


def run_compiler(command: tuple[str, ...], *arguments: str | Path) -> None:
    """Compile; ziglang has names of its own for instruction sets.

    Raises:
        CalledProcessError: when the compiler refuses; its message is there.
    """
    given = [str(a) for a in arguments]
    if "ziglang" in command:
        given = [a.replace("-", "_").replace("_march", "-march", 1) if a.startswith("-march=") else a for a in given]
    subprocess.run([*command, *given], check=True, capture_output=True, text=True)
