"""TensorRT: plugins of an op for version 2 and version 3 of its interfaces, in 8.6, 10 and 11, and a class of plugins in Python.

They run inference alone: of a family the forward op has plugins. The kernels are those of the CUDA backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.base import Availability, Backend, BuildStep, Compile, Link
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import EMULATED_FLAGS
from opc.backends.dtypes import lacking
from opc.backends.tensorrt import files
from opc.backends.tensorrt.paths import EMULATED_VERSION, host_path, library_path
from opc.diagnostics import Diagnostic
from opc.distribution import install
from opc.emit.cuda.files import cuda_files, refused
from opc.ir.op import AttributeKind, Family

if TYPE_CHECKING:
    from opc.backends.tensorrt.session import TensorRTSession

MAX_OPERANDS = 32
"""`opc::trt::max_operands`."""

APART = "-DOPC_TENSORRT_APART"
"""Leaves out of an op's library what is the same for all ops; the proof compiles that once."""

MAX_VARIABLES = 8
"""`opc::trt::max_variables`."""


class TensorRTBackend(Backend):
    """Emits plugins, and runs them on a host of opc's own, with kernels on the CPU."""

    name = "tensorrt"
    title = "TensorRT"
    wraps = True
    size_expressions = True
    takes_name = True
    execution = "emulated"

    def probe(self) -> Availability:
        """Say whether NumPy is there: the host is opc's own, compiled against its declarations of TensorRT's interfaces."""
        if find_spec("numpy") is None:
            return Availability(False, reason="numpy is not installed", install=install("numpy"))
        return Availability(True)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why TensorRT can't carry the op. Ops derived from it take no part: TensorRT runs inference only."""
        return tuple(_requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the kernels and the files of `tensorrt/`."""
        return {**cuda_files(family), **files.files(family)}

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the library of plugins, and the host that the proof calls it through."""
        return tuple(steps(family, EMULATED_VERSION))

    def session(self, family: Family, package: Path) -> TensorRTSession:
        """Load the host and the library.

        Raises:
            ImportError: when they have not been built.
        """
        from opc.backends.tensorrt.session import TensorRTSession

        return TensorRTSession(family, package)


def _requires(family: Family) -> Iterator[Diagnostic]:
    op = family.forward
    yield from refused(family)
    yield from lacking([op], "TensorRT", lambda d: d.row.tensorrt is not None)
    for a in op.attributes:
        if a.length is not None and a.kind in (AttributeKind.STR, AttributeKind.DTYPE):
            yield Diagnostic(f"TensorRT's plugins have no fields of several texts such as '{a.name}'", a.span)
    for operands, what in ((op.inputs, "inputs"), (op.outputs, "outputs")):
        if len(operands) > MAX_OPERANDS:
            yield Diagnostic(f"{op.name} has {len(operands)} {what}; TensorRT's adapter takes {MAX_OPERANDS}")
    if not op.inputs:
        yield Diagnostic(f"{op.name} has no inputs, and TensorRT's plugins have some")
    if len(op.types) > MAX_VARIABLES:
        yield Diagnostic(f"{op.name} has {len(op.types)} type variables; TensorRT's adapter takes {MAX_VARIABLES}")


def declarations(version: str) -> tuple[str, ...]:
    """Return the options by which a compiler finds the declarations of a version of TensorRT."""
    root = toolkit.include().parent / "emulation" / "tensorrt"
    return (f"-I{root / version}", f"-I{root / 'include'}")


def steps(family: Family, version: str) -> Iterator[BuildStep]:
    """Yield the steps that make the library and the host for a version of TensorRT's interfaces.

    What is the same for all ops, most of both, is compiled once.
    """
    folder = f"build/tensorrt/{version}"
    flags = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-pthread", *declarations(version))
    kernel, adapter = emulated_kernel(family), f"{folder}/adapter.o"
    apart = (*flags, APART)
    emulation = toolkit.include().parent / "emulation" / "tensorrt"
    plugins = Compile(str(emulation / "plugins.cpp"), "plugins.o", apart, glue=True)
    host = Compile(str(emulation / "host.cpp"), "host.o", flags, glue=True)
    status = Compile(
        f"tensorrt/{family.name}_status.cu",
        "build/tensorrt/status.o",
        ("-x", "c++", "-std=c++17", "-fPIC", "-fvisibility=hidden"),
    )
    yield from (kernel, status)
    yield Compile(f"tensorrt/{family.name}_tensorrt.cpp", adapter, apart, glue=True)
    yield Link((adapter, status.object, kernel.object), library_path(family, version), ("-lm",), shared=(plugins,))
    yield Link((), host_path(version), ("-ldl",), shared=(host,))


def emulated_kernel(family: Family) -> Compile:
    """Return the step that compiles the kernels for the CPU: the CUDA backend's own where it does so too."""
    folder = "build/cuda" if toolkit.is_emulated() else "build/tensorrt/kernel"
    return Compile(f"kernel/{family.name}.cu", f"{folder}/{family.name}.o", EMULATED_FLAGS)


__all__ = ["TensorRTBackend", "steps"]
