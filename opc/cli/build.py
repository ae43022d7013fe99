"""`opc build`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import FAILED, OK, find_specs, near, note, progress_line, say, say_json, show_diagnostics, shown
from opc.cli.generate import tell_broken, tell_skipped
from opc.cli.options import GENERATED, Backends, Json, Out, Specs

if TYPE_CHECKING:
    from opc.build.builder import Built


def build(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers run at once; one a processor.")] = None,
    as_json: Json = False,
) -> int:
    """Generate and compile what has changed."""
    from opc.build import glibc

    results = build_packages(find_specs(specs), out, backend, jobs)
    if as_json:
        say_json([_as_data(r) for r in results])
    else:
        fresh = [r for r in results if r.fresh]
        for result in results:
            if result.ok and not result.fresh and result.package is not None:
                since = glibc.needed(libraries(result.package))
                say(f"{shown(result.package)}: built" + (f", for glibc {since} and newer" if since else ""))
        if fresh:
            say(f"{len(fresh)} package{'s' if len(fresh) != 1 else ''}: nothing changed")
    failed = tell_failures(results, backend)
    if backend is None and not all(r.fresh for r in results):
        from opc.backends import registry

        tell_broken(registry.load_all()[1])
    return FAILED if failed else OK


def tell_failures(results: Sequence[Built], backends: Sequence[str] | None) -> bool:
    """Print the diagnostics of packages that were not built, and which backends were left out; whether any failed."""
    from opc.diagnostics import Told

    told = Told()
    failed = False
    for result in results:
        if not result.ok:
            show_diagnostics(told.new(result.diagnostics))
            failed = True
        else:
            tell_skipped(result.name, {} if backends else result.skipped, backends)
    return failed


def build_packages(
    specs: Sequence[Path], out: Path, backends: Sequence[str] | None, jobs: int | None = None
) -> tuple[Built, ...]:
    """Build packages with a line of progress on a terminal."""
    from opc.build.builder import build_specs

    with progress_line() as progress:
        return build_specs(specs, out, backends, progress=progress, say=note, jobs=jobs)


def libraries(package: Path) -> list[Path]:
    """Return the libraries of a built package; a stub that others are linked against is none."""
    from opc.backends.package import BUILD

    return [path for path in (package / BUILD).rglob("*.so") if path.parent.name != "stub"]


def _as_data(result: Built) -> dict[str, object]:
    from opc.build import glibc

    return {
        "op": result.name,
        "package": None if result.package is None else near(result.package),
        "ok": result.ok,
        "fresh": result.fresh,
        "glibc": None if result.package is None else glibc.needed(libraries(result.package)),
        "written": [] if result.generated is None else list(result.generated.written),
        "diagnostics": [d.as_dict() for d in result.diagnostics],
        "skipped": {name: [d.as_dict() for d in reasons] for name, reasons in result.skipped.items()},
    }
