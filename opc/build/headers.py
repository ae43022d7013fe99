"""Headers that many packages begin with, compiled once for an output folder.

GCC takes `opc/x.h.gch` instead of `opc/x.h` where that lies in a folder it searches first and was made by the same compiler with
the same options; else it reads the header. The object is the same, byte for byte. Other compilers have no such rule.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from opc.backends.base import BuildStep, Compile
from opc.backends.kernel.backend import only_variant
from opc.build.toolchain import Toolchain, runtime_include
from opc.records import dataclass

FOLDER = ".opc/headers"
"""Folder of an output folder for compiled headers, a folder each."""

LEAST = 4
"""As many packages must begin with a header that it is worth being compiled ahead: that takes longer than to read it."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the runtime and the arguments that all who begin with it are compiled with."""

    name: str
    flags: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The folder that is searched for it, relative to the output folder."""
        told = "\0".join((str(runtime_include()), self.name, *self.flags))
        return f"{FOLDER}/{hashlib.sha256(told.encode()).hexdigest()[:16]}"

    @property
    def compiled(self) -> str:
        """The compiled header, relative to the output folder."""
        return f"{self.folder}/{self.name}.gch"


def flags(step: Compile) -> tuple[str, ...]:
    """Return the arguments of a step's compiler call: glue in libraries for this machine alone is not optimised."""
    return (*step.flags, "-O0") if step.glue and only_variant() is not None else step.flags


def of(step: BuildStep) -> Header | None:
    """Return the header that a step's source begins with, if it can be compiled ahead."""
    if not isinstance(step, Compile) or not step.header or step.compiler:
        return None
    return Header(step.header, flags(step))


def worth(packages: Iterable[Iterable[BuildStep]], out: Path, toolchain: Toolchain) -> frozenset[Header]:
    """Return the headers to be compiled ahead: those of many packages, and those that are there already."""
    if not toolchain.precompiles:
        return frozenset()
    found = Counter(header for steps in packages for header in {of(step) for step in steps} if header is not None)
    return frozenset(h for h, count in found.items() if count >= LEAST or (out / h.compiled).exists())


__all__ = ["FOLDER", "LEAST", "Header", "flags", "of", "worth"]
