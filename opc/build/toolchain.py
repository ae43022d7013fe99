"""The C++17 compiler and opc's runtime headers on this machine.

Any compiler that takes GCC's options will do: `$CXX`, `cxx` under `[tool.opc]` in pyproject.toml, or the first that works of g++,
clang++ and c++, with and without a version in the name. For another machine it is one of these with that machine's name before
its own, as `aarch64-linux-gnu-g++`.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from opc.backends.kernel import target as targets
from opc.backends.kernel.exact import EXACT_FLAGS, EXACT_LINK_FLAGS
from opc.backends.kernel.target import Target, machine_named, target
from opc.config import Config
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import NAME
from opc.records import dataclass, replace

INSTALL = (
    "Debian, Ubuntu: sudo apt install g++; Fedora: sudo dnf install gcc-c++; macOS: xcode-select --install; "
    "conda: conda install cxx-compiler"
)
"""How to get a compiler: the hint where none is found."""

_VERSIONS = range(20, 8, -1)
NAMES: tuple[str, ...] = (
    "g++", "clang++", "c++", *(f"g++-{v}" for v in _VERSIONS), *(f"clang++-{v}" for v in _VERSIONS),
)  # fmt: skip
"""The names a compiler is looked for under, the preferred first."""

CXX_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", *EXACT_FLAGS)
SILENT_FLAGS = ("-w", "-Wno-pedantic")
"""Nobody is shown warnings about generated code and frameworks' headers, and a user's `-Werror` is not meant for them."""
# C is only the glue between Python and kernels, which -O2 takes twice as long over and makes no faster.
C_FLAGS = ("-x", "c", "-std=c11", "-O1", "-fPIC", "-fvisibility=hidden")

_PROBE = """
template <class... T> constexpr auto total(T... v) { return (v + ... + 0); }
extern "C" double opc_probe(double x) {
  if constexpr (total(1, 2) == 3) return x < 0 ? 0 : x;
  return x;
}
"""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler that works here.

    `command` is the compiler with arguments that are always given; `identity` identifies this compiler: its path and
    what it says its version is. `cxx_flags`, `c_flags` and `link_flags` hold what is added to every call. `precompiles` when it
    takes a compiled header for one that a source includes, as GCC does.
    """

    command: tuple[str, ...]
    identity: str
    cxx_flags: tuple[str, ...]
    c_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    precompiles: bool = False


_WORKING: dict[tuple[object, ...], Toolchain] = {}
"""Compilers that worked in this process, by all that they were tried with: `opc.load` builds many packages in one."""


def runtime_include() -> Path:
    """Return the folder of the runtime headers: in the installed package, or in the source tree opc is run from.

    Raises:
        SpecError: when neither holds them.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "runtime" / "include", package.parent / "runtime" / "include"):
        if (folder / "opc" / "abi.h").is_file():
            return folder
    raise SpecError([Diagnostic(f"opc's runtime headers are missing beside {package}", hint=f"reinstall {NAME}")])


def candidates(config: Config) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the compiler commands to try, and who named them; only the first when the user named one."""
    if named := os.environ.get("CXX", "").strip():
        try:
            command = tuple(shlex.split(named))
        except ValueError as error:
            raise SpecError([Diagnostic(f"$CXX is '{named}', which is no command: {error}")]) from error
        yield command, "$CXX"
    elif config.cxx:
        yield tuple(shlex.split(config.cxx)), f"[tool.opc] cxx in {config.path}"
    else:
        built = target()
        prefix = "" if built.is_here or built.system != "linux" else f"{built.machine}-linux-gnu-"
        for name in NAMES:
            yield (f"{prefix}{name}",), "the search path"


def find(config: Config) -> Toolchain:
    """Return the compiler to use, after having it compile and link a few lines of C++17.

    Raises:
        SpecError: when there is none; the diagnostic tells what to install, or what the named compiler answered.
    """
    refused: list[Diagnostic] = []
    named = False
    install = INSTALL if target().is_here else targets.INSTALL
    for command, origin in candidates(config):
        named = origin != "the search path"
        path = shutil.which(command[0])
        if path is None:
            if named:
                raise SpecError([Diagnostic(f"the compiler '{command[0]}' of {origin} was not found", hint=install)])
            continue
        found = _probe((path, *command[1:]), config)
        if isinstance(found, Toolchain):
            return found
        refused.append(replace(found, message=f"'{shlex.join(command)}' of {origin} {found.message}", hint=found.hint or install))
        if named:
            break
    if refused:
        raise SpecError(refused)
    where = "" if target().is_here else f" for {target().machine}"
    raise SpecError([Diagnostic(f"no C++ compiler{where} was found; opc needs one that knows C++17", hint=install)])


