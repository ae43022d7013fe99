"""MindSpore on a GPU as the proof calls it: in a MindSpore for CPUs, whose calls are taken for calls on a GPU.

The library is that of `mindspore/<op>_mindspore.cu`, made beside the one that users load (`runtime/emulation/cuda/mindspore.h`).
MindSpore's versions that opc takes have no package for GPUs, so that nothing of this runs on one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opc.backends.base import Availability, Backend, BuildStep, Link
from opc.backends.cuda.frameworks import OnGpuBackend, beside, emulated_library, linked
from opc.backends.kernel.backend import KernelBackend
from opc.backends.mindspore.backend import FLAGS, MindSporeBackend, library_path
from opc.backends.mindspore.session import MindSporeSession
from opc.ir.op import Family

COUNTS = 5
"""How many numbers `emulated_calls` has: the first are calls of kernels, the fourth those on another stream than MindSpore's."""


class MindSporeOnGpuBackend(OnGpuBackend):
    """MindSpore with kernels for GPUs."""

    name = "mindspore_cuda"
    title = "MindSpore CUDA"
    parts = ("mindspore", "cuda")
    environment = MindSporeBackend.environment
    has_cuda = False

    @property
    def framework(self) -> Backend:
        """The backend of MindSpore."""
        return MindSporeBackend()

    def probe(self) -> Availability:
        """Say whether MindSpore is installed."""
        return self.framework.probe()

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the library for GPUs, in the folder of a package of its own."""
        kernel, own = KernelBackend(), MindSporeBackend().build(family)
        steps = emulated_library(family, "mindspore", (*FLAGS, "-DIN_MINDSPORE"))
        users = [s for s in own if not isinstance(s, Link)]
        objects = (*(s.object for s in steps), "build/mindspore/threads.o", *kernel.objects(family))
        made = f"{beside(family, 'mindspore')}/{library_path(family)}"
        return (*kernel.build(family), *users, *steps, Link(objects, made, (*kernel.link_flags(family), "-lpthread")))

    def session(self, family: Family, package: Path) -> MindSporeOnGpuSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        return MindSporeOnGpuSession(family, package)


class MindSporeOnGpuSession(MindSporeSession):
    """Calls the primitives of the library for GPUs, in PyNative mode."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package with this library.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, linked(family, package, "mindspore"))
        self.counts = (ctypes.c_int64 * COUNTS).in_dll(ctypes.CDLL(str(self.operators.LIBRARY)), "emulated_calls")

    def call(self, op: str, inputs: Any, attributes: Any, only: Sequence[str] | None = None) -> dict[str, Any]:
        """Run one op of the family, and see to it that its kernels for a GPU are called, on MindSpore's stream."""
        before = self.counts[0]
        # MindSpore computes when results are read.
        found = super().call(op, inputs, attributes, only)
        assert self.counts[0] > before, "no kernel for a GPU was called"
        assert self.counts[3] == 0, "a kernel was on another stream than MindSpore's"
        return found


__all__ = ["MindSporeOnGpuBackend"]
