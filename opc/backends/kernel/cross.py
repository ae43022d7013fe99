"""Compilers for another machine than this one, and what runs programs of it here."""

from __future__ import annotations

import platform
import shutil

AARCH64 = "aarch64"

INSTALL = "install it: sudo apt install g++-aarch64-linux-gnu qemu-user"
"""How Debian gets what is needed to build programs for aarch64 and to run them."""


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


__all__ = ["AARCH64", "INSTALL", "cross_compiler", "emulator"]