def _probe(command: tuple[str, ...], config: Config) -> Toolchain | Diagnostic:
    """Return the toolchain of a compiler, or what it says instead of compiling."""
    built = target()
    machine = _machine_flags(built)
    flags = (*machine, *_from_environment("CXXFLAGS"), *config.cxxflags)
    link = (*_link_flags(built), *machine, *_from_environment("LDFLAGS"), *EXACT_LINK_FLAGS)
    try:
        status = os.stat(command[0])
        key = (command, status.st_ino, status.st_size, status.st_mtime_ns, flags, link, built, os.environ.get("PATH"))
        if key in _WORKING:
            return _WORKING[key]
        with tempfile.TemporaryDirectory(prefix="opc-probe-") as folder:
            source = Path(folder, "probe.cpp")
            source.write_text(_PROBE)
            call = [*command, *CXX_FLAGS, *flags, *EXACT_FLAGS, *link, str(source), "-o", str(Path(folder, "probe.so"))]
            done = subprocess.run(call, capture_output=True, text=True, errors="replace", timeout=120)
            if done.returncode != 0:
                said = _first_line(done.stderr) or f"exit status {done.returncode}"
                return Diagnostic(f"cannot compile C++17: {said}", hint=_given_flags(config))
        made = _machine(command, machine)
        if made in targets.MACHINES and made != built.machine:
            hint = f"`opc package --target {made}` builds for {made}" if built.is_here else ""
            return Diagnostic(f"makes code for {made}, and not for {built.machine}", hint=hint)
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Diagnostic(f"cannot compile C++17: {error}")
    said = _first_line(version.stdout)
    gcc = "Free Software Foundation" in version.stdout
    cxx_flags = (*CXX_FLAGS, *vector_math(said), *flags, *SILENT_FLAGS, *EXACT_FLAGS)
    return _WORKING.setdefault(
        key, Toolchain(command, f"{shlex.join(command)}\n{said}", cxx_flags, (*C_FLAGS, *machine), link, gcc)
    )


def _from_environment(name: str) -> tuple[str, ...]:
    """Return the flags that an environment variable holds.

    Raises:
        SpecError: when its quotes are not closed.
    """
    text = os.environ.get(name, "")
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise SpecError([Diagnostic(f"${name} is {text!r}, which is no list of flags: {error}")]) from error


def _given_flags(config: Config) -> str:
    """Return who gives a compiler flags, and which; empty where nobody does."""
    given = [(f"${name}", text) for name in ("CXXFLAGS", "LDFLAGS") if (text := os.environ.get(name, "").strip())]
    if config.cxxflags:
        given.append((f"[tool.opc] cxxflags in {config.path}", shlex.join(config.cxxflags)))
    return "; ".join(f"it was called with {text!r} of {who}" for who, text in given)


def _machine_flags(built: Target) -> tuple[str, ...]:
    """Return what has a compiler make code for a machine: that for macOS knows all of Apple's, others are for one."""
    if built.system != "macosx" or built.is_here:
        return ()
    return ("-arch", "arm64" if built.machine == targets.AARCH64 else built.machine)


def _link_flags(built: Target) -> tuple[str, ...]:
    """Return what has a compiler link a library. Python's own symbols come from the process that loads it."""
    if built.system == "macosx":
        return ("-dynamiclib", "-undefined", "dynamic_lookup")
    return ("-shared",)


def _machine(command: tuple[str, ...], flags: tuple[str, ...]) -> str:
    """Return the machine that a compiler makes code for; empty where it does not say."""
    said = subprocess.run([*command, *flags, "-dumpmachine"], capture_output=True, text=True, errors="replace", timeout=60)
    return machine_named(said.stdout.strip().partition("-")[0])


def vector_math(version: str) -> tuple[str, ...]:
    """Return what makes a compiler of this version call glibc's vector variants of sin and cos, which g++ learns from math.h."""
    clang = re.match(r"(?:[A-Z]\w* )?clang version (\d+)", version)
    built = target()
    known = (
        clang is not None
        and int(clang[1]) >= 12
        and built.is_x86
        and built.system == "linux"
        and platform.libc_ver()[0] == "glibc"
    )
    return ("-fveclib=libmvec",) if known else ()


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line]
    return (errors or lines or [""])[0].strip()
