"""The compiler: the whole way from a spec to the files of its package.

`compile_spec` calls the layers in order. All of them are pure: the same spec and backends give the same bytes, and nothing is
written. `opc.build` writes, compares and builds the result, and `opc.testing` proves it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.package import BUILD, MANIFEST, MARK
from opc.diagnostics import NO_SPAN, Diagnostic, Diagnostics, Severity, Span, SpecError, did_you_mean
from opc.ir.budget import within_depth
from opc.ir.op import Family
from opc.pipeline import derived_family, forward_op
from opc.records import dataclass
from opc.spec.loader import Spec, load

if TYPE_CHECKING:
    from opc.backends.base import Backend
    from opc.lower.lower import SpecialisedProgram


class Stage(IntEnum):
    """How far a spec is compiled."""

    FAMILY = 1
    PROGRAMS = 2
    FILES = 3


@dataclass(frozen=True, slots=True)
class Package:
    """The files of a package by path, for the backends that carry the op; `skipped` are those that can't, with the reasons."""

    files: Mapping[str, str] = field(default_factory=dict)
    backends: tuple[Backend, ...] = ()
    skipped: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of compiling a spec, as far as the requested stage.

    `programs` are the loops of each op of the family by the op's name, one program for each case of its attributes; an op with
    native C++ code has none.
    """

    family: Family
    programs: Mapping[str, tuple[SpecialisedProgram, ...]] = field(default_factory=dict)
    package: Package = Package()


def compile_spec(
    spec: Path | Spec, backends: Sequence[Backend] = (), to: Stage = Stage.FILES, found: Diagnostics | None = None
) -> Compiled:
    """Compile a spec for some backends, up to and including the stage `to`; warnings are recorded in `found`.

    Raises:
        SpecError: with every mistake found in the spec, or the reason that it can't be compiled.
    """
    # YAML becomes values with their places in the file, checked against the schema.
    source = spec if isinstance(spec, Spec) else load(spec, whole=False)
    # The body becomes a typed op in index notation; what shapes, checks and requirements leave open is a mistake.
    op = forward_op(source, found)
    # Reverse and forward mode derive the gradient and the other ops, in the same representation.
    family = derived_family(source, op, found)
    if to < Stage.PROGRAMS:
        return Compiled(family)
    # Statements become loops: rows, contractions, nests. Layers are imported when a spec comes to them: `check` stops before.
    from opc.lower.fuse import cpu_programs

    lowered = within_depth(cpu_programs, _body(family))
    programs = {o.name: lowered(o) for o in family.ops if o is not family.forward or family.native_for("cpp") is None}
    if to < Stage.FILES:
        return Compiled(family, programs)
    # Kernels, shape rules, and the bindings and tests of each backend become text.
    return Compiled(family, programs, package_of(family, backends))


def package_of(family: Family, backends: Sequence[Backend]) -> Package:
    """Return every file of a family's package.

    Raises:
        SpecError: when the op can't be generated, or two backends make one file.
    """
    return within_depth(_package_of, _body(family))(family, backends)


def _body(family: Family) -> Span:
    return next((s.span for s in family.forward.body), NO_SPAN)


def _package_of(family: Family, backends: Sequence[Backend]) -> Package:
    from opc.backends import registry
    from opc.backends.kernel.backend import KernelBackend
    from opc.emit.python import spelling
    from opc.emit.shapes import python as shape_python
    from opc.emit.shapes import tests as shape_tests

    _check_names(family)
    parts = {name: registry.load(name) for b in backends for name in b.parts}
    chosen = sorted((parts | {b.name: b for b in backends}).values(), key=lambda b: b.name)
    skipped = {b.name: reasons for b in chosen if (reasons := b.requires(family))}
    carried = tuple(b for b in chosen if b.name not in skipped)

    made: dict[str, str] = {}
    owner: dict[str, str] = {}
    own = {**_package_files(family), "shape.py": shape_python.emit(family), "tests/test_shape.py": shape_tests.emit(family)}
    own |= spelling.files(family)
    sources = [("opc", own), ("kernel", KernelBackend().emit(family)), *((b.name, b.emit(family)) for b in carried)]
    for name, texts in sources:
        for path, text in texts.items():
            if path in owner and made[path] == text:
                # Two backends of one framework may share a file.
                continue
            if path in owner or path == MANIFEST or path.split("/")[0] == BUILD:
                other = f"'{owner[path]}' makes too" if path in owner else "is opc's own"
                raise SpecError([Diagnostic(f"backend '{name}' makes the file '{path}', which {other}")])
            made[path], owner[path] = text, name
    return Package(dict(sorted(made.items())), carried, skipped)


def _check_names(family: Family) -> None:
    """Raise SpecError for a name that the spec gives the op for a backend that reads none, or that is misspelt."""
    mistakes = [d for d in wrong_names(family) if d.severity is Severity.ERROR]
    if mistakes:
        raise SpecError(mistakes)


def wrong_names(family: Family) -> list[Diagnostic]:
    """Return what is wrong with the names that the spec gives the op for single backends; of those not here it warns."""
    from opc.backends import registry

    registered = registry.names() if family.names else ()
    mistakes = []
    for name in family.names:
        if name.backend in registered:
            if not registry.load(name.backend).takes_name:
                message = f"the backend '{name.backend}' has no name of its own for an op"
                mistakes.append(Diagnostic(message, name.span, hint="it goes by op, domain and onnx_name"))
        elif hint := did_you_mean(name.backend, registered):
            mistakes.append(Diagnostic(f"there is no backend '{name.backend}'", name.span, hint=hint))
        else:  # it may be installed elsewhere
            hint = "what it calls the op is for where it is installed: opc backends lists those that are here"
            mistakes.append(
                Diagnostic(f"there is no backend '{name.backend}' here", name.span, hint=hint, severity=Severity.WARNING)
            )
    return mistakes


def _package_files(family: Family) -> dict[str, str]:
    """Return what makes the folder, and its tests, Python packages."""
    from opc.emit.python.text import docstring

    header = f"# {MARK} from {Path(family.source_name).name}; edits are lost.\n"
    about = family.forward.doc.strip() or f"The op {family.name}."
    text = f"{about}\n\nThe op for each framework is in the subpackage of that name; `shape` tells the shapes of its outputs."
    return {"__init__.py": header + docstring(text) + "\n", "tests/__init__.py": header}
