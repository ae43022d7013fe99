"""CUDA: a library of kernels for a GPU, and of functions of a C ABI that start them on the caller's stream."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc import config
from opc.backends.base import Availability, Backend, BuildStep, Compile, Link, Tool
from opc.backends.cuda import toolkit
from opc.backends.dtypes import fills_bytes, lacking
from opc.backends.kernel.backend import COMMON_FLAGS
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import install, install_extra
from opc.emit.cpp.text import comment
from opc.emit.cuda.files import cuda_source, refused
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.cuda.session import CudaSession

NAMESPACE = "-DOPC_VARIANT=device"
"""What kernels on a device are the variant of."""

CALL_HEADERS = ("opc/adapters/cuda_call.h", "opc/adapters/on_device.h")
"""What starts kernels that look for mistakes in data, for frameworks that never ask what these have found."""

EMULATED_FLAGS = ("-x", "c++", *COMMON_FLAGS, NAMESPACE, "-O0")
"""How a C++ compiler makes kernels for the emulation: to optimise them takes longer than it saves."""


class CudaBackend(Backend):
    """Emits, builds and runs kernels on a GPU, or where there is none on the CPU."""

    name = "cuda"
    title = "CUDA"
    on_device = True

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether sessions run a GPU or stand in for it, or kernels are for GPUs of other machines."""
        return "emulated" if toolkit.is_emulated() else "compiled" if toolkit.is_for_others() else "native"

    def probe(self) -> Availability:
        """Say whether NumPy is there; what a GPU lacks is emulated."""
        if find_spec("numpy") is None:
            return Availability(False, reason="numpy is not installed", install=install("numpy"))
        return Availability(True)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why a family has no kernels on a device."""
        return (*refused(family), *lacking(family.ops, "CUDA", fills_bytes))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the kernels, the header of their functions, and what a program without a framework needs beside them."""
        source = cuda_source(family)
        return {**source.files, "cuda/arrays.cu": _arrays(family, source.may_fault)}

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the library: by nvcc for a GPU, by the C++ compiler for the CPU.

        Raises:
            SpecError: when it is to be for GPUs of other machines, and there is no nvcc or nobody says which GPUs.
        """
        kernel, arrays = f"kernel/{family.name}.cu", ("cuda/arrays.cu", "build/cuda/arrays.o")
        made = kernel_objects(family)
        if toolkit.is_emulated():
            steps = tuple(Compile(source, made, EMULATED_FLAGS) for source, made in ((kernel, *made), arrays))
            library = (_emulated_library(),) if cuda_source(family).may_call_library else ()
            return (*steps, Link((*made, arrays[1]), toolkit.library_path(family), ("-lm", "-ldl", "-lpthread")), *library)
        architectures = config.load().architectures
        if toolkit.is_for_others() and (lacks := _lacking(architectures)) is not None:
            raise SpecError([lacks])
        nvcc, include = toolkit.nvcc() or "nvcc", toolkit.include()
        reads = tuple(
            str(path) for path in (*sorted((include / "opc").glob("c*/*.h")), *(include / name for name in CALL_HEADERS))
        )
        chosen = architecture_flags(architectures)
        command = (nvcc, *nvcc_flags(chosen), f"-I{include}", "-c")
        part = [(f"-DOPC_PART={n}",) for n in range(len(made))] if len(made) > 1 else [()]
        tools = [Tool((*command, *which), kernel, made, reads) for which, made in zip(part, made, strict=True)]
        tools.append(Tool(command, *arrays, reads))
        flags = (*chosen, "-cudart=static", *toolkit.libraries(nvcc))
        return (*tools, Link((*made, arrays[1]), toolkit.library_path(family), flags, compiler=(nvcc,)))

    def session(self, family: Family, package: Path) -> CudaSession:
        """Load the built library.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.cuda.session import CudaSession

        return CudaSession(family, package)


def kernel_objects(family: Family) -> tuple[str, ...]:
    """Return the objects of the kernels, relative to the package: several where nvcc compiles the source in parts."""
    parts = 1 if toolkit.is_emulated() else cuda_source(family).parts
    names = [family.name] if parts == 1 else [f"{family.name}_{n}" for n in range(parts)]
    return tuple(f"build/cuda/{name}.o" for name in names)


def _lacking(architectures: Sequence[str]) -> Diagnostic | None:
    """Return what kernels for GPUs of other machines lack."""
    asked = f"{toolkit.VARIABLE}={toolkit.NATIVE} asks for kernels for GPUs"
    if toolkit.nvcc() is None:
        return Diagnostic(f"{asked}, and there is no nvcc", hint=install_extra("cuda"))
    if not architectures:
        hint = 'name them in pyproject.toml: [tool.opc.cuda] architectures = ["sm_90"]'
        return Diagnostic(f"{asked}, and nothing says for which: this machine has none", hint=hint)
    return None


def _emulated_library() -> Link:
    """Return the step that makes what stands in for cuBLASLt: one object for all packages."""
    source = str(toolkit.include().parent / "emulation" / "cuda" / "cublaslt.cpp")
    own = Compile(source, "cublaslt.o", (*EMULATED_FLAGS[2:-1], "-O1"))
    return Link((), toolkit.EMULATED_LIBRARY, shared=(own,))


def _arrays(family: Family, faults: bool) -> str:
    """Return what a program without a framework needs, and the spec that the library is made from, for those that load it.

    Where kernels may report `faults`, frameworks that never ask for them call kernels by a function of this file.
    """
    lines = [comment(f"Generated by opc from {family.source_name}; edits are lost."), '#include "opc/cuda/arrays.h"']
    if faults:
        lines += [f'#include "{CALL_HEADERS[0]}"', "", f'#include "../kernel/{family.name}_cuda.h"']
    lines += ["", f'extern "C" OPC_EXPORT const char *opc_array_source(void) {{\n  return "{family.source_hash}";\n}}']
    if faults:
        lines += [f"OPC_ARRAY_CALL({family.name})"]
    return "\n".join((*lines, ""))


def architecture_flags(names: Sequence[str]) -> tuple[str, ...]:
    """Return nvcc's flags for some architectures, with PTX for those that come after the last; without names for this GPU."""
    if not names:
        return ("-arch=native",)
    numbers = sorted(int(name.removeprefix("sm_")) for name in names)
    codes = (*(f"arch=compute_{n},code=sm_{n}" for n in numbers), f"arch=compute_{numbers[-1]},code=compute_{numbers[-1]}")
    return tuple(flag for code in codes for flag in ("-gencode", code))


def nvcc_flags(architectures: Sequence[str]) -> tuple[str, ...]:
    """Return nvcc's flags for kernels, with those for architectures, which are compiled side by side."""
    hidden = "-fPIC,-fvisibility=hidden,-fno-strict-aliasing,-fwrapv"
    return ("-std=c++17", *architectures, "--threads", "0", NAMESPACE, "-Xcompiler", f"-O1,{hidden}")
