"""Files of specs by path: one of several ranks or counts goes by the path of each of its ops.

`specs/max_pool.yaml` with `ranks: {S: [1, 2]}` is read as `specs/max_pool1d.yaml` and `specs/max_pool2d.yaml`, and
`specs/concat.yaml` with `counts: {x: [2, 3]}` as `specs/concat2.yaml` and `specs/concat3.yaml`, which need not be there. This is
asked before everything else, so it imports little. Of a spec with several lists of numbers, names end with all of them:
`specs/reshape3d2d.yaml`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

RANKS, COUNTS = KEYS = ("ranks", "counts")
"""The keys of a spec under which stands for which numbers it describes an op."""

_OP = re.compile(rb"^op:[ \t]*[\"']?([A-Za-z]\w*)", re.MULTILINE)
_SECTION = rb"^%s[ \t]*:((?:.*\n?)(?:(?:[ \t].*)?\n)*(?:[ \t].*)?)"
_SECTIONS = {key: re.compile(_SECTION % key.encode(), re.MULTILINE) for key in KEYS}
_COMMENT = re.compile(rb"#[^\n]*")
_LIST = re.compile(rb"\[|:[ \t]*\n[ \t]*-[ \t]")
_SUFFIX = re.compile(r"[1-9]d?$")

Numbers: TypeAlias = "tuple[int, ...]"
"""Which of its ops a spec is read as: a number for each of its lists, the ranks ahead of the count."""


def suffix(keys: Sequence[str], numbers: Numbers) -> str:
    """Return what the name of an op with these ranks and counts ends with; `keys` says which of both each is."""
    return "".join(f"{n}d" if key == RANKS else f"{n}" for key, n in zip(keys, numbers, strict=True))


def file_of(path: Path) -> Path:
    """Return the file that is read for a spec's path: where there is none, the one of several ops of which it names one."""
    stem = path.stem
    if path.exists():
        return path
    while (end := _SUFFIX.search(stem)) and end.start():
        stem = stem[: end.start()]
        file = path.with_stem(stem)
        if path in apart(file):
            return file
    return path


def content(path: Path) -> bytes:
    """Return what stands in the file of a spec's path.

    Raises:
        OSError: when it can't be read.
    """
    return file_of(path).read_bytes()


def keys_of(text: bytes) -> tuple[str, ...]:
    """Return for each list of numbers of a spec's text the key that it stands under; none where it describes one op."""
    found = [(key, match) for key in KEYS if (match := _SECTIONS[key].search(text))]
    return tuple(key for key, match in found for _ in range(max(1, len(_LIST.findall(_COMMENT.sub(b"", match[1]))))))


def numbers_at(path: Path, text: bytes) -> Numbers | None:
    """Return the ranks and the count at which a spec's path reads a text; None of a text that is one op, or a path that names
    none."""
    keys, op = keys_of(text), _OP.search(text)
    if not keys or (op is not None and op[1].decode() == path.stem):
        return None
    named = re.fullmatch(".+" + "".join("([1-9])d" if key == RANKS else "([1-9])" for key in keys), path.stem)
    return None if named is None else tuple(map(int, named.groups()))


def digest(text: bytes, numbers: Numbers | None) -> str:
    """Return the hash of a spec: the SHA-256 of its text, and of the ranks and the count at which it is read, if any."""
    return hashlib.sha256(text if numbers is None else b"%s\0%s" % (text, b" ".join(b"%d" % n for n in numbers))).hexdigest()


def apart(path: Path) -> list[Path]:
    """Return the paths of a file's ops: itself, or one for each rank or count. Who reads the file tells what is wrong with it."""
    try:
        if not path.is_file():  # a pipe can be read once
            return [path]
        with path.open("rb") as file:
            text = file.read(1 << 20)
    except (OSError, ValueError):
        return [path]
    keys = keys_of(text)
    if not keys or numbers_at(path, text) is not None:
        return [path]
    from opc.spec.instances import numbers_of

    return [path.with_stem(path.stem + suffix(keys, n)) for n in numbers_of(text.decode("utf-8", "replace"))] or [path]


def in_folder(folder: Path) -> list[Path]:
    """Return the paths of the ops whose specs stand in a folder."""
    return each(files_in(folder))


def files_in(folder: Path) -> list[Path]:
    """Return the files of specs that stand in a folder; links that lead nowhere too, of which who reads them tells."""
    found = (p for pattern in ("*.yaml", "*.yml") for p in folder.glob(pattern))
    return sorted(p for p in found if p.is_file() or (p.is_symlink() and not p.exists()))


def each(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of the ops of files, in order."""
    return [op for path in paths for op in apart(path)]
