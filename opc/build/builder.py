"""`opc build`: specs to built packages, doing only what has changed.

Stages of a build: the stamp of each package shows whether anything changed; specs with changes are loaded, and their files made;
under the lock of the output folder these are written, and one run of ninja compiles them all; stamps are written. A run that is
killed anywhere leaves files that are whole, and no stamp that says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from opc.build import stamp, twins
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.backends.base import Backend
    from opc.build.generate import Generated, Prepared
    from opc.build.toolchain import Toolchain
    from opc.config import Config
    from opc.diagnostics import Diagnostic
    from opc.ir.op import Family

Progress = Callable[[int, int, str], None]
"""Called with the number of finished build steps, their total, and the file just made."""


@dataclass(frozen=True, slots=True)
class Built:
    """What became of one spec: its package, or the diagnostics that say why there is none.

    `name` is the op's name, or the spec's file name when it could not be read. `fresh` is True when nothing had changed.
    `generated` is what was written, None when nothing had to be looked at. `skipped` are the backends that can't carry the
    op, or can't be built on this machine, with the reasons.
    """

    name: str
    package: Path | None
    fresh: bool = False
    generated: Generated | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the package is built."""
        return not self.diagnostics


def build_specs(
    specs: Sequence[Path],
    out: Path,
    backends: Sequence[str] | None = None,
    *,
    strict: bool = True,
    ahead: Callable[[], None] | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    jobs: int | None = None,
    many: Collection[str] = (),
) -> tuple[Built, ...]:
    """Generate and build the packages of `specs` below `out`, and return what became of each, in order.

    One spec's mistake does not stop the others. `backends` are names, None for all; with `strict`, an op that one of those named
    can't carry is a mistake. `ahead` is called before anything is built, if anything has to be. `say` gets a message when the
    build has to wait for another process;
    `jobs` is the number of compilers run at once, by default one a processor. `many` are the backends that many packages below
    `out` are built for, these or others that come later: what those share is then made ahead.

    Raises:
        SpecError: when nothing can be built at all: an unknown backend, no compiler, an output folder that can't be written, two
            specs that describe ops of one name.
    """
    twins.refuse(specs)
    results: dict[int, Built] = {}
    for i, spec in enumerate(specs):
        package = stamp.fresh_package(spec, out, backends)
        if package is not None:
            results[i] = Built(package.name, package, fresh=True)
    rest = [i for i in range(len(specs)) if i not in results]
    if rest:
        if ahead is not None:
            ahead()
        from opc.compiler import Stage, compile_spec
        from opc.diagnostics import SpecError

        families: dict[int, Family] = {}
        for i in rest:
            try:
                families[i] = compile_spec(specs[i], to=Stage.FAMILY).family
            except SpecError as error:
                results[i] = Built(specs[i].name, None, diagnostics=error.diagnostics)
        built = build_families(
            list(families.values()), out, backends, strict=strict, progress=progress, say=say, jobs=jobs, many=many
        )
        results |= dict(zip(families, built))
    return tuple(results[i] for i in range(len(specs)))


def build_families(
    families: Sequence[Family],
    out: Path,
    backends: Sequence[str] | None = None,
    *,
    strict: bool = True,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    jobs: int | None = None,
    many: Collection[str] = (),
) -> tuple[Built, ...]:
    """Generate and build the packages of families that are already loaded; otherwise as `build_specs`.

    Raises:
        SpecError: when nothing can be built at all: an unknown backend, no compiler, an output folder that can't be written.
    """
    if not families:
        return ()
    from opc import config
    from opc.backends import registry
    from opc.backends.package import BUILD
    from opc.build import files, locks, toolchain
    from opc.build.compilation import compile_packages
    from opc.build.generate import generate, prepare
    from opc.diagnostics import SpecError

    _refuse_twins(families)
    settings = config.load()
    chosen = registry.select(backends)
    compiler = toolchain.find(settings)
    read = stamp.signatures(_read_files(chosen, compiler, settings))
    names = [b.name for b in chosen]
    results: dict[str, Built] = {}
    packages: list[tuple[Family, Generated]] = []
    ready: list[tuple[Family, Prepared]] = []
    for family in families:
        try:
            ready.append((family, prepare(family, out, chosen)))
        except SpecError as error:
            results[family.name] = Built(family.name, None, diagnostics=error.diagnostics)
    with locks.hold(out / locks.FOLDER, say) as lock:

        def goes_on(done: int, total: int, file: str) -> None:
            locks.touch(lock)
            if progress is not None:
                progress(done, total, file)

        for family, prepared in ready:
            try:
                packages.append((family, generate(family, out, chosen, prepared)))
            except SpecError as error:
                results[family.name] = Built(family.name, None, diagnostics=error.diagnostics)
        compiled = compile_packages(packages, names, out, compiler, lock, goes_on, jobs, many)
        for family, generated in packages:
            made = compiled[family.name]
            skipped = {**generated.skipped, **made.skipped}
            # A backend the user named must be built, or it is a mistake; of "all backends", those that can't be are left out.
            missing = tuple(d for name in skipped if strict and name in (backends or ()) for d in skipped[name])
            mistakes = made.diagnostics + missing
            results[family.name] = Built(family.name, generated.package, False, generated, mistakes, skipped)
            if not mistakes:
                done = set(names) - set(made.skipped)
                package, signatures = generated.package, read | made.signatures
                text = stamp.text(package, family.source_hash, done, made.skipped, signatures, made.made)
                files.write(package / stamp.NAME, text, package / BUILD)
    return tuple(results[family.name] for family in families)


def _refuse_twins(families: Sequence[Family]) -> None:
    """Raise SpecError when two specs describe ops of one name, and so would share a folder."""
    from opc.diagnostics import Diagnostic, SpecError

    first: dict[str, Family] = {}
    for family in families:
        other = first.setdefault(family.name, family)
        if other is not family:
            where = f"{other.source_name} and {family.source_name}"
            raise SpecError([Diagnostic(f"two specs describe an op '{family.name}': {where}", hint="rename one of the ops")])


def _read_files(backends: Sequence[Backend], compiler: Toolchain, settings: Config) -> list[str | Path]:
    """Return every file a build reads besides the package's own: opc, other distributions' backends, settings, the compiler."""
    read: list[str | Path] = [*stamp.own_files(), compiler.command[0]]
    if settings.path is not None:
        read.append(settings.path)
    return read + stamp.foreign_files(backends)
