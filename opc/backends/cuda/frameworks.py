"""Frameworks on a GPU as the proof calls them: backends that build on a framework's own and on the CUDA backend's kernels.

Where there is no such framework or no GPU, a library of `runtime/emulation/cuda` has tensors in the host's memory count as a
GPU's, in the framework for CPUs, and the CPU executes the kernels. A session changes its framework for the whole process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc.backends.base import Availability, Backend, Check, Compile, OpError, Unsupported
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import EMULATED_FLAGS, CudaBackend
from opc.backends.package import BUILD
from opc.diagnostics import Diagnostic
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Attributes, Inputs
    from opc.backends.cuda.session import CudaSession


class OnGpuBackend(Backend):
    """A framework on a GPU: a backend of the proof's alone, which adds no files to a package."""

    wraps = True

    @property
    @abstractmethod
    def framework(self) -> Backend:
        """The framework's own backend."""

    @property
    @abstractmethod
    def has_cuda(self) -> bool:
        """Whether the framework that is installed is one for GPUs."""

    @property
    def native(self) -> bool:
        """Whether sessions run a GPU: there are one, nvcc, and a framework for it."""
        return self.has_cuda and not toolkit.is_emulated()

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether sessions run a GPU or stand in for it."""
        return "native" if self.native else "emulated"

    def probe(self) -> Availability:
        """Say whether the framework is installed, and whether kernels are made for where its tensors lie."""
        found = self.framework.probe()
        if found.available and not self.native and not toolkit.is_emulated():
            reason = f"this {self.framework.title} has no CUDA, and kernels are made for this machine's GPU"
            return Availability(False, found.version, reason, f"{toolkit.VARIABLE}={toolkit.EMULATED} runs them on the CPU")
        return found

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why the framework, or kernels for a GPU, can't carry a family."""
        return (*self.framework.requires(family), *CudaBackend().requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return nothing: the files are those of the parts."""
        return {}

    def checks(self, session: object) -> Sequence[Check]:
        """Return nothing that the calls themselves do not prove."""
        return ()


def emulation(name: str) -> str:
    """Return the path of a source that has a framework for CPUs call kernels for a GPU."""
    return str(toolkit.include().parent / "emulation" / "cuda" / name)


def emulated_library(family: Family, framework: str, flags: Sequence[str]) -> tuple[Compile, ...]:
    """Return the steps that compile the kernels for the CPU, and a framework's library for GPUs as its header emulates them."""
    source, made = f"{framework}/{family.name}_{framework}.cu", f"build/on_gpu/{framework}.o"
    # The CUDA backend's own where it makes them for the CPU too.
    folder = "build/cuda" if toolkit.is_emulated() else "build/on_gpu/kernel"
    return (
        Compile(f"kernel/{family.name}.cu", f"{folder}/{family.name}.o", EMULATED_FLAGS),
        Compile(source, made, ("-x", "c++", "-include", emulation(f"{framework}.h"), *flags), glue=True),
    )


def beside(family: Family, framework: str) -> str:
    """Return the folder, relative to the package, of a package with the same files and another library."""
    return f"{BUILD}/on_gpu/{framework}/{family.name}"


def linked(family: Family, package: Path, framework: str) -> Path:
    """Return the package's folder for another library, with links to its files: a module finds the library beside itself."""
    folder = package / beside(family, framework)
    if not (folder / BUILD).is_dir():
        raise ImportError(f"{folder} has no library: it has not been built")
    for path in package.iterdir():
        if path.name != BUILD:
            with suppress(FileExistsError):
                (folder / path.name).symlink_to(path.absolute())
    return folder


def refuse_what_stops(session: CudaSession | None, op: str, inputs: Inputs, attributes: Attributes) -> None:
    """Raise Unsupported for a call whose data stop the GPU in a framework that never asks what kernels found.

    `session` calls the kernels themselves; it is None where there is no GPU that could be stopped.
    """
    if session is None:
        return
    try:
        session.call(op, inputs, attributes)
    except OpError as error:
        if session.told_by_data:
            raise Unsupported(f"the framework stops the GPU where kernels find this in data: {error}") from None


__all__ = ["OnGpuBackend", "beside", "emulated_library", "emulation", "linked", "refuse_what_stops"]
