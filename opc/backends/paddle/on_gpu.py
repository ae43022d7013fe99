"""Paddle on a GPU as the proof calls it: natively, or in a Paddle for CPUs whose tensors count as a GPU's.

The library is that of `paddle/<op>_paddle.cu`, made beside the one that users load (`runtime/emulation/cuda/paddle.h`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc import config
from opc.backends import environments
from opc.backends.base import Availability, Backend, BuildStep, Link, Tool
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend, architecture_flags, kernel_objects, nvcc_flags
from opc.backends.cuda.frameworks import OnGpuBackend, beside, emulated_library, linked, refuse_what_stops
from opc.backends.cuda.session import CudaSession
from opc.backends.kernel.backend import KernelBackend
from opc.backends.paddle.backend import VERSIONS, PaddleBackend, headers, library_path, linked_libraries
from opc.backends.paddle.session import PaddleSession
from opc.backends.paddle.values import to_paddle
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

DISTRIBUTION = "paddlepaddle-gpu"
COUNTS = 5
"""How many numbers `emulated_calls` has: the first are the calls of kernels, the fourth those on another stream than Paddle's."""


class PaddleOnGpuBackend(OnGpuBackend):
    """Paddle with kernels for GPUs."""

    name = "paddle_cuda"
    title = "Paddle CUDA"
    parts = ("paddle", "cuda")
    environment = PaddleBackend.environment

    @property
    def framework(self) -> Backend:
        """The backend of Paddle."""
        return PaddleBackend()

    @property
    def has_cuda(self) -> bool:
        """Whether Paddle is the one for GPUs."""
        return environments.version("paddle", DISTRIBUTION) is not None

    def probe(self) -> Availability:
        """Say whether Paddle is installed; where there is a GPU and Paddle's package for it, that one."""
        return environments.probe("paddle", DISTRIBUTION, versions=VERSIONS) if self.native else self.framework.probe()

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the library for GPUs, in the folder of a package of its own."""
        flags, kernel, made = headers(family), KernelBackend(), f"{beside(family, 'paddle')}/{library_path(family)}"
        objects = ("build/paddle_threads.o", *kernel.objects(family))
        users = [s for s in PaddleBackend().build(family) if not isinstance(s, Link)]
        if not self.native:
            steps = emulated_library(family, "paddle", ("-O1", "-std=c++17", *flags))
            link = (*linked_libraries(), *kernel.link_flags(family), "-lpthread")
            return (*users, *steps, Link((*(s.object for s in steps), *objects), made, link))
        nvcc, include = toolkit.nvcc() or "nvcc", toolkit.include()
        architectures = architecture_flags(config.load().architectures)
        command = (
            nvcc,
            *nvcc_flags(architectures),
            "-diag-suppress",
            "20012",
            "-DPADDLE_WITH_CUDA",
            *flags,
            f"-I{include}",
            "-c",
        )
        cuda = CudaBackend().build(family)
        twin = Tool(
            command,
            f"paddle/{family.name}_paddle.cu",
            "build/on_gpu/paddle.o",
            next(s.reads for s in cuda if isinstance(s, Tool)),
        )
        link = (*architectures, "-cudart=static", *toolkit.libraries(nvcc), *linked_libraries(), "-lm", "-lpthread")
        own = (twin.output, *kernel_objects(family), *objects)
        return (*users, *cuda, twin, Link(own, made, link, compiler=(nvcc,)))

    def session(self, family: Family, package: Path) -> PaddleOnGpuSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        return PaddleOnGpuSession(family, package, native=self.native)


class PaddleOnGpuSession(PaddleSession):
    """Calls the operators of the library for GPUs in dynamic graphs."""

    def __init__(self, family: Family, package: Path, *, native: bool) -> None:
        """Import the package with this library.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, linked(family, package, "paddle"))
        self.kernels = CudaSession(family, package) if native else None
        library = ctypes.CDLL(str(self.operators.LIBRARY))
        self.counts = None if native else (ctypes.c_int64 * COUNTS).in_dll(library, "emulated_calls")

    def tensor(self, array: Array) -> Any:
        """Return a tensor on the GPU with the array's values; a strided one is made contiguous there."""
        found = to_paddle(array)
        return found if self.kernels is None else found.cuda()

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        refuse_what_stops(self.kernels, op, inputs, attributes)
        return super().call(op, inputs, attributes, only)

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call an op, and see to it that its kernels for a GPU are called, on Paddle's stream."""
        before = self.counts[0] if self.counts is not None else 0
        found = super().run(op, tensors, attributes, only)
        if self.counts is not None:
            assert self.counts[0] > before, "no kernel for a GPU was called"
            assert self.counts[3] == 0, "a kernel was on another stream than Paddle's"
        return found


__all__ = ["PaddleOnGpuBackend"]
