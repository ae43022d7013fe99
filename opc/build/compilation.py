"""Compiles generated packages with one run of ninja, and turns what compilers say into diagnostics."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from opc.backends.base import BuildStep, Compile
from opc.backends.kernel import libraries
from opc.backends.kernel.backend import KernelBackend
from opc.backends.package import BUILD
from opc.build import files, headers, locks, ninja, shared, stamp
from opc.build.generate import Generated
from opc.build.toolchain import Toolchain
from opc.diagnostics import NO_SPAN, Diagnostic, Severity, Source, Span, SpecError
from opc.ir.op import Family
from opc.records import dataclass, replace

_MOST_ERRORS = 3
"""How many errors of one failed compilation become diagnostics; the rest follow from the first."""


@dataclass(slots=True)
class CompiledPackage:
    """What became of one package: errors; backends that can't be built here and why; signatures of files; the files made."""

    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    made: tuple[str, ...] = ()


def compile_packages(
    packages: Sequence[tuple[Family, Generated]],
    backends: Iterable[str],
    out: Path,
    toolchain: Toolchain,
    lock: int,
    progress: Callable[[int, int, str], None] | None = None,
    jobs: int | None = None,
    many: Collection[str] = (),
) -> dict[str, CompiledPackage]:
    """Build the chosen backends of generated packages below `out`; return what became of each package by its name.

    `lock` is the descriptor of the held lock of `out`. What packages share is made ahead for the backends that are `many`, for
    others where there are many packages here.

    Raises:
        SpecError: when ninja can't run or its files can't be written.
    """
    chosen = set(backends)
    result = {family.name: CompiledPackage() for family, _ in packages}
    targets: list[str] = []
    made: dict[str, list[str]] = {}
    edges: dict[str, dict[str, tuple[BuildStep, ...]]] = {}
    for family, generated in packages:
        edges[family.name], result[family.name].skipped = _steps(family, generated)
    built = ((step for name in chosen & {*steps} for step in steps[name]) for steps in edges.values())
    sure = (step for steps in edges.values() for name in chosen & {*steps} & {*many} for step in steps[name])
    ahead = headers.worth(built, out, toolchain, sure)
    kernels = {family.name: _kernel(family) for family, _ in packages}
    apart = shared.worth((steps for steps, _ in kernels.values()), out, toolchain, bool(many))
    for family, generated in packages:
        steps = edges[family.name]
        # Signatures are taken before the compilers read the files: a file that changes meanwhile then counts as changed.
        relative = (*generated.written, *generated.unchanged, "manifest.json")
        result[family.name].signatures = stamp.signatures(generated.package / path for path in relative)
        kernel, read = kernels[family.name]
        result[family.name].signatures |= stamp.signatures(read)
        text = ninja.package_file(family.name, kernel, steps, ahead, apart)
        _write_if_changed(generated.package / BUILD / ninja.FILE, text)
        wanted = [name for name in steps if name in chosen]
        targets += [ninja.target(family.name, name) for name in wanted]
        outputs = [ninja.output(step) for step in (*kernel, *(step for name in wanted for step in steps[name]))] if wanted else []
        made[family.name] = [os.path.abspath(generated.package / path) for path in dict.fromkeys(outputs)]
        stamp.discard_damaged(generated.package)
        _discard_links(files.inside(generated.package, outputs).values())

    for header in ahead:
        if header.kept:
            continue
        _write_if_changed(out / header.folder / ninja.FILE, ninja.header_file(header))
    common = {name: _common(kernels[name][0], steps, apart) for name, steps in edges.items()}
    for step in dict.fromkeys(step for own in common.values() for step in own):
        _write_if_changed(out / shared.folder(step) / ninja.FILE, ninja.shared_file(step))
    folders = (f"*/{BUILD}", f"{headers.FOLDER}/*", f"{shared.FOLDER}/*")
    known = [path for folder in folders for path in out.glob(f"{folder}/{ninja.FILE}")]
    taken = sorted(path.parent.relative_to(out).as_posix() for path in known)
    _write_if_changed(out / locks.FOLDER / ninja.FILE, ninja.main_file(toolchain, taken))
    _write_if_changed(out / ninja.IDENTITY, toolchain.identity + "\n")
    _discard_links(out / locks.FOLDER / name for name in ninja.LOGS)
    failures = ninja.run(out, targets, lock, progress, jobs) if targets else ()
    for family, _ in packages:
        needed = {shared.path(step) for step in common[family.name]}
        own = [f for f in failures if f.target.startswith(f"{family.name}/") or f.target in needed]
        result[family.name].diagnostics = tuple(d for failure in own for d in _explain(failure, out, family))
        result[family.name].made = tuple(made[family.name])
        result[family.name].signatures |= stamp.signatures(made[family.name])
    return result


