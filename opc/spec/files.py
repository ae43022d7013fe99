"""Files of specs by path: one of several ranks goes by the path of each of its ops.

`specs/max_pool.yaml` with `ranks: {S: [1, 2]}` is read as `specs/max_pool1d.yaml` and `specs/max_pool2d.yaml`, which need not be
there. This is asked before everything else, so it imports little.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

KEY = "ranks"
"""The key of a spec under which its groups of several ranks stand."""

_KEY = re.compile(rb"^ranks[ \t]*:", re.MULTILINE)
_NAMED = re.compile(r"(.+)([1-9])d")


def suffix(rank: int) -> str:
    """Return what the names of an op of several ranks end with."""
    return f"{rank}d"


def file_of(path: Path) -> Path:
    """Return the file that is read for a spec's path: where there is none, the one of several ranks of which it names one."""
    named = _NAMED.fullmatch(path.stem)
    if named is None or path.exists():
        return path
    file = path.with_stem(named[1])
    return file if path in apart(file) else path


def content(path: Path) -> bytes:
    """Return what stands in the file of a spec's path.

    Raises:
        OSError: when it can't be read.
    """
    return file_of(path).read_bytes()


def rank_of(path: Path, text: bytes) -> int | None:
    """Return the rank at which a spec's path reads a text; None of a text that is of one rank, or a path that names none."""
    named = _NAMED.fullmatch(path.stem)
    return int(named[2]) if named is not None and _KEY.search(text) is not None else None


def digest(text: bytes, rank: int | None) -> str:
    """Return the hash of a spec: the SHA-256 of its text, and of the rank at which it is read where it is of several."""
    return hashlib.sha256(text if rank is None else b"%s\0%d" % (text, rank)).hexdigest()


def apart(path: Path) -> list[Path]:
    """Return the paths of a file's ops: itself, or one for each of its ranks. Who reads the file tells what is wrong with it."""
    try:
        if not path.is_file():  # a pipe can be read once
            return [path]
        with path.open("rb") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return [path]
    if _KEY.search(text) is None or rank_of(path, text) is not None:
        return [path]
    from opc.spec.ranks import numbers_of

    return [path.with_stem(path.stem + suffix(rank)) for rank in numbers_of(text.decode("utf-8", "replace"))] or [path]


def in_folder(folder: Path) -> list[Path]:
    """Return the paths of the ops whose specs stand in a folder."""
    return sorted(each(p for pattern in ("*.yaml", "*.yml") for p in folder.glob(pattern) if p.is_file()))


def each(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of the ops of files, in order."""
    return [op for path in paths for op in apart(path)]
