"""The clang++ of Python's package ziglang as a compiler that takes GCC's options: `python -m opc.build.zig ARGUMENTS`.

It is a clang++ that pip installs. zig spells the names of instruction sets its own way, `x86_64_v3` for `x86-64-v3`, and looks
for undefined behaviour in what is not optimised, and writes debug information, by default. To link, it would
first build a C library of its own, for minutes: g++ links what it compiles.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence

COMMAND = (sys.executable, "-m", "opc.build.zig")

_COMPILES = {"-c", "-S", "-E", "--version"}


def installed() -> bool:
    """Whether the package is here."""
    return importlib.util.find_spec("ziglang") is not None


def translated(arguments: Sequence[str]) -> list[str]:
    """Return the command that GCC's arguments mean."""
    if _COMPILES.isdisjoint(arguments):
        return ["g++", *arguments]
    spelled = [re.sub(r"(?<=.)-", "_", a) if a.startswith("-march=") else a for a in arguments]
    return [sys.executable, "-m", "ziglang", "c++", "-g0", "-fno-sanitize=all", *spelled]


def main() -> None:
    """Become the compiler."""
    command = translated(sys.argv[1:])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