def _common(
    kernel: Iterable[BuildStep], steps: Mapping[str, Iterable[BuildStep]], apart: Collection[Compile]
) -> tuple[Compile, ...]:
    """Return the steps that make what a package shares with others: objects that its links ask for, and functions in `apart`."""
    asked = shared.of(step for own in steps.values() for step in own)
    return (*asked, *(made for made in map(shared.functions, kernel) if made is not None and made in apart))


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


def _kernel(family: Family) -> tuple[tuple[BuildStep, ...], tuple[Path, ...]]:
    """Return the kernel's steps, and the files by which the installed libraries were found; none where libraries are missing.

    The backends that build on the kernel then say so.
    """
    try:
        read = tuple(file for native in family.native for file in libraries.find(native).files)
        return KernelBackend().build(family), read
    except SpecError:
        return (), ()


def _discard_links(made: Iterable[Path]) -> None:
    """Remove symbolic links in place of what compilers and ninja write, which would write to where these lead."""
    for place in made:
        for path in (place, place.with_name(f"{place.name}.tmp"), place.with_name(f"{place.name}.d")):
            if path.is_symlink():
                path.unlink()


def _write_if_changed(place: Path, text: str) -> None:
    if files.read(place) != text:
        files.write(place, text, place.parent)


def _explain(failure: ninja.Failure, out: Path, family: Family) -> list[Diagnostic]:
    """Return a failed build step as diagnostics: the compiler's first errors at their places, and all it said as a note.

    An error in somebody's header that native code has made is shown where the code uses it.
    """
    said = Diagnostic(f"the command was: {failure.command}\n{failure.output}".rstrip(), severity=Severity.NOTE)
    errors = list(failure.errors)
    if not errors:
        last = [line for line in failure.output.splitlines() if line.strip()][-1:] or ["it printed nothing"]
        hint = ninja.space_hint(failure.output)
        return [Diagnostic(f"building {out / failure.target} failed: {last[0]}", hint=hint, notes=(said,))]
    # A template of the user's says the same once for each type; what else goes wrong in headers follows from that.
    own: dict[Span, Diagnostic] = {}
    for error in errors:
        if (diagnostic := _in_native(error, family)) is not None:
            own.setdefault(diagnostic.span, diagnostic)
    found = list(own.values())[:_MOST_ERRORS] or [_in_file(error, out) for error in errors[:_MOST_ERRORS]]
    return [*found[:-1], replace(found[-1], notes=(said,))]


def _in_native(error: ninja.CompilerError, family: Family) -> Diagnostic | None:
    """Return an error of native code at its place in the spec; None for any other error."""
    message = f"the compiler says: {error.message}"
    span = _in_spec(family, error.file, error.line, error.column)
    if span is not NO_SPAN:
        return Diagnostic(message, span)
    places = (_in_spec(family, *place) for place in error.required)
    span = next((s for s in places if s is not NO_SPAN), NO_SPAN)
    return None if span is NO_SPAN else Diagnostic(f"{message} ({error.file}:{error.line})", span)


def _in_spec(family: Family, name: str, line: int, column: int) -> Span:
    """Return a place in the spec, which native code's `#line` calls by its file name; NO_SPAN for any other file."""
    source = next((n.source for n in family.native), None)
    if source is None or name != family.source_name:
        return NO_SPAN
    return Span(source, line, column, line, column + 1)


def _in_file(error: ninja.CompilerError, out: Path) -> Diagnostic:
    """Return an error at its place in a file, which is named from ninja's folder, or in words where it can't be read."""
    message = f"the compiler says: {error.message}"
    for path in (out / error.file, Path(error.file)):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        line, column = error.line, error.column
        return Diagnostic(message, Span(Source(str(path), text), line, column, line, column + 1))
    return Diagnostic(f"{message} ({error.file}:{error.line})")
