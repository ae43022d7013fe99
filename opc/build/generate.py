"""`opc generate`: the files of a package, written, compared and kept clean.

A package is the folder `<out>/<op>`. Its files come from the kernel, the shape rules and the chosen backends; together with their
hashes they are listed in `manifest.json`. What a package already holds stays: a backend that was generated once is generated
again with the others, so that a package never mixes two versions of a spec.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import opc
from opc.backends import registry
from opc.backends.base import Backend
from opc.backends.kernel.backend import KernelBackend
from opc.build import files, manifest
from opc.diagnostics import Diagnostic, SpecError, did_you_mean
from opc.emit.python.text import docstring
from opc.emit.shapes import python as shape_python
from opc.emit.shapes import tests as shape_tests
from opc.ir.op import Family


@dataclass(frozen=True, slots=True)
class Generated:
    """What `generate` did to a package; every path is relative to the package.

    `edited` are those among `written` and `removed` that someone had changed by hand. `backends` are the backends the package now
    holds, `skipped` those asked for that can't carry the op, with the reasons.
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
    """All files a package should hold, by path, and what they come from; `held` are the backends that it held before."""

    files: Mapping[str, str]
    held: tuple[str, ...]
    backends: tuple[Backend, ...]
    skipped: Mapping[str, tuple[Diagnostic, ...]]


