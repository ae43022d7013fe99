"""ONNX Runtime: a custom-op library that calls the kernels, built without ONNX Runtime's headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Link, WheelPart
from opc.backends.dtypes import lacking
from opc.backends.example_text import test_file
from opc.backends.kernel.backend import KernelBackend
from opc.backends.onnxruntime.library import MAX_OPERANDS, joint_source, library_source, package_source, templates
from opc.backends.onnxruntime.values import has
from opc.diagnostics import Diagnostic
from opc.distribution import install_extra
from opc.emit.dtypes import type_variable
from opc.emit.onnx.types import used_variables
from opc.ir.op import AttributeKind, Family, Op

if TYPE_CHECKING:
    from opc.backends.onnxruntime.session import OnnxRuntimeSession


LOWEST = "1.18"
"""The first version of ONNX Runtime whose C API has all that `opc/adapters/onnxruntime.h` asks for."""

FLAGS = ("-O2", "-fno-exceptions", "-fno-rtti")


class OnnxRuntimeBackend(Backend):
    """Custom-op libraries of ONNX Runtime."""

    name = "onnxruntime"
    title = "ONNX Runtime"
    companion = "opc.backends.onnxruntime.on_gpu:OnnxRuntimeOnGpuBackend"

    def probe(self) -> Availability:
        """Say whether ONNX Runtime is installed."""
        for package in ("onnxruntime", "onnxruntime-gpu"):
            try:
                return Availability(True, version(package))
            except PackageNotFoundError:
                continue
        return Availability(False, reason="onnxruntime is not installed", install=install_extra("onnxruntime"))

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return what of a family ONNX Runtime's custom ops can't carry."""
        lacked = lacking(family.ops, self.title, has)
        return (*lacked, *(d for op in family.ops for d in _requires(op)))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the library's source, the module that finds the library, and their tests."""
        return {
            f"onnxruntime/{family.name}_ort.cpp": library_source(family),
            "onnxruntime/__init__.py": package_source(family),
            **test_file(family, templates, "onnxruntime"),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_ort.so`."""
        kernel = KernelBackend()
        object_ = f"build/onnxruntime/{family.name}_ort.o"
        return (
            Compile(f"onnxruntime/{family.name}_ort.cpp", object_, FLAGS, glue=True),
            Link((object_, *kernel.objects(family)), library_path(family), kernel.link_flags(family)),
        )

    def wheel(self, family: Family) -> WheelPart:
        """Return the library of custom ops: one serves every ONNX Runtime since the version of the C API that it asks for."""
        return WheelPart((library_path(family),), (f"onnxruntime>={LOWEST}",), handed=library_path(family))

    def joint_library(self, libraries: Sequence[str]) -> str:
        """Return C of a library of custom ops that registers those of others."""
        return joint_source(libraries)

    def session(self, family: Family, package: Path) -> OnnxRuntimeSession:
        """Load the built library."""
        from opc.backends.onnxruntime.session import OnnxRuntimeSession

        return OnnxRuntimeSession(family, package)

    def checks(self, session: OnnxRuntimeSession) -> Sequence[Check]:
        """Return what ONNX Runtime users expect beyond values."""
        from opc.backends.onnxruntime.checks import OnnxRuntimeChecks

        return OnnxRuntimeChecks(session).all()


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_ort.so"


def _requires(op: Op) -> Iterator[Diagnostic]:
    for operands in (op.inputs, op.outputs):
        if len(operands) > MAX_OPERANDS:
            yield Diagnostic(f"{op.name} has {len(operands)} operands; ONNX Runtime's adapter takes {MAX_OPERANDS}")
    # Where an attribute says the type, a call may leave out each optional input that has it.
    chosen = {a.binds for a in op.attributes if a.kind is AttributeKind.DTYPE}
    typed = [(v.name, o.optional) for o in op.inputs if (v := type_variable(o.type)) is not None]
    inputs = {name for name, optional in typed if not (optional and name in chosen)}
    for variable in used_variables(op):
        if variable.name not in inputs:
            given = " that is always given" if any(name == variable.name for name, _ in typed) else ""
            reason = "and ONNX Runtime chooses a custom op's types by its inputs"
            yield Diagnostic(f"{op.name}: the type {variable} is not that of an input{given}, {reason}")
    for a in op.attributes:
        if a.kind is AttributeKind.STR and a.length is not None:
            yield Diagnostic(f"ONNX Runtime's kernels can't read the list of strings '{a.name}'", a.span)
