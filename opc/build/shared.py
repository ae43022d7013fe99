"""Objects that the packages of an output folder share: they are of sources of the runtime, which no package differs in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from opc.backends.base import BuildStep, Compile, Link
from opc.build import headers

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


__all__ = ["FOLDER", "folder", "of", "path"]
