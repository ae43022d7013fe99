"""The tag of a wheel: which Pythons and which systems its libraries run on, read off what they ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from opc.build.glibc import Version, versions
from opc.build.wheels.project import LOWEST_PYTHON

POLICIES: tuple[tuple[Version, Version, Version, Version], ...] = (
    ((2, 5), (3, 4, 8), (1, 3, 1), (4, 2, 0)),
    ((2, 12), (3, 4, 13), (1, 3, 3), (4, 3, 0)),
    ((2, 17), (3, 4, 19), (1, 3, 7), (4, 7, 0)),
    ((2, 24), (3, 4, 22), (1, 3, 10), (4, 7, 0)),
    ((2, 26), (3, 4, 22), (1, 3, 10), (4, 7, 0)),
    ((2, 27), (3, 4, 24), (1, 3, 11), (7, 0, 0)),
    ((2, 28), (3, 4, 24), (1, 3, 11), (7, 0, 0)),
    ((2, 31), (3, 4, 28), (1, 3, 12), (7, 0, 0)),
    ((2, 34), (3, 4, 29), (1, 3, 13), (7, 0, 0)),
    ((2, 35), (3, 4, 30), (1, 3, 13), (11, 0, 0)),
    ((2, 36), (3, 4, 30), (1, 3, 13), (11, 0, 0)),
    ((2, 38), (3, 4, 30), (1, 3, 13), (11, 0, 0)),
    ((2, 39), (3, 4, 33), (1, 3, 15), (14, 0, 0)),
    ((2, 40), (3, 4, 33), (1, 3, 15), (14, 0, 0)),
    ((2, 41), (3, 4, 33), (1, 3, 15), (14, 0, 0)),
)
"""For each manylinux by its glibc, the newest symbols of libstdc++ (GLIBCXX, CXXABI) and libgcc that its systems have."""

KINDS = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")


def tag(libraries: Sequence[Path]) -> str:
    """Return the tag of a wheel with these libraries, as `cp311-abi3-manylinux_2_17_x86_64`.

    An extension module that keeps to Python's limited API (`.abi3.so`) runs on every later Python; others load into any.
    """
    extension = any(path.name.endswith(".abi3.so") for path in libraries)
    python = f"cp{LOWEST_PYTHON.replace('.', '')}-abi3" if extension else "py3-none"
    return f"{python}-{_platform(libraries)}"


def _platform(libraries: Sequence[Path]) -> str:
    """Return the lowest manylinux that has what the libraries ask for; where that is none, the platform they are built for."""
    import sysconfig

    from packaging.tags import platform_tags

    own = sysconfig.get_platform()
    if not own.startswith("linux-"):
        # Of macOS it names the oldest that libraries are compiled for, and not this one.
        return re.sub(r"[-.]", "_", own)
    if not any("manylinux" in name for name in platform_tags()):
        return re.sub(r"[-.]", "_", next(platform_tags()))
    machine = own.removeprefix("linux-")
    # Before that glibc there was none for other machines.
    lowest: Version = (2, 5) if machine in ("x86_64", "i686") else (2, 17)
    asked = [max((v for library in libraries for v in versions(library, kind)), default=()) for kind in KINDS]
    for policy in POLICIES:
        if policy[0] >= lowest and all(need <= has for need, has in zip(asked, policy, strict=True)):
            return f"manylinux_{policy[0][0]}_{policy[0][1]}_{machine}"
    return f"linux_{machine}"
