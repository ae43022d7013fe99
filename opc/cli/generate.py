"""`opc generate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from opc.cli.console import FAILED, OK, find_specs, note, paint, say, show_diagnostics, show_rendered, shown
from opc.cli.options import GENERATED, Backends, Out, Specs

if TYPE_CHECKING:
    from opc.backends.base import Backend
    from opc.backends.registry import Broken
    from opc.build.generate import Generated
    from opc.build.unchanged import Records
    from opc.diagnostics import Diagnostic, Told

_Reason = TypeVar("_Reason")


def generate(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is not what it should be.")] = False,
) -> int:
    """Write the package of each spec: kernel, bindings, tests."""
    from opc.build import twins

    found = find_specs(specs)
    twins.refuse(found)
    # One spec's mistakes do not stop the others.
    return (_compare if check else _write)(found, out, backend)


def _write(specs: Sequence[Path], out: Path, backends: Sequence[str] | None) -> int:
    """Write the packages of those specs that something has changed of."""
    from opc.build.unchanged import Records
    from opc.diagnostics import Told

    records = Records(out)
    unchanged = [records.find(spec, backends) for spec in specs]
    chosen = _chosen(backends) if None in unchanged else ()
    told = Told()
    failed = False
    for spec, found in zip(specs, unchanged, strict=True):
        if found is None:
            failed |= not _write_one(spec, out, backends, chosen, records, told)
            continue
        say(f"{shown(found.package)}: {_files(found.files)}, nothing changed")
        for names, named, rendered in _alike(found.skipped, backends):
            _tell_left_out(found.package.name, names, named)
            for severity, text in rendered:
                show_rendered(severity, text)
    return FAILED if failed else OK


def _chosen(backends: Sequence[str] | None) -> Sequence[Backend]:
    """Return the backends of these names, every one for None; those that can't be loaded are warned of then."""
    from opc.backends import registry

    chosen, broken = registry.load_all() if backends is None else (registry.select(backends), ())
    tell_broken(broken)
    return chosen


def _write_one(
    spec: Path, out: Path, backends: Sequence[str] | None, chosen: Sequence[Backend], records: Records, told: Told
) -> bool:
    """Write the package of a spec; return whether all that was requested is there now."""
    from opc.build import locks
    from opc.build.generate import generate, prepare
    from opc.diagnostics import SpecError

    try:
        prepared = prepare(spec, out, chosen)
        with locks.hold(out / locks.FOLDER, note):
            made = generate(prepared.family, out, chosen, prepared)
            records.keep(prepared, made)
    except SpecError as error:
        show_diagnostics(told.new(error.diagnostics))
        return False
    say(f"{shown(made.package)}: {_changes(made)}")
    return not tell_skipped(made.package.name, made.skipped, backends)


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
    """Say which backends were left out and why; return whether the user had named one of them."""
    for names, named, reasons in _alike(skipped, asked):
        _tell_left_out(op, names, named)
        show_diagnostics(reasons)
    return any(name in (asked or ()) for name in skipped)


def _alike(
    skipped: Mapping[str, Sequence[_Reason]], asked: Sequence[str] | None
) -> Iterator[tuple[list[str], bool, tuple[_Reason, ...]]]:
    """Yield the backends that were left out for the same reasons, whether the user had named them, and the reasons."""
    found: dict[tuple[bool, tuple[_Reason, ...]], list[str]] = {}
    for name, reasons in skipped.items():
        found.setdefault((name in (asked or ()), tuple(reasons)), []).append(name)
    for (named, reasons), names in found.items():
        yield names, named, reasons


def _tell_left_out(op: str, backends: Sequence[str], named: bool) -> None:
    label = "error" if named else "note"
    those = f"backend{'s' if len(backends) > 1 else ''} {', '.join(backends)}"
    note(f"{paint(label + ':', label, sys.stderr)} {op}: left out {those}")


def _compare(specs: Sequence[Path], out: Path, backends: Sequence[str] | None) -> int:
    """Print which files of the packages are not what `_write` would write; every spec is compiled for that."""
    from opc.backends import registry
    from opc.build.generate import differences, package_path, prepare
    from opc.diagnostics import SpecError, Told

    chosen = None if backends is None else registry.select(backends)
    told = Told()
    stale = 0
    for spec in specs:
        try:
            prepared = prepare(spec, out, chosen)
            found = differences(prepared, out)
        except SpecError as error:
            show_diagnostics(told.new(error.diagnostics))
            stale += 1
            continue
        package = package_path(prepared.family.name, out)
        for difference in found:
            say(f"{shown(package / difference.path)}: {difference.kind}")
            if difference.kind == "changed":
                say(difference.diff.rstrip("\n"))
        stale += len(found)
        if not found:
            say(f"{shown(package)}: fresh")
    if stale:
        note(f"not fresh: run {_command(specs, out, backends)}")
    return FAILED if stale else OK


def _command(specs: Sequence[Path], out: Path, backends: Sequence[str] | None) -> str:
    """Return the line that writes these packages, of many specs for the first."""
    import shlex

    options = [] if out == GENERATED else ["-o", shown(out)]
    options += [word for name in backends or () for word in ("--backend", name)]
    more = ["..."] if len(specs) > 3 else []
    return shlex.join(["opc", "generate", *(shown(s) for s in specs[:3]), *more, *options])
