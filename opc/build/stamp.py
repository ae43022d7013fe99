"""Whether anything a build depends on has changed since it last succeeded, found out without loading a spec or a backend.

After a build, `build/stamp.json` of the package records the spec's hash, the settings that count, what is installed, and the size
and modification time of every file the build read or made: the generated files, the libraries, opc's own sources and headers,
other backends' sources, the compiler. While all of it is still so, there is nothing to do. Anything unknown or unreadable means
"not fresh", and the full path decides. This runs before everything else, so it imports little.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opc import config
from opc.backends import environments
from opc.backends.package import MANIFEST
from opc.names import op_name
from opc.spec.files import content, keys_of, numbers_at, suffix
from opc.spec.files import digest as spec_digest

NAME = "build/stamp.json"
"""The stamp's path inside a package."""

SETTINGS = (
    *("CXX", "CXXFLAGS", "LDFLAGS", "PATH", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "OPC_VARIANT", "OPC_OPTIMIZE"),
    *("CUDA_HOME", "OPC_CUDA"),
)
"""Environment variables that change what a compiler does or which one is found."""

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading JSON that should be opc's own may raise, where it is something else."""

_NAME = re.compile(rb"^op:[ \t]*[\"']?([A-Za-z][A-Za-z0-9_]*)", re.MULTILINE)


def fresh_package(spec: Path, out: Path, backends: Sequence[str] | None) -> Path | None:
    """Return the package of `spec` below `out` if it is built for these backends and nothing changed since, else None.

    None for `backends` means every registered one.
    """
    try:
        text = content(spec)
        # The name only says where to look; the hash of the whole text shows that it is this spec's package.
        name = op_of(spec, text)
        if name is None:
            return None
        package = out / name
        stamp = _current(package, spec_digest(text, numbers_at(spec, text)))
        if stamp is None:
            return None
        # A backend that could not be built is left out of "all", as it was; naming it shows why.
        wanted = {*registered()} - {*stamp["left_out"]} if backends is None else {*backends}
        return package if wanted <= {*stamp["backends"]} else None
    except UNREADABLE:
        return None


def op_of(spec: Path, text: bytes) -> str | None:
    """Return the name of the op that a spec's path and text describe, without parsing it; None where it is not seen at once."""
    found = _NAME.search(text)
    numbers = numbers_at(spec, text)
    return None if found is None else op_name(found[1].decode() + ("" if numbers is None else suffix(keys_of(text), numbers)))


def _current(package: Path, spec_hash: str, but: frozenset[str] = frozenset()) -> dict[str, Any] | None:
    """Return a package's stamp if the spec is the same and no file but some named ones changed since, else None.

    Raises:
        UNREADABLE: when there is no stamp, or none of ours.
    """
    stamp: dict[str, Any] = json.loads((package / NAME).read_text(encoding="utf-8"))
    same = (
        stamp["spec"] == spec_hash
        and stamp["settings"] == settings()
        and set(own_files()) <= set(stamp["files"])
        and all(signature(path) == known for path, known in stamp["files"].items() if path not in but)
    )
    return stamp if same else None


def text(
    package: Path,
    spec_hash: str,
    backends: Iterable[str],
    left_out: Iterable[str],
    signatures: Mapping[str, str],
    made: Iterable[str],
) -> str:
    """Return the stamp of a build of `package` that just succeeded.

    `left_out` are backends that could not be built on this machine; `signatures` are those of every file the build read or made,
    by absolute path; `made` are the paths of those that compilers made. What an earlier build made for other backends stays
    known, if it is still what it was.
    """
    data = {
        "backends": [*backends],
        "digests": {path: digest(path) for path in made},
        "files": dict(signatures),
        "left_out": [*left_out],
    }
    with contextlib.suppress(*UNREADABLE):
        # The list of files alone changes when a backend is added.
        earlier = _current(package, spec_hash, frozenset({os.path.abspath(package / MANIFEST)}))
        if earlier is not None:
            data = {name: _joined(earlier[name], value) for name, value in data.items()}
    data = {name: sorted(value) if isinstance(value, list) else value for name, value in data.items()}
    return json.dumps({**data, "settings": settings(), "spec": spec_hash}, indent=1, sort_keys=True) + "\n"


