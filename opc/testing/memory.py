"""What passed before, on the same bytes: an op that nothing has changed for is not proved again.

For each op and backend, a file below the output folder keeps the results of a run in which all was right, under a hash of
everything that counts: the package's files and the commands that built it, opc's own sources and headers, the backend's sources,
the compiler, the interpreter, what is installed beside it, settings, and the machine's instruction set. A hash that differs in
anything, or can't be taken, is a run. Failures are never kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from opc.backends.package import BUILD
from opc.build import stamp
from opc.build.locks import FOLDER
from opc.build.ninja import FILE, IDENTITY
from opc.testing.cover import digest
from opc.testing.extent import Extent
from opc.testing.results import Result, Status

VARIABLES = ("OMP_NUM_THREADS", "OPC_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPC_ENVIRONMENTS", "PYTHONPATH")
"""Environment variables that a worker may answer differently with, beside those that a build depends on."""


class Memory:
    """The outcomes kept below an output folder. What all keys share is hashed once, before anything runs."""

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / FOLDER / "passed"
        shared = [digest(stamp.own_files()), stamp.settings(), *_machine(), *(f"{n}={os.environ.get(n, '')}" for n in VARIABLES)]
        self.shared = "\0".join([*shared, _text(out / IDENTITY)])

    def key(self, package: Path, backend: str, python: str, entry: str, extent: Extent = Extent.WHOLE) -> str | None:
        """Return the hash of all that a backend's outcomes on a package depend on; None when it can't be taken.

        `entry` is the class of the backend as `module:name`, empty for the oracle. `extent` is how much of the proof is run.
        """
        try:
            parts = [
                backend,
                python,
                entry,
                extent.value,
                self.shared,
                digest(_package_files(package)),
                *_installed(python),
            ]
            if entry:
                source = getattr(sys.modules[entry.partition(":")[0]], "__file__", None)
                parts.append(digest(stamp.files_below(Path(str(source)).parent)))
        except (OSError, LookupError):
            return None
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()

    def recall(self, op: str, backend: str, key: str | None) -> tuple[str, list[Result]] | None:
        """Return the framework's version and the results of a run with this key in which all was right, if there was one."""
        try:
            kept = json.loads(self._file(op, backend).read_text(encoding="utf-8"))
            if key is None or kept["key"] != key:
                return None
            return str(kept["version"]), [Result.from_dict(r) for r in kept["results"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, op: str, backend: str, key: str | None, version: str, results: Iterable[Result]) -> None:
        """Keep the results of a run, if all that ran was right and something ran; a full disk is no reason to fail."""
        found = list(results)
        right = any(r.status in (Status.PASSED, Status.EMULATED) for r in found)
        whole = not any(r.status is Status.FAILED or (r.kind == "load" and r.status is Status.NOT_RUN) for r in found)
        place = self._file(op, backend)
        with contextlib.suppress(OSError):
            if key is not None and right and whole:
                place.parent.mkdir(parents=True, exist_ok=True)
                partial = place.with_suffix(f".{os.getpid()}")
                partial.write_text(json.dumps({"key": key, "version": version, "results": [r.as_dict() for r in found]}))
                partial.replace(place)
            else:
                place.unlink(missing_ok=True)

    def _file(self, op: str, backend: str) -> Path:
        return self.folder / f"{op}.{backend}.json"


def _machine() -> Iterator[str]:
    """Yield what identifies the instruction sets of this machine's processor."""
    yield platform.machine()
    yield next((line for line in _text(Path("/proc/cpuinfo")).splitlines() if line.startswith("flags")), "")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _package_files(package: Path) -> Iterator[str]:
    """Yield the files of a package and the commands that build it, without what was built: that follows from these.

    Native code reads libraries that are not the package's: there the stamp of the build counts, which knows every file it read.
    """
    native = "_native" in _text(package / BUILD / FILE)
    for path in stamp.files_below(package):
        inside = Path(path).relative_to(package).parts
        if inside[0] != BUILD or inside == (BUILD, FILE) or (native and path.endswith(stamp.NAME)):
            yield path


def _installed(python: str) -> list[str]:
    """Return what is installed for an interpreter, by name and version and when it was put there.

    Raises:
        LookupError: when that can't be found out.
    """
    found = [*Path(python).parent.parent.glob("lib*/python*/site-packages/*.dist-info")]
    if python == sys.executable:
        found += [entry for place in sys.path if place for entry in Path(place).glob("*.dist-info")]
    if not found:
        raise LookupError(python)
    return sorted({f"{entry.name}:{entry.stat().st_mtime_ns}" for entry in found})


__all__ = ["Memory"]