def package_path(family: Family, out: Path) -> Path:
    """Return the folder of the family's package below the output folder.

    Raises:
        SpecError: when the op's name is no identifier, and so could lead elsewhere.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", family.name):
        raise SpecError([Diagnostic(f"refusing to generate '{family.name}': the name of an op must be an identifier")])
    return out / family.name


def prepare(family: Family, out: Path, backends: Sequence[Backend] | None = None) -> Prepared:
    """Return what `generate` would write. This is the long part of it, and needs no lock.

    Raises:
        SpecError: when the op can't be generated.
    """
    return _collect(family, manifest.read(package_path(family, out)), backends)


def generate(family: Family, out: Path, backends: Sequence[Backend] | None = None, prepared: Prepared | None = None) -> Generated:
    """Write the package of a family below `out` and return what changed.

    Only files whose text differs are written, each atomically; files that the manifest lists and that are no longer made are
    removed; files that opc did not make are never touched. `backends` defaults to every registered one. The caller holds the
    lock of `out` when others may write there too, and has `prepared` the files before it took it.

    Raises:
        SpecError: when a file of a user's stands in the way, or the file system refuses.
    """
    package = package_path(family, out)
    old = manifest.read(package)
    if prepared is None or prepared.held != old.backends:  # somebody else has added a backend since
        prepared = _collect(family, old, backends)
    wanted = prepared
    places = {path: files.inside(package, path) for path in (*wanted.files, *old.files)}
    present = {path: files.read(place) for path, place in places.items()}
    _refuse_foreign(wanted, old, places, present)

    scratch = package / files.BUILD
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
    if files.read(package / manifest.NAME) != text:
        files.write(package / manifest.NAME, text, scratch)
    return Generated(package, tuple(written), tuple(unchanged), tuple(removed), tuple(edited), wanted.backends, wanted.skipped)


def check(family: Family, out: Path, backends: Sequence[Backend] | None = None) -> tuple[Difference, ...]:
    """Return how the package on disk differs from what `generate` would make, without writing; empty when it is fresh.

    Raises:
        SpecError: when a file can't be read.
    """
    package = package_path(family, out)
    old = manifest.read(package)
    wanted = _collect(family, old, backends)
    expected = {**wanted.files, manifest.NAME: _manifest(family, wanted).dumps()}
    found: list[Difference] = []
    for path, text in sorted(expected.items()):
        present = files.read(files.inside(package, path))
        if present is None:
            found.append(Difference(path, "missing", _diff(path, "", text)))
        elif present != text:
            found.append(Difference(path, "changed", _diff(path, present, text)))
    for path in sorted(old.files):
        if path not in expected and (present := files.read(files.inside(package, path))) is not None:
            found.append(Difference(path, "stale", _diff(path, present, "")))
    return tuple(found)


def _collect(family: Family, old: manifest.Manifest, backends: Sequence[Backend] | None) -> Prepared:
    """Return every file of the package; backends that the package holds already join those asked for."""
    _check_names(family)
    chosen = {b.name: b for b in (registry.select() if backends is None else backends)}
    known = registry.registered() if set(old.backends) - set(chosen) else {}
    chosen |= {name: registry.load(name) for name in old.backends if name not in chosen and name in known}
    skipped = {name: reasons for name, b in sorted(chosen.items()) if (reasons := b.requires(family))}
    carried = tuple(b for name, b in sorted(chosen.items()) if name not in skipped)

    made: dict[str, str] = {}
    owner: dict[str, str] = {}
    own = {**_package_files(family), "shape.py": shape_python.emit(family), "tests/test_shape.py": shape_tests.emit(family)}
    sources = [("opc", own), ("kernel", KernelBackend().emit(family)), *((b.name, b.emit(family)) for b in carried)]
    for name, texts in sources:
        for path, text in texts.items():
            if path in owner and made[path] == text:
                # Two backends of one framework may share a file.
                continue
            if path in owner or path == manifest.NAME or path.split("/")[0] == files.BUILD:
                other = f"'{owner[path]}' makes too" if path in owner else "is opc's own"
                raise SpecError([Diagnostic(f"backend '{name}' makes the file '{path}', which {other}")])
            made[path], owner[path] = text, name
    return Prepared(dict(sorted(made.items())), old.backends, carried, skipped)


def _check_names(family: Family) -> None:
    """Raise SpecError for a name that the spec gives the op for a backend that reads none, or that is misspelt."""
    registered = registry.names() if family.names else ()
    mistakes = []
    for name in family.names:
        if name.backend in registered:
            if not registry.load(name.backend).takes_name:
                message = f"the backend '{name.backend}' has no name of its own for an op"
                mistakes.append(Diagnostic(message, name.span, hint="it goes by op, domain and onnx_name"))
        elif hint := did_you_mean(name.backend, registered):  # other backends may be installed elsewhere
            mistakes.append(Diagnostic(f"there is no backend '{name.backend}'", name.span, hint=hint))
    if mistakes:
        raise SpecError(mistakes)


def _package_files(family: Family) -> dict[str, str]:
    """Return what makes the folder, and its tests, Python packages."""
    header = f"# {files.MARK} from {Path(family.source_name).name}; edits are lost.\n"
    about = family.forward.doc.strip() or f"The op {family.name}."
    text = f"{about}\n\nThe op for each framework is in the subpackage of that name; `shape` tells the shapes of its outputs."
    return {"__init__.py": header + docstring(text) + "\n", "tests/__init__.py": header}


def _manifest(family: Family, wanted: Prepared) -> manifest.Manifest:
    return manifest.Manifest(
        version=opc.__version__,
        spec_name=Path(family.source_name).name,
        spec_hash=family.source_hash,
        backends=tuple(b.name for b in wanted.backends),
        files={path: manifest.digest(text) for path, text in wanted.files.items()},
    )


def _is_edited(path: str, present: Mapping[str, str | None], old: manifest.Manifest) -> bool:
    text = present[path]
    return text is not None and path in old.files and manifest.digest(text) != old.files[path]


def _refuse_foreign(
    wanted: Prepared, old: manifest.Manifest, places: Mapping[str, Path], present: Mapping[str, str | None]
) -> None:
    """Raise SpecError when a file to be written exists and is not opc's: neither in the manifest nor marked as generated."""
    foreign = [
        Diagnostic(f"{places[path]} exists and was not made by opc", hint="move it away, or choose another output folder with -o")
        for path in wanted.files
        if (text := present[path]) is not None and path not in old.files and text and files.MARK not in text[:2000]
    ]
    if foreign:
        raise SpecError(foreign)


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"{path} (on disk)", f"{path} (generated)"
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
