"""`opc generate` and `opc build`."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opc.cli_console import FAILED, OK, find_specs, note, paint, progress_line, say, show_diagnostics, shown

if TYPE_CHECKING:
    from opc.backends.registry import Broken
    from opc.build.builder import Built
    from opc.build.generate import Generated
    from opc.diagnostics import Diagnostic


def generate(given: Sequence[Path] | None, out: Path, backends: Sequence[str] | None) -> int:
    """Write the packages of specs; one spec's mistakes do not stop the others."""
    from opc.backends import registry
    from opc.build import locks, ninja
    from opc.build.generate import generate as write
    from opc.build.generate import prepare
    from opc.diagnostics import SpecError
    from opc.pipeline import load_family

    specs = find_specs(given)
    chosen, broken = registry.load_all() if backends is None else (registry.select(backends), ())
    tell_broken(broken)
    failed = False
    for spec in specs:
        try:
            family = load_family(spec)
            prepared = prepare(family, out, chosen)
        except SpecError as error:
            show_diagnostics(error.diagnostics)
            failed = True
            continue
        with locks.hold(out / ninja.FOLDER, note):
            try:
                made = write(family, out, chosen, prepared)
            except SpecError as error:
                show_diagnostics(error.diagnostics)
                failed = True
                continue
        say(f"{shown(made.package)}: {_changes(made)}")
        failed |= _tell_skipped(made.package.name, made.skipped, backends)
    return FAILED if failed else OK


def tell_broken(broken: Sequence[Broken]) -> None:
    """Warn of registered backends that can't be loaded, and so are left out."""
    from dataclasses import replace

    from opc.diagnostics import Severity

    show_diagnostics(replace(b.diagnostic, severity=Severity.WARNING) for b in broken)


def _changes(made: Generated) -> str:
    """Return what a run of `generate` did to a package, in words."""
    for path in made.edited:
        note(f"{paint('warning:', 'warning', sys.stderr)} {shown(made.package / path)} had been edited; it was written anew")
    if not made.written and not made.removed:
        return f"{_files(len(made.unchanged))}, nothing changed"
    parts = [f"{_files(len(made.written))} written"]
    parts += [f"{len(made.unchanged)} unchanged"] if made.unchanged else []
    parts += [f"{len(made.removed)} removed"] if made.removed else []
    return ", ".join(parts)


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


def _tell_skipped(op: str, skipped: Mapping[str, Sequence[Diagnostic]], asked: Sequence[str] | None) -> bool:
    """Say which backends were left out and why; whether the user had asked for one of them."""
    for name, reasons in skipped.items():
        label = "error" if name in (asked or ()) else "note"
        note(f"{paint(label + ':', label, sys.stderr)} {op}: left out backend {name}")
        show_diagnostics(reasons)
    return any(name in (asked or ()) for name in skipped)


def check_generated(given: Sequence[Path] | None, out: Path, backends: Sequence[str] | None) -> int:
    """Say which files of the packages are not what `generate` would write."""
    from opc.backends import registry
    from opc.build.generate import check, package_path
    from opc.diagnostics import SpecError
    from opc.pipeline import load_family

    specs = find_specs(given)
    chosen = None if backends is None else registry.select(backends)
    stale = 0
    for spec in specs:
        try:
            family = load_family(spec)
            differences = check(family, out, chosen)
        except SpecError as error:
            show_diagnostics(error.diagnostics)
            stale += 1
            continue
        for difference in differences:
            path = shown(package_path(family, out) / difference.path)
            say(f"{path}: {difference.kind}")
            if difference.kind == "changed":
                say(difference.diff.rstrip("\n"))
        stale += len(differences)
        if not differences:
            say(f"{shown(package_path(family, out))}: fresh")
    if stale:
        note(f"not fresh: run opc generate {' '.join(shown(s) for s in specs[:3])}{' ...' if len(specs) > 3 else ''}")
    return FAILED if stale else OK


def build(given: Sequence[Path] | None, out: Path, backends: Sequence[str] | None, jobs: int | None, as_json: bool) -> int:
    """Generate and compile packages; say what was done."""
    from opc.build import glibc

    results = build_packages(find_specs(given), out, backends, jobs)
    if as_json:
        say(json_text.dumps([_as_data(r) for r in results], indent=2))
    else:
        fresh = [r for r in results if r.fresh]
        for result in results:
            if result.ok and not result.fresh and result.package is not None:
                since = glibc.needed(libraries(result.package))
                say(f"{shown(result.package)}: built" + (f", for glibc {since} and newer" if since else ""))
        if fresh:
            say(f"{len(fresh)} package{'s' if len(fresh) != 1 else ''}: nothing changed")
    failed = tell_failures(results, backends)
    if backends is None and not all(r.fresh for r in results):
        from opc.backends import registry

        tell_broken(registry.load_all()[1])
    return FAILED if failed else OK


def tell_failures(results: Sequence[Built], backends: Sequence[str] | None) -> bool:
    """Print the diagnostics of packages that were not built, and which backends were left out; whether any failed."""
    failed = False
    for result in results:
        if not result.ok:
            show_diagnostics(result.diagnostics)
            failed = True
        else:
            _tell_skipped(result.name, {} if backends else result.skipped, backends)
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
    from opc.build import files

    return [path for path in (package / files.BUILD).rglob("*.so") if path.parent.name != "stub"]


def _as_data(result: Built) -> dict[str, object]:
    from opc.build import glibc

    return {
        "op": result.name,
        "package": None if result.package is None else shown(result.package),
        "ok": result.ok,
        "fresh": result.fresh,
        "glibc": None if result.package is None else glibc.needed(libraries(result.package)),
        "written": [] if result.generated is None else list(result.generated.written),
        "diagnostics": [d.as_dict() for d in result.diagnostics],
        "skipped": {name: [d.as_dict() for d in reasons] for name, reasons in result.skipped.items()},
    }
