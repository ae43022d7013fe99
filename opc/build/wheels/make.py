"""`opc package`: specs to a wheel.

The ops are built as `opc build` builds them; what runs of their packages goes into one module, with the specs. The same specs,
compiler and backends give the same bytes, in whatever folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from opc import config
from opc.backends import registry
from opc.backends.base import Backend
from opc.backends.kernel.target import target
from opc.backends.package import BUILD
from opc.build import builder, manifest, toolchain, twins
from opc.build.wheels import archive, examples, joint, module, tags
from opc.build.wheels import proof as proofs
from opc.build.wheels.metadata import metadata, wheel_file
from opc.build.wheels.module import OPS, Carried
from opc.build.wheels.project import Project, checked
from opc.compiler import Stage, compile_spec
from opc.diagnostics import Diagnostic, SpecError, Told
from opc.records import dataclass
from opc.spec.files import content, file_of

if TYPE_CHECKING:
    from opc.ir.op import Family

NUMPY = "numpy"
"""Every wheel has the functions on NumPy's arrays; they answer what no other framework does."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What goes into a wheel: its ops, the backends whose parts they have, and the texts of specs and of their proof by name.

    `described` tells of each op, see `opc.build.wheels.examples`. `skipped` are the backends that were left out of an op, with
    the reasons.
    """

    project: Project
    ops: tuple[Carried, ...]
    backends: tuple[Backend, ...]
    specs: Mapping[str, bytes]
    described: str
    proof: str = ""
    skipped: Mapping[str, Mapping[str, tuple[Diagnostic, ...]]] = field(default_factory=dict)


def contents(
    project: Project,
    specs: Sequence[Path],
    out: Path,
    wanted: Sequence[str] | None = None,
    proof: Path | None = None,
    *,
    compiled: bool = True,
    progress: builder.Progress | None = None,
    say: Callable[[str], None] | None = None,
    jobs: int | None = None,
) -> Contents:
    """Build the ops of `specs` below `out` and return what a wheel holds of them; unless `compiled`, only write their packages.

    `wanted` names backends, beside NumPy's; None stands for all that a wheel can carry and that can be built here. `proof` is a
    file of results.

    Raises:
        SpecError: when a spec has mistakes, an op can't be built for a backend that was named, no wheel can carry it,
            or the proof is not of these specs.
    """
    families = _families(specs)
    proved = "" if proof is None else proofs.read(proof, {f.name: f.source_hash for f in families})
    backends = choose(wanted, families)
    project = checked(project, taken(backends))
    names = [b.name for b in backends]
    # What a name alone tells is told before anything is built.
    planned = [Carried(f, out / f.name, {b.name: part for b in backends if (part := b.wheel(f)) is not None}) for f in families]
    shared = {name: library for name, (library, _) in joint.texts(project.module, planned, backends).items()}
    module.refuse_clashes(planned, backends, shared)
    if compiled:
        results = builder.build_specs(specs, out, names, strict=wanted is not None, progress=progress, say=say, jobs=jobs)
    else:
        results = _generated(families, out, backends, say)
    told = Told()
    mistakes = [d for r in results for d in told.new((*r.diagnostics, *r.skipped.get(NUMPY, ())))]
    if mistakes:
        raise SpecError(mistakes)
    ops: list[Carried] = []
    skipped: dict[str, dict[str, tuple[Diagnostic, ...]]] = {}
    for family, result in zip(families, results, strict=True):
        assert result.package is not None
        left = {name: reasons for name, reasons in result.skipped.items() if name in names}
        parts = {b.name: part for b in backends if b.name not in left and (part := b.wheel(family)) is not None}
        ops.append(Carried(family, result.package, parts))
        skipped |= {family.name: left} if left else {}
    ops.sort(key=lambda c: c.family.name)
    files = [file_of(path) for path in specs]
    texts = {file.name: content(file) for file in files}
    described = examples.text(zip((file.name for file in files), families, strict=True))
    return Contents(project, tuple(ops), backends, texts, described, proved, skipped)


def write(found: Contents, dist: Path) -> Path:
    """Write the wheel to the folder `dist` and return its path.

    Raises:
        SpecError: when there is no compiler for the libraries of all ops, or the file system refuses.
    """
    import tempfile

    project = found.project
    with tempfile.TemporaryDirectory(prefix="opc-wheel-") as scratch:
        texts = joint.texts(project.module, found.ops, found.backends)
        made = joint.built(texts, toolchain.find(config.load()), Path(scratch)) if texts else {}
        libraries = {f"{OPS}/{name}": path for name, path in made.items()}
        for op in found.ops:
            paths = dict.fromkeys(path for part in op.parts.values() for path in part.libraries)
            libraries |= {f"{OPS}/{op.family.name}/{path}": op.package / path for path in paths}
        held = {f"{project.module}/{path}": place.read_bytes() for path, place in libraries.items()}
        tag = tags.tag([*libraries.values()])
    held |= {f"{project.module}/{path}": text for path, text in python_files(found, texts).items()}
    info = f"{project.stem}.dist-info"
    always, extras = requirements(found)
    held[f"{info}/METADATA"] = metadata(project, always, extras).encode()
    held[f"{info}/WHEEL"] = wheel_file(tag).encode()
    held |= {f"{info}/licenses/{name}": text.encode() for name, text in project.licenses.items()}
    place = dist / f"{project.stem}-{tag}.whl"
    archive.write_wheel(place, info, held)
    return place


def python_files(found: Contents, joint: Mapping[str, tuple[str, str]]) -> dict[str, bytes]:
    """Return what the module holds beside libraries, by path: Python, stubs, the specs, what is in them, and their proof.

    `joint` has the name and the text of each library of all ops.
    """
    texts = module.sources(found.project, found.ops, found.backends, {name: library for name, (library, _) in joint.items()})
    held = {path: text.encode() for path, text in texts.items()}
    for op in found.ops:
        held |= {f"{OPS}/{op.family.name}/{path}": text for path, text in _python(op).items()}
    held |= {f"specs/{name}": text for name, text in found.specs.items()} | {examples.FILE: found.described.encode()}
    return held | ({"proof.json": found.proof.encode()} if found.proof else {})


def _generated(
    families: Sequence[Family], out: Path, backends: Sequence[Backend], say: Callable[[str], None] | None
) -> tuple[builder.Built, ...]:
    """Write the packages of families, and compile nothing."""
    from opc.build import locks
    from opc.build.generate import generate

    with locks.hold(out / locks.FOLDER, say):
        made = [generate(family, out, backends) for family in families]
    return tuple(builder.Built(f.name, m.package, skipped=m.skipped) for f, m in zip(families, made, strict=True))


def _families(specs: Sequence[Path]) -> list[Family]:
    """Return the family of each spec; mistakes of all specs are told at once."""
    twins.refuse(specs)
    found: list[Family] = []
    mistakes: list[Diagnostic] = []
    told = Told()
    for spec in specs:
        try:
            found.append(compile_spec(spec, to=Stage.FAMILY).family)
        except SpecError as error:
            mistakes += told.new(error.diagnostics)
    names = [file.name for file in dict.fromkeys(file_of(path) for path in specs)]
    alike = sorted({name for name in names if names.count(name) > 1})
    mistakes += [Diagnostic(f"two specs are called {name}", hint="rename one of them") for name in alike]
    # Installers take no such names, and elsewhere a backslash parts folders.
    odd = sorted({name for name in names if not name.isprintable() or "\\" in name})
    mistakes += [Diagnostic(f"a wheel can't hold a file that is called {name!r}", hint="rename the spec") for name in odd]
    if mistakes:
        raise SpecError(mistakes)
    return found


def choose(wanted: Sequence[str] | None, families: Sequence[Family]) -> tuple[Backend, ...]:
    """Return the backends of a wheel, NumPy's first.

    Raises:
        SpecError: when one that was named is unknown, or no wheel can carry it.
    """
    able = {b.name: b for b in registry.select(None) if any(b.wheel(f) is not None for f in families)}
    names = dict.fromkeys((NUMPY, *(able if wanted is None else wanted)))
    chosen = {b.name: b for b in registry.select([*names])}
    unable = [name for name in chosen if name not in able]
    if unable:
        hint = f"those that one carries are {', '.join(able)}"
        wheel = "wheel" if target().is_here else f"wheel for {target().machine}"
        raise SpecError([Diagnostic(f"no {wheel} carries ops for the backend '{name}'", hint=hint) for name in unable])
    return (chosen.pop(NUMPY), *chosen.values())


def taken(backends: Sequence[Backend]) -> dict[str, str]:
    """Return the modules that frameworks have, and their titles."""
    return {b.tensor.partition(".")[0]: b.title for b in backends if b.tensor} | {b.name: b.title for b in registry.select(None)}


def _python(op: Carried) -> dict[str, bytes]:
    """Return the Python modules that an op's functions consist of, by path in the op's package."""
    left = {path for part in op.parts.values() for path in part.without}
    paths = [p for p in manifest.read(op.package).files if p.endswith(".py") and p not in left]
    held = [p for p in paths if "/" not in p or p.partition("/")[0] in op.parts]
    # Libraries lie in a package too, from which they are imported.
    return {p: (op.package / p).read_bytes() for p in held} | {f"{BUILD}/__init__.py": module.HEADER.encode()}


def requirements(found: Contents) -> tuple[list[str], dict[str, list[str]]]:
    """Return what the wheel needs in any case, and for each of the other frameworks."""
    needed: dict[str, list[str]] = {b.name: [] for b in found.backends}
    for op in found.ops:
        for name, part in op.parts.items():
            needed[name] += [text for text in part.requires if text not in needed[name]]
    return needed.pop(NUMPY), needed
