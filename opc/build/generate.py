"""`opc generate`: the files of a package, written, compared and kept clean.

A package is the folder `<out>/<op>`. Its files come from the kernel, the shape rules and the chosen backends; together with their
hashes they are listed in `manifest.json`. What a package already holds stays: a backend that was generated once is generated
again with the others, so that a package never mixes two versions of a spec.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import opc
from opc.backends import registry
from opc.backends.base import Backend
from opc.backends.package import BUILD, MANIFEST, MARK
from opc.build import files, manifest
from opc.compiler import Package, compile_spec, package_of
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.op import Family
from opc.records import dataclass
from opc.spec.loader import load


@dataclass(frozen=True, slots=True)
class Generated:
    """What `generate` did to a package; every path is relative to the package.

    `edited` are those among `written` and `removed` that someone had changed by hand. `backends` are the backends the package now
    holds, `skipped` those requested that can't carry the op, with the reasons.
    """

    package: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    backends: tuple[Backend, ...]
    skipped: Mapping[str, tuple[Diagnostic, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that is not what `generate` would make it: `kind` is "missing", "changed" or "stale".

    `path` is relative to the package; `diff` is a unified diff from what is there to what should be.
    """

    path: str
    kind: str
    diff: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """All files a package should hold; `held` are the backends that it held before."""

    family: Family
    package: Package
    held: tuple[str, ...]


def package_path(name: str, out: Path) -> Path:
    """Return the folder of an op's package below the output folder.

    Raises:
        SpecError: when the name is no identifier, and so could lead elsewhere.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise SpecError([Diagnostic(f"refusing to generate '{name}': the name of an op must be an identifier")])
    return out / name


def prepare(source: Path | Family, out: Path, backends: Sequence[Backend] | None = None) -> Prepared:
    """Return what `generate` would write for a spec or its family. This is the long part of it, and needs no lock.

    Raises:
        SpecError: with every mistake in the spec, or the reason that the op can't be generated.
    """
    if isinstance(source, Family):
        held = manifest.read(package_path(source.name, out)).backends
        return Prepared(source, package_of(source, _with_held(held, backends)), held)
    spec = load(source, whole=False)
    held = manifest.read(package_path(spec.model.op, out)).backends
    compiled = compile_spec(spec, _with_held(held, backends))
    return Prepared(compiled.family, compiled.package, held)


def generate(family: Family, out: Path, backends: Sequence[Backend] | None = None, prepared: Prepared | None = None) -> Generated:
    """Write the package of a family below `out` and return what changed.

    Only files whose text differs are written, each atomically; files that the manifest lists and that are no longer made are
    removed; files that opc did not make are never touched. `backends` defaults to every registered one. The caller holds the
    lock of `out` when others may write there too, and has `prepared` the files before it took it.

    Raises:
        SpecError: when a file of a user's stands in the way, or the file system refuses.
    """
    package = package_path(family.name, out)
    old = manifest.read(package)
    if prepared is None or prepared.held != old.backends:  # somebody else has added a backend since
        prepared = prepare(family, out, backends)
    wanted = prepared.package
    places = files.inside(package, (*wanted.files, *old.files))
    # Of a new package nothing needs to be looked for.
    present = {path: files.read(place) for path, place in places.items()} if os.path.lexists(package) else dict.fromkeys(places)
    _refuse_foreign(wanted, old, places, present)

    scratch = package / BUILD
    try:
        files.refuse_link(scratch)
        files.make_folder(scratch)
    except OSError as error:
        raise files.failure("write", scratch, error) from error
    files.make_folders(package, (path for path in wanted.files if present[path] is None))
    written, unchanged, edited = [], [], []
    for path, text in wanted.files.items():
        if present[path] == text:
            unchanged.append(path)
            continue
        if _is_edited(path, present, old):
            edited.append(path)
        files.write(places[path], text, scratch)
        written.append(path)
    removed = [path for path in old.files if path not in wanted.files and present[path] is not None]
    for path in removed:
        if _is_edited(path, present, old):
            edited.append(path)
        files.remove(package, places[path])
    # The manifest comes last: a run killed before this leaves the old one, by which the next run sees what differs.
    text = _manifest(family, wanted).dumps()
    if files.read(package / MANIFEST) != text:
        files.write(package / MANIFEST, text, scratch)
    return Generated(package, tuple(written), tuple(unchanged), tuple(removed), tuple(edited), wanted.backends, wanted.skipped)


def check(source: Path | Family, out: Path, backends: Sequence[Backend] | None = None) -> tuple[Difference, ...]:
    """Return how the package on disk differs from what `generate` would make, without writing; empty when it is fresh.

    Raises:
        SpecError: with every mistake in the spec, or when a file can't be read.
    """
    return differences(prepare(source, out, backends), out)


def differences(prepared: Prepared, out: Path) -> tuple[Difference, ...]:
    """Return how the package on disk differs from what was prepared for it, as `check` does.

    Raises:
        SpecError: when a file can't be read.
    """
    package = package_path(prepared.family.name, out)
    old = manifest.read(package)
    expected = {**prepared.package.files, MANIFEST: _manifest(prepared.family, prepared.package).dumps()}
    places = files.inside(package, (*expected, *old.files))
    found: list[Difference] = []
    for path, text in sorted(expected.items()):
        present = files.read(places[path])
        if present is None:
            found.append(Difference(path, "missing", _diff(path, "", text)))
        elif present != text:
            found.append(Difference(path, "changed", _diff(path, present, text)))
    for path in sorted(old.files):
        if path not in expected and (present := files.read(places[path])) is not None:
            found.append(Difference(path, "stale", _diff(path, present, "")))
    return tuple(found)


def _with_held(held: Sequence[str], backends: Sequence[Backend] | None) -> tuple[Backend, ...]:
    """Return the requested backends, every registered one by default, and those that the package has already."""
    chosen = {b.name: b for b in (registry.select() if backends is None else backends)}
    known = registry.registered() if set(held) - set(chosen) else {}
    return (*chosen.values(), *(registry.load(name) for name in held if name not in chosen and name in known))


def _manifest(family: Family, wanted: Package) -> manifest.Manifest:
    return manifest.Manifest(
        version=opc.__version__,
        spec_name=Path(family.source_name).name,
        spec_hash=family.source_hash,
        backends=tuple(b.name for b in wanted.backends if not b.parts),
        files={path: manifest.digest(text) for path, text in wanted.files.items()},
    )


def _is_edited(path: str, present: Mapping[str, str | None], old: manifest.Manifest) -> bool:
    text = present[path]
    return text is not None and path in old.files and manifest.digest(text) != old.files[path]


def _refuse_foreign(
    wanted: Package, old: manifest.Manifest, places: Mapping[str, Path], present: Mapping[str, str | None]
) -> None:
    """Raise SpecError when a file to be written exists and is not opc's: neither in the manifest nor marked as generated."""
    foreign = [
        Diagnostic(f"{places[path]} exists and was not made by opc", hint="move it away, or choose another output folder with -o")
        for path in wanted.files
        if (text := present[path]) is not None and path not in old.files and text and MARK not in text[:2000]
    ]
    if foreign:
        raise SpecError(foreign)


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"{path} (on disk)", f"{path} (generated)"
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
