"""Where Graphcore's SDK is: a real one that is enabled, or the emulation of it that `opc env create popart` builds.

A real SDK is enabled by sourcing its two `enable.sh`, which tell the compiler, the linker and Python where it is, and set
POPLAR_SDK_ENABLED. So does the emulation's; its folder has a stamp.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

from opc import config
from opc.backends import environments
from opc.backends.base import Availability, Environment
from opc.diagnostics import Diagnostic, SpecError
from opc.records import dataclass

VARIABLE = "POPLAR_SDK_ENABLED"
"""Environment variable that an enabled SDK sets."""

STAMP = ".stamp"
"""A file that the emulation's folder has."""

NAME = "popart"
"""The backend, and the extra, that the environment is named after."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK. `root` is the emulation's folder; of a real SDK the compiler and Python know where it is."""

    root: Path | None
    version: str

    @property
    def emulated(self) -> bool:
        """Whether this is the emulation."""
        return self.root is not None

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's arguments for what makes graphs, and for its headers, whose warnings are not the user's.

        The emulation's headers define everything themselves, so that they do as a folder of headers; here its libraries do. Its
        graphs are small, so that to optimise what makes them would take longer than it saves.
        """
        if self.root is None:
            return ("-O1",)
        return ("-O0", "-isystem", str(self.root / "include"), "-DPOPLAR_EMULATION_LIBRARIES")

    @property
    def include(self) -> tuple[str, ...]:
        """The folder of its headers, none where the compiler knows it."""
        return () if self.root is None else (str(self.root / "include"),)

    @property
    def link(self) -> tuple[str, ...]:
        """The linker's arguments for its libraries."""
        own = () if self.root is None else (f"-L{self.root / 'lib'}", f"-Wl,-rpath,{self.root / 'lib'}")
        return (*own, "-lpopart", "-lpoplar", "-lpopops", "-lpoputil", "-lpoplin")

    @property
    def kept(self) -> str:
        """The folder for headers that are compiled ahead of all ops; empty but for the emulation of an environment."""
        made = environments.made(NAME)
        return "" if self.root is None or self.root != made else str(made.parent / environments.HEADERS)

    @property
    def popc(self) -> str:
        """The compiler of codelets."""
        return "popc" if self.root is None else str(self.root / "bin" / "popc")

    @property
    def python(self) -> Path | None:
        """The folder of its Python packages, None where Python finds them."""
        return None if self.root is None else self.root / "python"


def environment() -> Environment:
    """Return what `opc env create popart` makes: Python packages, and the emulation in their place."""
    return Environment(NAME, program=str(runtime() / "emulation" / "poplar" / "build.py"))


def runtime() -> Path:
    """Return the folder of opc's headers and emulations: in the installed package, or in the source tree opc is run from."""
    package = Path(__file__).parents[2]
    own = package / "runtime"
    return own if own.is_dir() else package.parent / "runtime"


def find() -> Sdk | None:
    """Return the SDK that is used: a real one where there is one, else the emulation, None where neither is.

    Raises:
        SpecError: when pyproject.toml has mistakes.
    """
    enabled = os.environ.get(VARIABLE)
    if enabled:
        folder = Path(enabled)
        emulated = (folder / STAMP).is_file()
        return Sdk(folder if emulated else None, _version(folder, emulated=emulated))
    made = environments.made(NAME)
    package = environments.folder(NAME, "popart")
    # A process that uses the emulation finds its packages too.
    if package is not None and (made is None or made.resolve() not in package.resolve().parents):
        return Sdk(None, environments.version(NAME, "popart") or "of an unknown version")
    return None if made is None or not (made / STAMP).is_file() else Sdk(made, _version(made, emulated=True))


def need() -> Sdk:
    """Return the SDK that is used.

    Raises:
        SpecError: when there is none.
    """
    found = find()
    if found is None:
        raise SpecError([Diagnostic("Graphcore's SDK is not enabled, and its emulation is not built", hint=_INSTALL)])
    return found


def probe() -> Availability:
    """Say whether there is an SDK, real or emulated."""
    python = environments.interpreter(NAME)
    if not python.exists():
        return Availability(False, reason=f"its interpreter {python} does not exist", install=_INSTALL)
    found = find()
    if found is None:
        return Availability(False, reason="the SDK is not enabled, and its emulation is not built", install=_INSTALL)
    return Availability(True, found.version)


def is_emulated() -> bool:
    """Whether sessions run on the emulation: everywhere but where a real SDK is."""
    found = find()
    return found is None or found.emulated


def too_old(title: str, since: str) -> tuple[Diagnostic, ...]:
    """Return why code for the chosen version of the SDK can't be generated, where something came later."""
    chosen = config.load().sdk
    if _numbers(chosen) >= _numbers(since):
        return ()
    hint = f'set sdk = "{since}" or later in [tool.opc.popart] of pyproject.toml'
    return (Diagnostic(f"{title} needs SDK {since}, and code is generated for {chosen}", hint=hint),)


_INSTALL = f"opc env create {NAME}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _version(folder: Path, *, emulated: bool) -> str:
    return "3.4, emulated" if emulated else folder.name


@dataclass(frozen=True, slots=True)
class PythonBuild:
    """What a module of the interpreter that runs a backend is compiled with.

    Folders of headers, that of pybind11's, and how its file's name ends.
    """

    include: tuple[str, ...]
    pybind11: str
    suffix: str


def python_build() -> PythonBuild:
    """Return what PopXL's modules are compiled with.

    Raises:
        SpecError: when pybind11 is not installed there, or the interpreter can't be asked.
    """
    pybind = environments.folder(NAME, "pybind11")
    if pybind is None:
        raise SpecError([Diagnostic("PopXL's modules need pybind11, which is not installed", hint=_INSTALL)])
    headers, suffix = _asked(str(environments.interpreter(NAME)))
    include = str(pybind / "include")
    return PythonBuild(("-isystem", include, "-isystem", headers), include, suffix)


@cache
def _asked(python: str) -> tuple[str, str]:
    code = "import json, sysconfig; print(json.dumps([sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX')]))"
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise SpecError([Diagnostic(f"cannot ask {python} where its headers are: {error}")]) from error
    headers, suffix = json.loads(done.stdout)
    return str(headers), str(suffix)
