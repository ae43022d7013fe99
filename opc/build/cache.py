"""The cache of `opc.load`: one folder an entry, holding a copy of the spec and the package built from it.

An entry's folder is named after its spec and a digest of everything it depends on. The modification time of the copy of its
spec says when it was last used. The cache is held below `limit()`: a new entry makes room by removing the least recently used
ones. Whoever has a library of a removed entry open keeps it, as the file system has it, and builds again what it lacks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from opc.build import files, stamp
from opc.diagnostics import Diagnostic, SpecError
from opc.records import dataclass

LIMIT = 4 << 30
"""Bytes that the cache may hold, unless `OPC_CACHE_LIMIT` says otherwise."""

_KEY_LENGTH = 20
_ENTRY = re.compile(rf"[A-Za-z0-9_]*-[0-9a-f]{{{_KEY_LENGTH}}}")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class Entry:
    """One spec's folder: the name of the spec's file, its size in bytes, when it was last used in seconds since the epoch."""

    folder: Path
    spec: str
    size: int
    used: float


OTHER_FOLDER = "set OPC_CACHE_DIR to a folder that can be written"
"""What to do where the cache can't be written: the hint."""


def folder() -> Path:
    """Return the folder of the cache, making it where it is missing.

    It is `$OPC_CACHE_DIR`, else `$XDG_CACHE_HOME/opc`, else `~/.cache/opc`. A relative `$XDG_CACHE_HOME` counts for nothing, as
    the XDG Base Directory Specification says.

    Raises:
        SpecError: when it can't be made.
    """
    named = os.environ.get("OPC_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        shared = Path(home) if home and os.path.isabs(home) else None
        place = Path(named).expanduser() if named else (shared or Path.home() / ".cache") / "opc"
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        hint = OTHER_FOLDER
        raise SpecError([Diagnostic(f"cannot make the cache folder: {error}", hint=hint)]) from error
    return place.absolute()


def limit() -> int:
    """Return how many bytes the cache may hold: `OPC_CACHE_LIMIT`, such as `500M` or `2G`, else `LIMIT`.

    Raises:
        SpecError: when the variable holds something else.
    """
    text = os.environ.get("OPC_CACHE_LIMIT")
    return LIMIT if not text else size(text, "OPC_CACHE_LIMIT")


def size(text: str, where: str) -> int:
    """Return a number of bytes, given as a number and perhaps one of the units K, M, G, T.

    Raises:
        SpecError: when the text is something else; `where` says in the message where it stands.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise SpecError([Diagnostic(f"{where} is '{text}', which is no size", hint="write a number of bytes, 500M or 2G")])
    return int(float(match[1]) * _UNITS[match[2].upper()])


def place(name: str, text: bytes) -> Path:
    """Return the folder of the entry of a spec: one for each spec, file name, version of opc, and interpreter.

    A changed compiler needs no folder of its own: the build system sees it and rebuilds.
    """
    content = hashlib.sha256()
    for part in (name, sys.version, sys.prefix, platform.machine()):
        content.update(part.encode(errors="surrogateescape") + b"\0")
    content.update(text)
    for own in sorted(stamp.own_files()):
        content.update(Path(own).read_bytes())
    stem = re.sub(r"[^A-Za-z0-9_]", "_", Path(name).stem)[:40]
    return folder() / f"{stem}-{content.hexdigest()[:_KEY_LENGTH]}"


def key(entry: Path) -> str:
    """Return the digest in an entry's name, which distinguishes entries of the same spec name."""
    return entry.name[-_KEY_LENGTH:]


def keep_spec(entry: Path, name: str, text: bytes) -> Path:
    """Write the spec into its entry where it is not there yet, note that it is used now, and return its place there.

    A framework's module may be built much later, when the user's file says something else.

    Raises:
        SpecError: when it can't be written.
    """
    copy = entry / name
    if files.read(copy) is None:
        from opc.build import locks

        with locks.hold(entry / locks.FOLDER):
            files.write(copy, text.decode("utf-8"), entry / locks.FOLDER)
        return copy
    # Where it is another user's, it counts as used when it was made.
    with contextlib.suppress(OSError):
        os.utime(copy)
    return copy


def entries() -> list[Entry]:
    """Return what the cache holds, the last used first. Whatever else lies in its folder is left alone."""
    found = []
    for path in folder().iterdir():
        if _ENTRY.fullmatch(path.name) and path.is_dir():
            specs = [p for p in path.iterdir() if p.is_file()]
            used = specs[0].stat().st_mtime if specs else path.stat().st_mtime
            found.append(Entry(path, specs[0].name if specs else path.name, _bytes_below(path), used))
    return sorted(found, key=lambda e: (-e.used, e.folder.name))


def damaged(entry: Entry) -> Iterator[Path]:
    """Yield the built files of an entry that are not what the compiler made: missing, cut short or changed."""
    for path in entry.folder.glob(f"*/{stamp.NAME}"):
        try:
            digests = json.loads(path.read_text(encoding="utf-8"))["digests"]
        except stamp.UNREADABLE:
            yield path
            continue
        yield from (Path(name) for name, digest in digests.items() if stamp.digest(name) != digest)


def remove(chosen: Iterable[Entry], busy: Callable[[Entry], None] | None = None) -> int:
    """Remove entries and return how many bytes that frees; one that is being built is left, after a call of `busy`.

    Raises:
        SpecError: when the file system refuses.
    """
    import shutil

    from opc.build import locks

    freed = 0
    for entry in chosen:
        try:
            with locks.hold_now(entry.folder / locks.FOLDER) as held:
                if not held:
                    if busy is not None:
                        busy(entry)
                    continue
                # Its name is free at once; whoever waits for the lock sees that the file is gone and makes another.
                doomed = entry.folder.with_name(f".removed-{os.getpid()}-{entry.folder.name}")
                entry.folder.rename(doomed)
            shutil.rmtree(doomed)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise files.failure("remove", entry.folder, error) from error
        freed += entry.size
    return freed


def unused(most: int | None = None, days: float | None = None, but: Path | None = None) -> list[Entry]:
    """Return the entries to remove so that at most `most` bytes stay, and none that was not used for `days`; never `but`."""
    chosen, total = [], 0
    for entry in entries():
        total += entry.size
        old = days is not None and time.time() - entry.used > days * 86400
        if entry.folder != but and (old or (most is not None and total > most)):
            chosen.append(entry)
            total -= entry.size
    return chosen


def make_room(entry: Path) -> None:
    """Remove what was not used for longest while the cache holds more than its limit; `entry` stays."""
    remove(unused(limit(), but=entry))


def _bytes_below(root: Path) -> int:
    total = 0
    for at, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(at, name)).st_size
            except FileNotFoundError:
                continue
    return total
