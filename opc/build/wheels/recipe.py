"""CMakeLists.txt of a source distribution: the steps of a build as targets, for any machine and compiler."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from opc.backends.base import BuildStep, Compile, Link, Script
from opc.backends.kernel.backend import KernelBackend
from opc.backends.kernel.exact import EXACT_LINK_FLAGS
from opc.backends.templates import environment
from opc.build.toolchain import C_FLAGS, CXX_FLAGS, SILENT_FLAGS
from opc.build.wheels.module import OPS, Carried
from opc.build.wheels.project import Project
from opc.records import dataclass

SOURCES = "src"
"""The folder of C++ in a source distribution: one for each op, and `opc` with what these include."""

_PYTHON = f"-I{sysconfig.get_path('include')}"


@dataclass(frozen=True, slots=True)
class Objects:
    """A target of objects: its name, sources and flags. `only` is the kind of processor that it is for; empty for all."""

    name: str
    source: str
    folder: str
    flags: str
    only: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """A target that is linked: what it is made of, the name of its file and the folder that it is built in.

    `place` is where in the wheel it goes, empty for a library that others are linked against; `kernels` names the op whose
    kernels are in it.
    """

    name: str
    file: str
    objects: tuple[str, ...]
    libraries: tuple[str, ...]
    flags: str
    folder: str
    place: str
    kernels: str


def own_steps(op: Carried, steps: Sequence[BuildStep]) -> tuple[BuildStep, ...]:
    """Return the steps of a backend's build that are not those of the kernel."""
    kernel = KernelBackend().build(op.family)
    return tuple(step for step in steps if step not in kernel)


def is_portable(steps: Sequence[BuildStep]) -> bool:
    """Whether steps can be taken on another machine: all that they read comes with the sources, or with a compiler and Python."""
    for step in steps:
        if isinstance(step, Compile):
            paths = [step.source, *(f for f in step.flags if f != _PYTHON)]
        elif isinstance(step, Link):
            paths = [*step.objects, *step.flags]
            if step.shared or step.program:
                return False
        elif isinstance(step, Script):
            continue
        else:
            return False
        if any(path.removeprefix("-I").removeprefix("-Wl,-rpath,").startswith("/") for path in paths):
            return False
    return True


def text(
    project: Project, ops: Sequence[Carried], steps: Mapping[tuple[str, str], Sequence[BuildStep]], joint: Sequence[str]
) -> str:
    """Return the text of CMakeLists.txt.

    `steps` are those of each op and backend that are not the kernel's; `joint` names the sources, C, of libraries of all ops.
    """
    objects: list[Objects] = []
    bindings: list[Objects] = []
    libraries: list[Library] = []
    for op in ops:
        name = op.family.name
        common, x86 = KernelBackend().build_anywhere(op.family)
        objects += [_objects(name, step) for step in common] + [_objects(name, step, "x86") for step in x86]
    for (name, backend), own in steps.items():
        made = {_output(step): f"{name}_{backend}_{PurePosixPath(_output(step)).stem}".replace(".", "_") for step in own}
        for step in own:
            if isinstance(step, Compile):
                bindings.append(_objects(name, step, target=made[step.object]))
            elif isinstance(step, Link):
                libraries.append(_library(name, step, made, [s for s in own if isinstance(s, Link)]))
    kernels = {op.family.name: [o for o in objects if o.folder == f"{SOURCES}/{op.family.name}"] for op in ops}
    return (
        environment("opc.build.wheels")
        .get_template("CMakeLists.txt.j2")
        .render(
            module=project.module,
            version=".".join(part for part in project.version.split(".") if part.isdigit()),
            sources=SOURCES,
            ops=[op.family.name for op in ops],
            kernels=kernels,
            bindings=bindings,
            libraries=libraries,
            joint=[(PurePosixPath(path).stem, path) for path in joint],
            joint_place=f"{project.module}/{OPS}",
            cxx_flags=_flags((*CXX_FLAGS, *SILENT_FLAGS)),
            c_flags=_flags((*C_FLAGS[2:], *SILENT_FLAGS)),
            link_flags=_flags(EXACT_LINK_FLAGS),
        )
    )


def _objects(op: str, step: Compile, only: str = "", target: str = "") -> Objects:
    name = target or f"{PurePosixPath(step.object).stem}_kernel"
    base, all_have = ("${OPC_C_FLAGS}", C_FLAGS) if step.language == "c" else ("${OPC_CXX_FLAGS}", CXX_FLAGS)
    flags = ["${Python_INCLUDE_FLAGS}" if f == _PYTHON else f for f in step.flags if f not in all_have]
    return Objects(name, f"{SOURCES}/{op}/{step.source}", f"{SOURCES}/{op}", _flags([base, *flags]), only)


def _library(op: str, step: Link, made: Mapping[str, str], links: Sequence[Link]) -> Library:
    file = PurePosixPath(step.output)
    parts = [o for o in step.objects if o in made]
    linked = {link.output for link in links}
    is_part = any(step.output in other.objects for other in links)
    kernels = op if len(parts) < len(step.objects) else ""
    return Library(
        name=made[step.output],
        file=file.name.removesuffix(".so"),
        objects=tuple(made[o] for o in parts if o not in linked),
        libraries=tuple(made[o] for o in parts if o in linked),
        flags=_flags(f for f in step.flags if f not in ("-Wl,--as-needed", "-lmvec", "-lm")),
        folder=op,
        place="" if is_part else f"{OPS}/{op}/{file.parent}",
        kernels=kernels,
    )


def _output(step: BuildStep) -> str:
    return step.object if isinstance(step, Compile) else step.output


def _flags(flags: Iterable[str]) -> str:
    return " ".join(flags)
