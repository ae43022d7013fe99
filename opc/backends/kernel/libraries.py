"""Finds the headers and libraries of native code: in Python packages, by pkg-config, or where the compiler looks itself.

A spec names packages, never paths. An installed distribution knows its files, so that the include folder is the one below which a
header of the wanted name lies, and the library folder the one that holds `lib<name>`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from opc.diagnostics import Diagnostic, Span, SpecError
from opc.distribution import install
from opc.ir.op import Native
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Libraries:
    """What a compiler and a linker need: flags of each, and files that change when another version is installed."""

    compile: tuple[str, ...]
    link: tuple[str, ...]
    files: tuple[Path, ...] = ()


def find(native: Native) -> Libraries:
    """Return where the headers and libraries of native code are.

    Raises:
        SpecError: with a diagnostic for each package that is not installed, or lacks what is asked of it.
    """
    mistakes: list[Diagnostic] = []
    packages = [p for name in native.packages if (p := _package(name, native.span, mistakes)) is not None]
    headers = {folder for package in packages for name in native.include for folder in _include_folders(package, name)}
    places = {name: file for package in packages for name in native.link if (file := _library(package, name)) is not None}
    if packages and not headers and native.include:
        names = ", ".join(p.metadata["Name"] for p in packages)
        mistakes.append(Diagnostic(f"none of the headers {', '.join(native.include)} is in the package {names}", native.span))
    flags, libraries = _pkg_config(native.pkg_config, native.span, mistakes)
    if mistakes:
        raise SpecError(mistakes)
    # Other people's headers are system headers: their warnings are not the user's.
    compile_flags = [f for folder in sorted(headers) for f in ("-isystem", str(folder))]
    link_flags: list[str] = []
    for name in native.link:
        file = places.get(name)
        link_flags += [f"-l{name}"] if file is None else [str(file), f"-Wl,-rpath,{file.parent}"]
    records = [Path(str(p.locate_file(f))) for p in packages for f in p.files or () if f.name == "RECORD"]
    return Libraries((*compile_flags, *flags), (*link_flags, *libraries), tuple(records))


def _package(name: str, span: Span, mistakes: list[Diagnostic]) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        reason = f"the package {name}, which the native code needs, is not installed"
        mistakes.append(Diagnostic(reason, span, install(name)))
        return None


def _include_folders(package: metadata.Distribution, header: str) -> Iterable[Path]:
    """Yield the folders of a package from which `#include <header>` finds the file; the outermost one first."""
    wanted = PurePosixPath(header).parts
    found = [f for f in package.files or () if f.parts[-len(wanted) :] == wanted]
    for file in sorted(found, key=lambda f: len(f.parts))[:1]:
        yield Path(str(package.locate_file(file))).resolve().parents[len(wanted) - 1]


def _library(package: metadata.Distribution, name: str) -> Path | None:
    """Return the library of a package that `-l<name>` means: shared where there is one, else static."""
    endings = (".so", ".dylib", ".a")
    named = {e: f for f in package.files or () for e in endings if f.name == f"lib{name}{e}"}
    file = next((named[e] for e in endings if e in named), None)
    return None if file is None else Path(str(package.locate_file(file))).resolve()


def _pkg_config(modules: Sequence[str], span: Span, mistakes: list[Diagnostic]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the compiler's and the linker's flags for modules of pkg-config."""
    if not modules:
        return (), ()
    if shutil.which("pkg-config") is None:
        hint = "Debian, Ubuntu: sudo apt install pkg-config"
        mistakes.append(Diagnostic("pkg-config, which the native code asks for its libraries, is not installed", span, hint))
        return (), ()
    answers = []
    for what in ("--cflags", "--libs"):
        done = _run_pkg_config((what, *modules))
        if done.returncode != 0:
            first = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
            mistakes.append(Diagnostic(f"pkg-config does not know {', '.join(modules)}: {first}", span))
            return (), ()
        answers.append(tuple(done.stdout.split()))
    return answers[0], answers[1]


@cache
def _run_pkg_config(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(("pkg-config", *arguments), capture_output=True, text=True, check=False)
