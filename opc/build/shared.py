"""Objects that the packages of an output folder share: they are of sources of the runtime, which no package differs in."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from opc.backends.base import BuildStep, Compile, Link
from opc.backends.kernel.backend import only_variant
from opc.build import headers
from opc.build.toolchain import Toolchain, runtime_include

ELSEWHERE, HERE = "-DOPC_FUNCTIONS_ELSEWHERE", "-DOPC_FUNCTIONS_HERE"
"""How a source is told that functions are in another object, and how that one is made."""

FOLDER = ".opc/objects"
"""Folder of an output folder for such objects, a folder each."""


def folder(step: Compile) -> str:
    """Return the folder of an object, relative to the output folder: another one for other flags."""
    told = "\0".join((step.source, *headers.flags(step)))
    return f"{FOLDER}/{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def path(step: Compile) -> str:
    """Return the path of an object, relative to the output folder."""
    return f"{folder(step)}/{Path(step.object).name}"


def of(steps: Iterable[BuildStep]) -> tuple[Compile, ...]:
    """Return the steps that make the objects which links share, each once."""
    return tuple(dict.fromkeys(s for step in steps if isinstance(step, Link) for s in step.shared))


def functions(step: BuildStep) -> Compile | None:
    """Return the step that makes the object of the functions that a step's source shares; None where it has its own.

    Those of a library that is to be shipped are its own, and may be optimised with what calls them.
    """
    if not isinstance(step, Compile) or not step.functions or step.compiler or only_variant() is None:
        return None
    return Compile(str(runtime_include() / step.functions), "functions.o", ("-x", "c++", *step.flags, HERE), glue=step.glue)


def worth(packages: Iterable[Iterable[BuildStep]], out: Path, toolchain: Toolchain, sure: bool = False) -> frozenset[Compile]:
    """Return the steps of `functions` that are worth it: for many packages, or where the object is there; all if it is `sure`."""
    if not toolchain.precompiles:
        return frozenset()
    found = Counter(made for steps in packages for made in {functions(step) for step in steps} if made is not None)
    return frozenset(step for step, count in found.items() if sure or count >= headers.LEAST or (out / path(step)).exists())


__all__ = ["ELSEWHERE", "FOLDER", "HERE", "folder", "functions", "of", "path", "worth"]
