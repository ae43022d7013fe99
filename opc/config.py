"""`[tool.opc]` of the user's pyproject.toml: which compiler to build with, and which interpreters run which backends.

`[tool.opc.popart] sdk = "3.2"` says which version of Graphcore's SDK code is generated for, and
`[tool.opc.cuda] architectures = ["sm_90"]` which GPUs kernels are compiled for. `[tool.opc.package]` is for `opc package`:
`specs`, `backends` and `proof`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from opc.diagnostics import Diagnostic, SpecError, did_you_mean
from opc.records import dataclass

KEYS = ("cuda", "cxx", "cxxflags", "package", "popart", "python")

SDKS = ("2.5", "2.6", "3.0", "3.1", "3.2", "3.3", "3.4")
"""The versions of Graphcore's SDK that code can be generated for."""

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121")
"""The architectures of GPUs that kernels can be compiled for."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """What `opc package` takes where the command line says nothing else; paths are relative to the folder of the file.

    `specs` are spec files and folders of them, `backends` the names of backends, None for all that can be built, and `proof` what
    `opc test --results` wrote.
    """

    specs: tuple[str, ...] = ("specs",)
    backends: tuple[str, ...] | None = None
    proof: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """The user's settings; every one has a default, so that no file is needed.

    `cxx` is the compiler's command, `cxxflags` is added to every C++ compilation, `python` maps a backend's name to the
    interpreter that has its framework. `sdk` is the version of Graphcore's SDK to generate for. `architectures` are the GPUs to
    compile kernels for, none for this machine's. `package` is what a wheel holds. `path` is the file that they come from.
    """

    path: Path | None = None
    cxx: str = ""
    cxxflags: tuple[str, ...] = ()
    python: Mapping[str, str] = field(default_factory=dict)
    sdk: str = SDKS[-1]
    architectures: tuple[str, ...] = ()
    package: Wheel = Wheel()


def find(start: Path) -> Path | None:
    """Return the nearest pyproject.toml in `start` or a folder above it, or None."""
    found = _find(str(start))
    return None if found is None else Path(found)


def here() -> Path:
    """Return the working directory, or the root where it was removed beneath the process: nothing holds there."""
    return Path(_here())


def find_here() -> Path | None:
    """Return the nearest pyproject.toml in the working directory or above it, or None."""
    return find(here())


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.sep


def _find(folder: str) -> str | None:
    # Asked often: paths as text take a quarter of the time.
    while not os.path.isfile(found := os.path.join(folder, "pyproject.toml")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None
    return found


def load(start: Path | None = None) -> Config:
    """Return the settings that hold in `start`, by default the working directory.

    Raises:
        SpecError: with every mistake of `[tool.opc]`, or the TOML parser's message.
    """
    path = _find(_here() if start is None else str(start.absolute()))
    if path is None:
        return Config()
    try:
        status = os.stat(path)
    except OSError as error:
        raise SpecError([Diagnostic(f"cannot read {path}: {error}")]) from error
    return _read(path, status.st_mtime_ns, status.st_size)


@cache
def _read(place: str, modified: int, size: int) -> Config:
    """Return the settings of a file; `modified` and `size` tell one state of it from another."""
    import tomllib

    path = Path(place)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError([Diagnostic(f"cannot read {path}: {error}")]) from error
    tool = data.get("tool", {})
    table = tool.get("opc", {}) if isinstance(tool, dict) else {}
    mistakes = _mistakes(table, path)
    if mistakes:
        raise SpecError(mistakes)
    sdk = table.get("popart", {}).get("sdk", SDKS[-1])
    architectures = tuple(table.get("cuda", {}).get("architectures", ()))
    flags = tuple(table.get("cxxflags", ()))
    wheel = table.get("package", {})
    named = tuple(wheel["backends"]) if "backends" in wheel else None
    package = Wheel(tuple(wheel.get("specs", Wheel().specs)), named, wheel.get("proof", ""))
    return Config(path, table.get("cxx", ""), flags, dict(table.get("python", {})), sdk, architectures, package)


def control_character(value: object) -> str | None:
    """Return the first control character in the texts of TOML's values, which no argument, name or header can hold; or None."""
    match value:
        case str():
            found = re.search(r"[\x00-\x1f\x7f]", value)
            return None if found is None else found[0]
        case dict():
            return next((c for pair in value.items() for v in pair if (c := control_character(v)) is not None), None)
        case list():
            return next((c for v in value if (c := control_character(v)) is not None), None)
        case _:
            return None


