"""Which Python runs a backend, and what is installed there, found out without starting it or importing a framework.

Frameworks that can't live together each have an environment of their own. `[tool.opc.python]` of pyproject.toml names the
interpreter of a backend; else it is that of the environment `opc env create` made for it; else the one that runs opc. A backend
gets the version of its framework (`probe`) and the folder of its headers (`build`) from here.

An environment is a folder `.opc/env/NAME` beside the pyproject.toml that holds here, with a virtual environment in it and the
record `environment.json`, which is written last: an environment without one was never finished and counts for nothing.

Every `opc build` comes through here before it knows whether there is anything to do, so this imports little.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc import config
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Availability

FOLDER = Path(".opc", "env")
"""Where a project's environments lie."""

VARIABLE = "OPC_ENVIRONMENTS"
"""Environment variable that names another folder for them, which projects may share."""

RECORD = "environment.json"
"""The file of an environment that says what it is; it is there once the environment is whole."""

MADE = "made"
"""The folder of an environment for what a program makes in it."""

HEADERS = "headers"
"""The folder of an environment for headers that are compiled ahead of what is built with it."""


@dataclass(frozen=True, slots=True)
class Record:
    """A finished environment: its name, the backends it is for, and the requirements that were installed.

    `made` is the identity of what a program made in it, empty where there is none.
    """

    name: str
    folder: Path
    backends: tuple[str, ...]
    requirements: tuple[str, ...]
    identity: str
    made: str = ""

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return python_of(self.folder)


def python_of(folder: Path) -> Path:
    """Return the interpreter of the environment in a folder."""
    return folder / "venv" / "bin" / "python"


def made(backend: str) -> Path | None:
    """Return the folder that a program made in the environment of a backend; None where there is none."""
    record = next((r for r in records() if backend in r.backends and r.made), None)
    return None if record is None else record.folder / MADE


def root() -> Path:
    """Return the folder of the environments that hold in the working directory."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    project = config.find_here()
    return (config.here() if project is None else project.parent) / FOLDER


def record_files() -> list[Path]:
    """Return the record of each finished environment."""
    return sorted(root().glob(f"*/{RECORD}"))


def records() -> tuple[Record, ...]:
    """Return the finished environments, by name."""
    found = []
    for path in record_files():
        # A file that can't be read is no record: `opc env create` writes another.
        try:
            status = path.stat()
            found.append(_read(path, status.st_mtime_ns, status.st_size))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return tuple(found)


@cache
def _read(path: Path, modified: int, size: int) -> Record:
    data = json.loads(path.read_text(encoding="utf-8"))
    identity, made = str(data["identity"]), str(data.get("made", ""))
    return Record(path.parent.name, path.parent, tuple(data["backends"]), tuple(data["requirements"]), identity, made)


def interpreter(backend: str) -> Path:
    """Return the interpreter that runs a backend.

    Raises:
        SpecError: when pyproject.toml has mistakes.
    """
    settings = config.load()
    named = settings.python.get(backend)
    if named is not None:
        return _named(named, settings)
    for record in records():
        if backend in record.backends and record.python.exists():
            return record.python
    return Path(sys.executable)


def _named(text: str, settings: config.Config) -> Path:
    """Return the interpreter a user wrote: a command of the search path, or a path from the folder of pyproject.toml."""
    path = Path(text).expanduser()
    if path.parent == Path():
        return Path(shutil.which(text) or text)
    return path if settings.path is None else settings.path.parent / path


def version(backend: str, distribution: str) -> str | None:
    """Return the version of a distribution where a backend runs, or None when it is not installed there.

    Raises:
        SpecError: when pyproject.toml has mistakes.
    """
    from importlib import metadata

    places = list(_places(interpreter(backend)))
    found = next(iter(metadata.Distribution.discover(name=distribution, path=places)), None)
    return None if found is None else found.version


def folder(backend: str, package: str) -> Path | None:
    """Return the folder of a top-level package where a backend runs, or None when there is none.

    Raises:
        SpecError: when pyproject.toml has mistakes.
    """
    python = interpreter(backend)
    if _is_own(python):
        spec = find_spec(package)
        return None if spec is None or spec.origin is None else Path(spec.origin).parent
    return next((path for place in _places(python) if (path := Path(place, package)).is_dir()), None)


def probe(backend: str, distribution: str, *, versions: str | None = None) -> Availability:
    """Return what a backend's `probe` says whose framework is one distribution that `opc env create BACKEND` installs.

    `versions` is a PEP 440 specifier of the versions that will do.
    """
    from opc.backends.base import Availability

    install = f"opc env create {backend}"
    python = interpreter(backend)
    if not python.exists():
        return Availability(False, reason=f"its interpreter {python} does not exist", install=install)
    found = version(backend, distribution)
    if found is None:
        return Availability(False, reason=f"{distribution} is not installed", install=install)
    if versions is not None:
        from packaging.specifiers import SpecifierSet

        if not SpecifierSet(versions).contains(found, prereleases=True):
            return Availability(False, found, f"{distribution} {found} is not {versions}", install)
    return Availability(True, found)


def installed() -> list[str]:
    """Return the folders that packages are installed in, here and in the environments; each changes with what it holds."""
    places = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    return places + [str(path) for path in record_files()] + [place for record in records() for place in _places(record.python)]


def _is_own(python: Path) -> bool:
    """Whether an interpreter is the running one, in the same environment: links to it from virtual environments are not."""
    return os.path.abspath(python) == os.path.abspath(sys.executable)


def _places(python: Path) -> tuple[str, ...]:
    """Return the folders an interpreter imports installed packages from."""
    if _is_own(python):
        return tuple(sys.path)
    return _foreign_places(os.path.abspath(python))


@cache
def _foreign_places(python: str) -> tuple[str, ...]:
    """Return the folders of another interpreter: a virtual environment's by its layout, any other's by asking it."""
    top = Path(python).parents[1]
    if (top / "pyvenv.cfg").is_file() and "include-system-site-packages = true" not in _text(top / "pyvenv.cfg"):
        return tuple(str(p) for p in sorted(top.glob("lib*/python*/site-packages")))
    code = "import json, sys; print(json.dumps([p for p in sys.path if p]))"
    # Isolated, so that neither this process's PYTHONPATH nor its working directory is taken for the interpreter's own.
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(json.loads(done.stdout))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def as_json(record: Mapping[str, Any]) -> str:
    """Return the text of a record file."""
    return json.dumps(record, indent=1, sort_keys=True) + "\n"
