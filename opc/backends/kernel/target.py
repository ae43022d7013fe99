"""What libraries are built for: this machine and system, or others, whose compilers are here.

`sysconfig.get_platform()` names it, as it does for wheels: that of this Python, or `$_PYTHON_HOST_PLATFORM`, by which Python
itself, crossenv and cibuildwheel tell a build which machine it is for.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from opc.diagnostics import Diagnostic, SpecError
from opc.records import dataclass

PLATFORM = "_PYTHON_HOST_PLATFORM"
"""Environment variable: the platform that libraries are built for, as `linux-aarch64`."""

X86_64 = "x86_64"
AARCH64 = "aarch64"

MACHINES = (X86_64, AARCH64)
"""The machines that kernels have vectors for."""

INSTALL = "sudo apt install g++-aarch64-linux-gnu qemu-user"
"""How Debian gets what is needed to build programs for aarch64 and to run them."""

_NAMES = {"amd64": X86_64, "arm64": AARCH64, "x64": X86_64}


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, by the name that Linux has for it, and a system: linux, macosx, win or another."""

    machine: str
    system: str

    @property
    def is_x86(self) -> bool:
        """Whether the kernels have variants for the levels of x86-64."""
        return self.machine == X86_64

    @property
    def is_here(self) -> bool:
        """Whether this machine is one."""
        return self.machine == machine_named(platform.machine())


def machine_named(name: str) -> str:
    """Return the one name of a machine that systems call differently."""
    return _NAMES.get(name.lower(), name.lower())


def target() -> Target:
    """Return what libraries are built for."""
    import sysconfig

    system, _, rest = sysconfig.get_platform().partition("-")
    # Of a Python for macOS that runs on two kinds of machines, this machine's part runs.
    named = rest.rpartition("-")[2]
    return Target(machine_named(named if named and named != "universal2" else platform.machine()), system)


@contextmanager
def building_for(machine: str | None) -> Iterator[None]:
    """Build libraries for Linux on a machine for a while; None stands for what they are built for anyway.

    Raises:
        SpecError: when kernels are not made for such a machine.
    """
    if machine is not None and machine_named(machine) not in MACHINES:
        raise SpecError([Diagnostic(f"there is no target '{machine}'", hint=f"the targets are {', '.join(MACHINES)}")])
    before = os.environ.get(PLATFORM)
    if machine is not None:
        os.environ[PLATFORM] = f"linux-{machine_named(machine)}"
    try:
        yield
    finally:
        if machine is not None and before is None:
            del os.environ[PLATFORM]
        elif before is not None:
            os.environ[PLATFORM] = before


def cross_compiler(machine: str = AARCH64) -> tuple[str, ...]:
    """Return the command of a compiler for Linux on a machine; empty where there is none."""
    found = shutil.which(f"{machine}-linux-gnu-g++")
    return () if found is None else (found,)


def emulator(machine: str = AARCH64) -> tuple[str, ...] | None:
    """Return the command in front of a program for a machine: none on that machine itself. None where it can't be run."""
    if platform.machine() == machine:
        return ()
    found = shutil.which(f"qemu-{machine}") or shutil.which(f"qemu-{machine}-static")
    return None if found is None else (found,)


__all__ = [
    "AARCH64",
    "INSTALL",
    "PLATFORM",
    "X86_64",
    "Target",
    "building_for",
    "cross_compiler",
    "emulator",
    "machine_named",
    "target",
]
