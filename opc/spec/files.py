"""Files of specs by path: one of several ranks or counts goes by the path of each of its ops.

`specs/max_pool.yaml` with `ranks: {S: [1, 2]}` is read as `specs/max_pool1d.yaml` and `specs/max_pool2d.yaml`, and
`specs/concat.yaml` with `counts: {x: [2, 3]}` as `specs/concat2.yaml` and `specs/concat3.yaml`, which need not be there. This is
asked before everything else, so it imports little.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

RANKS, COUNTS = KEYS = ("ranks", "counts")
"""The keys of a spec under which stands for which numbers it describes an op."""

_KEY = re.compile(rb"^(ranks|counts)[ \t]*:", re.MULTILINE)
_OP = re.compile(rb"^op:[ \t]*[\"']?([A-Za-z]\w*)", re.MULTILINE)
_NAMED = re.compile(r"(.+)([1-9])(d?)")


def suffix(key: str, number: int) -> str:
    """Return what the names of an op of several ranks or counts end with."""
    return f"{number}d" if key == RANKS else f"{number}"


def file_of(path: Path) -> Path:
    """Return the file that is read for a spec's path: where there is none, the one of several ops of which it names one."""
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


def key_of(text: bytes) -> str | None:
    """Return the key of a spec's text under which stands for which numbers it describes an op; None where it describes one."""
    key = _KEY.search(text)
    return None if key is None else key[1].decode()


def number_of(path: Path, text: bytes) -> int | None:
    """Return the rank or count at which a spec's path reads a text; None of a text that is one op, or a path that names none."""
    named, key, op = _NAMED.fullmatch(path.stem), key_of(text), _OP.search(text)
    if named is None or key is None or (op is not None and op[1].decode() == path.stem):
        return None
    return int(named[2]) if suffix(key, 1)[1:] == named[3] else None


def digest(text: bytes, number: int | None) -> str:
    """Return the hash of a spec: the SHA-256 of its text, and of the rank or count at which it is read where it has several."""
    return hashlib.sha256(text if number is None else b"%s\0%d" % (text, number)).hexdigest()


def apart(path: Path) -> list[Path]:
    """Return the paths of a file's ops: itself, or one for each rank or count. Who reads the file tells what is wrong with it."""
    try:
        if not path.is_file():  # a pipe can be read once
            return [path]
        with path.open("rb") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return [path]
    key = key_of(text)
    if key is None or number_of(path, text) is not None:
        return [path]
    from opc.spec.instances import numbers_of

    return [path.with_stem(path.stem + suffix(key, n)) for n in numbers_of(text.decode("utf-8", "replace"))] or [path]


def in_folder(folder: Path) -> list[Path]:
    """Return the paths of the ops whose specs stand in a folder."""
    return sorted(each(p for pattern in ("*.yaml", "*.yml") for p in folder.glob(pattern) if p.is_file()))


def each(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of the ops of files, in order."""
    return [op for path in paths for op in apart(path)]
