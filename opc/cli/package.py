"""`opc package`: a wheel of ops."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import OK, WrongUse, find_specs, note, progress_line, say, show_diagnostics, shown
from opc.cli.options import GENERATED, Backends, Out, Specs

if TYPE_CHECKING:
    from opc.build.wheels.settings import Settings


def package(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the distribution: my-ops.")] = None,
    version: Annotated[str, typer.Option("--version", metavar="VERSION", help="Version of the distribution.")] = "0.1.0",
    dist: Annotated[Path, typer.Option("--dist", metavar="DIR", help="Folder the wheel is written to.")] = Path("dist"),
    proof: Annotated[
        Path | None, typer.Option("--proof", metavar="FILE.json", help="What `opc test --results` wrote, for the wheel.")
    ] = None,
    sdist: Annotated[
        bool, typer.Option("--sdist", help="Write a source distribution instead, for a C++ compiler alone.")
    ] = False,
    machine: Annotated[
        str | None, typer.Option("--target", metavar="MACHINE", help="Build for Linux on x86_64 or aarch64 by a cross compiler.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers run at once; one a processor.")] = None,
) -> int:
    """Build a wheel that installs where opc and a compiler are not."""
    from opc.backends.kernel.target import building_for

    if sdist and machine is not None:
        raise WrongUse("--target is for wheels: a source distribution is compiled on the machine that it is for")
    found = _settings(specs, name, version)
    backends = found.backends if backend is None else tuple(backend)
    with building_for(machine):
        return _write(found, backends, out, dist, proof or found.proof, sdist=sdist, jobs=jobs)


def _write(
    found: Settings, backends: tuple[str, ...] | None, out: Path, dist: Path, proof: Path | None, *, sdist: bool, jobs: int | None
) -> int:
    """Build the ops and write the wheel, or write the source distribution."""
    from opc.backends.kernel.target import target
    from opc.build.wheels import make
    from opc.build.wheels import sdist as sources
    from opc.cli.generate import tell_skipped

    # Libraries for this machine stay where they are.
    out = out if target().is_here else out / ".opc" / target().machine
    with progress_line() as progress:
        contents = make.contents(
            found.project, found.specs, out, backends, proof, compiled=not sdist, progress=progress, say=note, jobs=jobs
        )
    contents = sources.portable(contents) if sdist else contents
    for op, reasons in contents.skipped.items():
        tell_skipped(op, reasons, None if sdist else backends)
    if sdist:
        say(f"wrote {shown(sources.write(contents, dist))}")
        return OK
    _warn_of_variant()
    say(f"wrote {shown(make.write(contents, dist))}")
    return OK


def _settings(specs: list[Path] | None, name: str | None, version: str) -> Settings:
    """Return what the command line says, and for the rest what the nearest project does."""
    from opc.build.wheels import settings
    from opc.build.wheels.project import Project
    from opc.records import replace

    if name is not None:
        return settings.Settings(Project(name, version), tuple(find_specs(specs)), None, None)
    found = settings.load(Path.cwd())
    if found is None:
        raise WrongUse("there is no [project] in a pyproject.toml here: name the wheel, as in --name my-ops")
    if specs:
        return replace(found, specs=tuple(find_specs(specs)))
    settings.refuse_none(found, Path.cwd())
    return found


def _warn_of_variant() -> None:
    """Warn where kernels are compiled for one kind of processor alone."""
    from opc.backends.kernel.backend import VARIANT, only_variant, variants
    from opc.diagnostics import Diagnostic, Severity

    variant = only_variant()
    if variant is not None and len(variants()) > 1:
        message = f"the wheel runs on processors of {variant} alone, for which ${VARIANT} has kernels compiled"
        show_diagnostics(
            [Diagnostic(message, hint=f"unset {VARIANT} for a wheel that is to run elsewhere", severity=Severity.WARNING)]
        )