def _joined(earlier: Any, new: Any) -> Any:
    return {**earlier, **new} if isinstance(new, dict) else [*{*earlier, *new}]


def signatures(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the signature of each file by its absolute path."""
    return {path: signature(path) for path in (os.path.abspath(p) for p in paths)}


def signature(path: str) -> str:
    """Return the signature of a file: size and modification time; "absent" when there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return "absent"
    return f"{status.st_size}:{status.st_mtime_ns}"


def digest(path: str) -> str:
    """Return the SHA-256 of a file's bytes; "absent" when there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return "absent"


def discard_damaged(package: Path) -> None:
    """Remove the built files of a package that were changed since they were made, so that the build system makes them again.

    It goes by modification times alone: a library that a full disk or a crash of the machine cut short is newer than its sources.
    """
    try:
        known = json.loads((package / NAME).read_text(encoding="utf-8"))
        made = {path: known["files"][path] for path in known["digests"]}
    except UNREADABLE:
        return
    # Somebody else may have written the stamp: nothing outside of the package is removed.
    inside = os.path.join(os.path.realpath(package), "")
    for path, before in made.items():
        own = os.path.realpath(os.path.dirname(path)).startswith(inside)
        if own and signature(path) not in (before, "absent") and not os.path.isdir(path):
            os.unlink(path)


def project() -> str:
    """Return the signature of the pyproject.toml that holds here, whose settings some backends generate by."""
    path = config.find_here()
    return "" if path is None else signature(str(path))


def settings() -> str:
    """Return a digest of what counts besides files' contents.

    That is the interpreter, environment variables, which pyproject.toml holds, whether there are nvcc and a GPU, and the state of
    the folders that packages are installed in, whose frameworks' headers a build may read.
    """
    programs = [os.path.join(folder, "nvcc") for folder in os.environ.get("PATH", "").split(os.pathsep)]
    values = [
        sys.executable,
        sys.version,
        str(config.find_here()),
        *(f"{path}={os.path.exists(path)}" for path in ("/dev/nvidia0", *programs)),
        *(f"{name}={os.environ.get(name, '')}" for name in SETTINGS),
        *(f"{place}={installed(place)}" for place in environments.installed()),
    ]
    return hashlib.sha256("\0".join(values).encode(errors="surrogateescape")).hexdigest()


def installed(place: str) -> str:
    """Return the signature of a folder that packages are installed in, or of a file.

    That is the names of what lies there, and when each distribution was put there. Byte code is no part of it, which the first
    import of a module leaves beside it.
    """
    try:
        entries = [*os.scandir(place)]
    except NotADirectoryError:
        return signature(place)
    except FileNotFoundError:
        return "absent"
    told = (f"{e.name}:{e.stat().st_mtime_ns}" if e.name.endswith(".dist-info") else e.name for e in entries)
    return "\0".join(sorted(name for name in told if name != "__pycache__"))


def registered() -> tuple[str, ...]:
    """Return the names of all registered backends, as `opc.backends.registry` does, without what that imports."""
    from importlib.metadata import entry_points  # it imports what parses mail, which who names its backends can spare

    return tuple(entry.name for entry in entry_points(group="opc.backends"))


def own_files() -> list[str]:
    """Return the path of every source, template and header of opc."""
    package = Path(__file__).absolute().parents[1]
    return [*files_below(package), *files_below(package.parent / "runtime" / "include")]


def foreign_files(backends: Iterable[object]) -> list[str]:
    """Return the path of every file that backends of other distributions are made of."""
    sources = (getattr(sys.modules[type(b).__module__], "__file__", None) for b in backends)
    folders = dict.fromkeys(Path(source).parent for source in sources if source is not None)
    own = Path(__file__).absolute().parents[1]
    return [file for folder in folders if not folder.is_relative_to(own) for file in files_below(folder)]


def files_below(root: Path) -> list[str]:
    """Return the path of every file below `root` but byte code and editors' backups."""
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != "__pycache__"]
        found += [os.path.join(folder, name) for name in names if not name.endswith((".pyc", ".swp", "~"))]
    return found