def _mistakes(table: Any, path: Path) -> list[Diagnostic]:
    if not isinstance(table, dict):
        return [Diagnostic(f"{path}: [tool.opc] must be a table")]
    if (control := control_character(table)) is not None:
        return [Diagnostic(f"{path}: a text in [tool.opc] can't hold the character #x{ord(control):02x}")]
    found: list[Diagnostic] = []
    for key in table:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f"the keys are {', '.join(KEYS)}"
            found.append(Diagnostic(f"{path}: unknown key '{key}' in [tool.opc]", hint=hint))
    if not isinstance(table.get("cxx", ""), str):
        found.append(Diagnostic(f"{path}: cxx in [tool.opc] must be a string"))
    elif "cxx" in table and not _is_command(table["cxx"]):
        found.append(Diagnostic(f"{path}: cxx in [tool.opc] is no command", hint='as in cxx = "g++-12 -m64"'))
    flags = table.get("cxxflags", [])
    if not (isinstance(flags, list) and all(isinstance(f, str) for f in flags)):
        found.append(Diagnostic(f"{path}: cxxflags in [tool.opc] must be a list of strings"))
    pythons = table.get("python", {})
    if not (isinstance(pythons, dict) and all(isinstance(p, str) for p in pythons.values())):
        found.append(Diagnostic(f"{path}: [tool.opc.python] must map backends to interpreters"))
    cuda = table.get("cuda", {})
    if not (isinstance(cuda, dict) and cuda.keys() <= {"architectures"} and isinstance(cuda.get("architectures", []), list)):
        found.append(Diagnostic(f"{path}: [tool.opc.cuda] has one key, architectures, a list"))
    elif unknown := [a for a in cuda.get("architectures", []) if a not in ARCHITECTURES]:
        hint = f"the architectures are {', '.join(ARCHITECTURES)}"
        found.append(Diagnostic(f"{path}: '{unknown[0]}' in [tool.opc.cuda] is no architecture of a GPU", hint=hint))
    found += _package_mistakes(table.get("package", {}), path)
    popart = table.get("popart", {})
    if not (isinstance(popart, dict) and popart.keys() <= {"sdk"}):
        found.append(Diagnostic(f"{path}: [tool.opc.popart] has one key, sdk"))
    elif popart and popart["sdk"] not in SDKS:
        hint = f"the versions are {', '.join(SDKS)}"
        found.append(Diagnostic(f"{path}: sdk in [tool.opc.popart] is no version that opc generates for", hint=hint))
    return found


def _is_command(text: str) -> bool:
    import shlex

    try:
        return bool(shlex.split(text))
    except ValueError:  # a quote without an end
        return False


def _package_mistakes(package: Any, path: Path) -> list[Diagnostic]:
    if not isinstance(package, dict) or not package.keys() <= {"specs", "backends", "proof"}:
        return [Diagnostic(f"{path}: [tool.opc.package] has the keys specs, backends and proof")]
    found = []
    for key in ("specs", "backends"):
        value = package.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            found.append(Diagnostic(f"{path}: {key} in [tool.opc.package] must be a list of strings"))
    if not isinstance(package.get("proof", ""), str):
        found.append(Diagnostic(f"{path}: proof in [tool.opc.package] must be a string"))
    return found
