"""Compiles generated packages with one run of ninja, and turns what compilers say into diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opc.backends.base import BuildStep
from opc.backends.kernel.backend import KernelBackend
from opc.build import files, ninja, stamp
from opc.build.generate import Generated
from opc.build.toolchain import Toolchain
from opc.diagnostics import NO_SPAN, Diagnostic, Severity, Source, Span, SpecError
from opc.ir.op import Family

_MOST_ERRORS = 3
"""How many errors of one failed compilation become diagnostics; the rest follow from the first."""


@dataclass(slots=True)
class Compiled:
    """What became of one package: the errors; the backends that can't be built here and why; signatures of its files."""

    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)


def compile_packages(
    packages: Sequence[tuple[Family, Generated]],
    backends: Iterable[str],
    out: Path,
    toolchain: Toolchain,
    lock: int,
    progress: Callable[[int, int, str], None] | None = None,
    jobs: int | None = None,
) -> dict[str, Compiled]:
    """Build the chosen backends of generated packages below `out`; return what became of each package by its name.

    `lock` is the descriptor of the held lock of `out`.

    Raises:
        SpecError: when ninja can't run or its files can't be written.
    """
    chosen = set(backends)
    result = {family.name: Compiled() for family, _ in packages}
    targets: list[str] = []
    made: dict[str, list[str]] = {}
    for family, generated in packages:
        steps, result[family.name].skipped = _steps(family, generated)
        # Signatures are taken before the compilers read the files: a file that changes meanwhile then counts as changed.
        relative = (*generated.written, *generated.unchanged, "manifest.json")
        result[family.name].signatures = stamp.signatures(generated.package / path for path in relative)
        text = ninja.package_file(family.name, KernelBackend().build(family), steps)
        _write_if_changed(generated.package / files.BUILD / ninja.FILE, text)
        wanted = [name for name in steps if name in chosen]
        targets += [ninja.target(family.name, name) for name in wanted]
        made[family.name] = [ninja.output(step) for name in wanted for step in steps[name]]

    known = sorted(path.parts[-3] for path in out.glob(f"*/{files.BUILD}/{ninja.FILE}"))
    _write_if_changed(out / ninja.FOLDER / ninja.FILE, ninja.main_file(toolchain, known))
    _write_if_changed(out / ninja.IDENTITY, toolchain.identity + "\n")
    failures = ninja.run(out, targets, lock, progress, jobs) if targets else ()
    for family, generated in packages:
        own = [f for f in failures if f.target.startswith(f"{family.name}/")]
        result[family.name].diagnostics = tuple(d for failure in own for d in _explain(failure, out))
        result[family.name].signatures |= stamp.signatures(generated.package / path for path in made[family.name])
    return result


def _steps(family: Family, generated: Generated) -> tuple[dict[str, tuple[BuildStep, ...]], dict[str, tuple[Diagnostic, ...]]]:
    """Return the build steps of each backend of a package, and the backends that can't be built on this machine."""
    steps: dict[str, tuple[BuildStep, ...]] = {}
    skipped: dict[str, tuple[Diagnostic, ...]] = {}
    for backend in generated.backends:
        try:
            own = backend.build(family)
        except SpecError as error:
            skipped[backend.name] = error.diagnostics
            continue
        if own:
            steps[backend.name] = own
    return steps, skipped


def _write_if_changed(place: Path, text: str) -> None:
    if files.read(place) != text:
        files.write(place, text, place.parent)


def _explain(failure: ninja.Failure, out: Path) -> list[Diagnostic]:
    """Return a failed build step as diagnostics: the compiler's first errors at their places, and all it said as a note."""
    said = Diagnostic(f"the command was: {failure.command}\n{failure.output}".rstrip(), severity=Severity.NOTE)
    errors = list(failure.errors)[:_MOST_ERRORS]
    if not errors:
        last = [line for line in failure.output.splitlines() if line.strip()][-1:] or ["it printed nothing"]
        hint = ninja.space_hint(failure.output)
        return [Diagnostic(f"building {out / failure.target} failed: {last[0]}", hint=hint, notes=(said,))]
    found = []
    for i, match in enumerate(errors):
        span = _span(out, match["file"], int(match["line"]), int(match["column"] or 1))
        place = "" if span is not NO_SPAN else f" ({match['file']}:{match['line']})"
        notes = (said,) if i == len(errors) - 1 else ()
        found.append(Diagnostic(f"the compiler says: {match['message']}{place}", span, notes=notes))
    return found


def _span(out: Path, name: str, line: int, column: int) -> Span:
    """Return the place of a compiler's message; a name comes from ninja's folder or, through `#line`, from the user's."""
    for path in (out / name, Path(name)):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        return Span(Source(str(path), text), line, column, line, column + 1)
    return NO_SPAN
