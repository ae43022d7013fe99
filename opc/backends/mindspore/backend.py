"""The MindSpore backend: functions for `ops.Custom(..., func_type="aot")`, built without MindSpore's headers.

A package's `mindspore/` holds the C++ library (`library`), its primitives with gradients (`operators`), and the function people
call (`api`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends import environments, example_text
from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Environment, Link
from opc.backends.dtypes import lacking
from opc.backends.kernel import libraries
from opc.backends.kernel.backend import NATIVE_FLAGS, KernelBackend
from opc.backends.mindspore.api import api_source
from opc.backends.mindspore.library import MAX_OPERANDS, cuda_files, library_source, native_code, templates, threads_source
from opc.backends.mindspore.operators import operators_source, support_source
from opc.diagnostics import Diagnostic, SpecError
from opc.emit.kernel.native import native_files, source_path
from opc.emit.python.text import Bracket, quoted
from opc.ir.op import AttributeKind, Family, Op

if TYPE_CHECKING:
    from opc.backends.mindspore.session import MindSporeSession

VERSIONS = ">=2.8"
FLAGS = ("-O2", "-D_GLIBCXX_USE_CXX11_ABI=0")
"""MindSpore's std::string is the one before C++11, as in most distributions' manylinux builds."""

TORCH_LIBRARIES = ("torch_cpu", "c10")
"""What code on at::Tensor is linked with."""


class MindSporeBackend(Backend):
    """Emits, builds and runs an op family for MindSpore."""

    name = "mindspore"
    title = "MindSpore"
    companion = "opc.backends.mindspore.on_gpu:MindSporeOnGpuBackend"
    tensor = "mindspore.Tensor"
    wraps = True
    environment = Environment("mindspore")

    def probe(self) -> Availability:
        """Say whether MindSpore is installed, and new enough, without importing it."""
        return environments.probe(self.name, "mindspore", versions=VERSIONS)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return what of a family MindSpore's custom ops can't carry."""
        lacked = lacking(family.ops, self.title, lambda d: d.row.mindspore is not None)
        return (*lacked, *(d for op in family.ops for d in _requires(op)))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `mindspore/` and its test."""
        return {
            "mindspore/__init__.py": api_source(family),
            "mindspore/operators.py": operators_source(family),
            "mindspore/support.py": support_source(family),
            "mindspore/threads.c": threads_source(family),
            f"mindspore/{family.name}_mindspore.cpp": library_source(family),
            **cuda_files(family),
            **(native_files(family, "torch") if native_code(family) else {}),
            **_test(family),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_mindspore.so`.

        Raises:
            SpecError: when native code needs a package that is not installed where MindSpore runs.
        """
        kernel = KernelBackend()
        adapter, threads = f"build/mindspore/{family.name}_mindspore.o", "build/mindspore/threads.o"
        native, link = _native(family)
        objects = (*kernel.objects(family), *(step.object for step in native), adapter, threads)
        return (
            Compile(f"mindspore/{family.name}_mindspore.cpp", adapter, FLAGS, glue=True, header="opc/adapters/mindspore.h"),
            Compile("mindspore/threads.c", threads, language="c", glue=True),
            *native,
            Link(objects, library_path(family), (*link, *kernel.link_flags(family), "-lpthread")),
        )

    def session(self, family: Family, package: Path) -> MindSporeSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.mindspore.session import MindSporeSession

        return MindSporeSession(family, package)

    def checks(self, session: MindSporeSession) -> Sequence[Check]:
        """Return what MindSpore promises of an op beyond values and gradients."""
        from opc.backends.mindspore.checks import MindSporeChecks

        return MindSporeChecks(session).all()


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_mindspore.so"


def _test(family: Family) -> dict[str, str]:
    dtypes = [f"{quoted(x.name)}: {quoted(example_text.precise(x).value)}" for x in family.forward.inputs]
    return example_text.test_file(family, templates, "mindspore", dtypes=Bracket("DTYPES = {", dtypes, "}").render())


def _requires(op: Op) -> Iterator[Diagnostic]:
    for operands, what in ((op.inputs, "inputs"), (op.outputs, "outputs")):
        if len(operands) > MAX_OPERANDS:
            yield Diagnostic(f"{op.name} has {len(operands)} {what}; MindSpore's adapter takes {MAX_OPERANDS}")
    if not op.inputs:
        yield Diagnostic(f"{op.name} has no inputs, by which MindSpore would infer anything")
    for a in op.attributes:
        if a.kind is AttributeKind.DTYPE and a.length is not None:
            yield Diagnostic(f"MindSpore's graphs can't hold the list of dtypes '{a.name}'", a.span)


def _native(family: Family) -> tuple[tuple[Compile, ...], tuple[str, ...]]:
    """Return the steps that compile the code on at::Tensor, and what it is linked with: the torch of MindSpore's environment."""
    native = native_code(family)
    if native is None:
        return (), ()
    folder = environments.folder(MindSporeBackend.name, "torch")
    if folder is None:
        reason = f"the native code of {family.name} needs torch, which is not installed where MindSpore runs"
        raise SpecError([Diagnostic(reason, native.span, hint="opc env create mindspore")])
    needs = libraries.find(native)
    # A compiler does not say when system headers have changed: another version is another command.
    version = environments.version(MindSporeBackend.name, "torch")
    flags = (*NATIVE_FLAGS, "-std=c++20", f"-DOPC_TORCH_VERSION={version}", "-isystem", str(folder / "include"), *needs.compile)
    step = Compile(source_path(family, "torch"), f"build/mindspore/{family.name}_torch_native.o", flags)
    files = [str(folder / "lib" / f"lib{name}.so") for name in TORCH_LIBRARIES]
    return (step,), (*needs.link, *files, f"-Wl,-rpath,{folder / 'lib'}")
