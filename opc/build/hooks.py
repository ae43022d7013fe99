"""The build backend of projects whose packages are made of specs: what pip, uv, build and cibuildwheel call (PEP 517).

    [build-system]
    requires = ["opc-compiler"]
    build-backend = "opc.build.hooks"

Tools call these functions in the project's folder. A mistake ends in diagnostics and exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from opc.diagnostics import Diagnostic, SpecError

if TYPE_CHECKING:
    from opc.build.wheels.settings import Settings

OUT = Path("build")
"""The folder in the project that its ops are built in."""


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the project's wheel into a folder and return its name.

    The setting `proof` names a file of results, as `pip wheel . --config-settings proof=proof.json` does.
    """
    given = (config_settings or {}).get("proof")
    return _told(lambda settings: _wheel(settings, Path(wheel_directory), settings.proof if given is None else Path(str(given))))


def _wheel(settings: Settings, folder: Path, proof: Path | None) -> str:
    from opc.build import files
    from opc.build.wheels import make

    files.make_folder(OUT)
    found = make.contents(settings.project, settings.specs, OUT, settings.backends, proof)
    return make.write(found, folder).name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, object] | None = None) -> str:
    """Write the project's source distribution, which a C++ compiler builds without opc, into a folder and return its name."""
    given = (config_settings or {}).get("proof")
    return _told(lambda settings: _sdist(settings, Path(sdist_directory), settings.proof if given is None else Path(str(given))))


def _sdist(settings: Settings, folder: Path, proof: Path | None) -> str:
    from opc.build import files
    from opc.build.wheels import make, sdist

    files.make_folder(OUT)
    found = make.contents(settings.project, settings.specs, OUT, settings.backends, proof, compiled=False)
    return sdist.write(sdist.portable(found), folder).name


def _told(action: Callable[[Settings], str]) -> str:
    """Run a part of the build on the project in the working folder; a user's mistake ends in diagnostics."""
    from opc.build.wheels import settings

    try:
        found = settings.load(Path.cwd())
        if found is None:
            raise SpecError([Diagnostic("there is no [project] in pyproject.toml")])
        settings.refuse_none(found, Path.cwd())
        return action(found)
    except SpecError as error:
        for diagnostic in error.diagnostics:
            print(diagnostic.render(), file=sys.stderr)
        sys.exit(1)
