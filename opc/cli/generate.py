"""`opc generate`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import FAILED, OK, find_specs, note, paint, say, show_diagnostics, shown
from opc.cli.options import GENERATED, Backends, Out, Specs

if TYPE_CHECKING:
    from opc.backends.registry import Broken
    from opc.build.generate import Generated
    from opc.diagnostics import Diagnostic


def generate(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is not what it should be.")] = False,
) -> int:
    """Write the package of each spec: kernel, bindings, tests."""
    # One spec's mistakes do not stop the others.
    return (_compare if check else _write)(find_specs(specs), out, backend)


def _write(specs: Sequence[Path], out: Path, backends: Sequence[str] | None) -> int:
    """Write the packages."""
    from opc.backends import registry
    from opc.build import locks, ninja
    from opc.build.generate import generate as write
    from opc.build.generate import prepare
    from opc.diagnostics import SpecError
    from opc.pipeline import load_family

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
        failed |= tell_skipped(made.package.name, made.skipped, backends)
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


def tell_skipped(op: str, skipped: Mapping[str, Sequence[Diagnostic]], asked: Sequence[str] | None) -> bool:
    """Say which backends were left out and why; whether the user had asked for one of them."""
    for name, reasons in skipped.items():
        label = "error" if name in (asked or ()) else "note"
        note(f"{paint(label + ':', label, sys.stderr)} {op}: left out backend {name}")
        show_diagnostics(reasons)
    return any(name in (asked or ()) for name in skipped)


def _compare(specs: Sequence[Path], out: Path, backends: Sequence[str] | None) -> int:
    """Print which files of the packages are not what `_write` would write."""
    from opc.backends import registry
    from opc.build.generate import check, package_path
    from opc.diagnostics import SpecError
    from opc.pipeline import load_family

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
