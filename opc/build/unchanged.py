"""Whether a generated package is what `opc generate` would make of a spec, found out without compiling it.

After a package is generated, `build/generated.json` in it records the hash of the spec and all that its files depend on besides:
opc's own sources, other distributions' backends, the interpreter and what is installed. While all of that is still so, each file
must have the SHA-256 that the manifest gives it, and nothing has to be done. A file is read for that only if its status (inode,
size, times of the last change of content and of status) is not the one it had when it was last read, or if it was changed so
shortly before that a later change may bear the same times.

Anything unknown or unreadable means that there may be something to do. This runs before everything else, so it imports little.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.package import BUILD, MANIFEST
from opc.build import files, locks, stamp
from opc.records import dataclass
from opc.spec.files import content, file_of, numbers_at
from opc.spec.files import digest as spec_digest

if TYPE_CHECKING:
    from opc.build.generate import Generated, Prepared

NAME = f"{BUILD}/generated.json"
"""The record's path inside a package."""

_SETTLED = 50_000_000
"""Nanoseconds after which a changed file has other times than before: more than the tick by which any file system counts."""


@dataclass(frozen=True, slots=True)
class UnchangedPackage:
    """A package with nothing to do: how many files it has, and the backends that were left out of it, with why as text."""

    package: Path
    files: int
    skipped: Mapping[str, Sequence[tuple[str, str]]]


class Records:
    """The records of the packages below an output folder; what they share is looked at once."""

    def __init__(self, out: Path) -> None:
        self.out = out
        own = stamp.signatures(stamp.own_files())
        self.backends = stamp.registered()
        content = json.dumps([own, sorted(self.backends), stamp.settings(), stamp.project()], sort_keys=True)
        self.shared = hashlib.sha256(content.encode()).hexdigest()

    def find(self, spec: Path, backends: Sequence[str] | None) -> UnchangedPackage | None:
        """Return the package of a spec if it holds these backends, None for all, and nothing has to be done; else None."""
        try:
            text = content(spec)
            name = stamp.op_of(spec, text)
            if name is None:
                return None
            package = self.out / name
            record = json.loads((package / NAME).read_text(encoding="utf-8"))
            listed = (package / MANIFEST).read_bytes()
            current = (
                record["spec"] == [file_of(spec).name, spec_digest(text, numbers_at(spec, text))]
                and record["shared"] == self.shared
                and record["manifest"] == hashlib.sha256(listed).hexdigest()
                and stamp.signatures(record["sources"]) == record["sources"]
            )
            if not current:
                return None
            manifest = json.loads(listed)
            skipped = record["skipped"] if backends is None else {}
            if not {*(self.backends if backends is None else backends)} <= {*manifest["backends"], *skipped}:
                return None
            status = _checked(package, manifest["files"], record["status"])
            if status is None:
                return None
            if status != record["status"]:
                self._write(package, {**record, "status": status})
            return UnchangedPackage(package, len(manifest["files"]), skipped)
        except stamp.UNREADABLE:
            return None

    def keep(self, prepared: Prepared, made: Generated) -> None:
        """Record a package that was just generated; the caller holds the lock of the output folder."""
        record = {
            "spec": [prepared.family.source_name, prepared.family.source_hash],
            "shared": self.shared,
            "manifest": hashlib.sha256((made.package / MANIFEST).read_bytes()).hexdigest(),
            "sources": stamp.signatures(stamp.foreign_files(made.backends)),
            "skipped": {name: [(d.severity.value, d.render()) for d in reasons] for name, reasons in made.skipped.items()},
            "status": {},
        }
        files.write(made.package / NAME, _text(record), made.package / BUILD)

    def _write(self, package: Path, record: Mapping[str, Any]) -> None:
        """Write a record again, unless somebody is at work in the output folder or nothing can be written there."""
        from opc.diagnostics import SpecError

        with contextlib.suppress(OSError, SpecError), locks.hold_now(self.out / locks.FOLDER) as held:
            if held:
                files.write(package / NAME, _text(record), package / BUILD)


def _checked(package: Path, digests: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, list[int]] | None:
    """Return the status of each file by which it is known again; None when one is not what it should be."""
    found: dict[str, list[int]] = {}
    for path, digest in digests.items():
        place = os.path.join(package, path)
        s = os.stat(place)
        status = [s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns]
        if status != known.get(path):
            now = time.time_ns()
            if stamp.digest(place) != digest:
                return None
            if now - max(s.st_mtime_ns, s.st_ctime_ns) < _SETTLED:
                continue
        found[path] = status
    return found


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True) + "\n"
