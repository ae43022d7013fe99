"""What a project's pyproject.toml says of its wheel: `[project]`, and `[tool.opc.package]`."""

from __future__ import annotations

from pathlib import Path

from opc import config
from opc.build.wheels import project as projects
from opc.build.wheels.project import Project
from opc.diagnostics import Diagnostic, SpecError
from opc.records import dataclass
from opc.spec.files import apart, in_folder


@dataclass(frozen=True, slots=True)
class Settings:
    """A project, its spec files, the backends it names, None for all that can be built, and the file of its proof."""

    project: Project
    specs: tuple[Path, ...]
    backends: tuple[str, ...] | None
    proof: Path | None


def load(folder: Path) -> Settings | None:
    """Return the settings of the nearest project in `folder` or above it; None where no pyproject.toml has `[project]`.

    Raises:
        SpecError: with every mistake in the file.
    """
    settings = config.load(folder)
    project = None if settings.path is None else projects.read(settings.path)
    if settings.path is None or project is None:
        return None
    place, package = settings.path.parent, settings.package
    specs = tuple(path for entry in package.specs for path in _specs(place / entry))
    return Settings(project, specs, package.backends, place / package.proof if package.proof else None)


def _specs(path: Path) -> list[Path]:
    """Return a spec file as it is, and the specs in a folder; what is not there is told by who reads the specs."""
    return in_folder(path) if path.is_dir() else apart(path)


def refuse_none(settings: Settings, where: Path) -> None:
    """Refuse a project without specs.

    Raises:
        SpecError: which says where specs are looked for.
    """
    if not settings.specs:
        hint = "opc new NAME writes a first one; [tool.opc.package] specs names other folders"
        raise SpecError([Diagnostic(f"there are no specs (*.yaml) in {where}", hint=hint)])
