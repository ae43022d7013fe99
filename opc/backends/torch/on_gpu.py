"""PyTorch on a GPU as the proof calls it: natively, or in a torch for CPUs that is made to have GPUs (`emulated_gpu`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import Backend, BuildStep, Compile, Link
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.frameworks import OnGpuBackend, emulation
from opc.backends.torch.backend import TorchBackend
from opc.backends.torch.session import TorchSession
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    import torch

    from opc.backends.base import Array

EMULATED = "build/on_gpu/libtorch_cuda.so"
"""What a torch for CPUs lacks of CUDA, relative to the package; the name is that of torch's own."""

GUARDS = 4
"""How many numbers `emulated_guards` of it has."""


def _folder() -> Path:
    """Return the folder of torch."""
    found = find_spec("torch")
    return Path(str(found.origin if found is not None else "")).parent


def emulation_steps() -> tuple[BuildStep, ...]:
    """Return the step that makes the library of `EMULATED`: against torch's headers, one object for all packages."""
    folder = _folder()
    places = ("-isystem", str(folder / "include"), "-isystem", str(folder / "include" / "torch" / "csrc" / "api" / "include"))
    own = Compile(emulation("torch.cpp"), "torch_cuda.o", ("-std=c++20", "-fvisibility=default", *places), glue=True)
    flags = ("-Wl,-soname,libtorch_cuda.so", f"-Wl,-rpath,{folder / 'lib'}", f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu")
    return (Link((), EMULATED, flags, shared=(own,)),)


class TorchOnGpuBackend(OnGpuBackend):
    """PyTorch with kernels for GPUs."""

    name = "torch_cuda"
    title = "PyTorch CUDA"
    parts = ("torch", "cuda")

    @property
    def framework(self) -> Backend:
        """The backend of PyTorch."""
        return TorchBackend()

    @property
    def has_cuda(self) -> bool:
        """Whether torch has its library for CUDA."""
        return (_folder() / "lib" / "libtorch_cuda.so").exists()

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make torch's library and the kernels'."""
        steps = (*TorchBackend().build(family), *CudaBackend().build(family))
        return steps if self.native else (*steps, *emulation_steps())

    def session(self, family: Family, package: Path) -> TorchOnGpuSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        return TorchOnGpuSession(family, package, native=self.native)


class TorchOnGpuSession(TorchSession):
    """Calls the operators of a built package on tensors of CUDA's; what kernels find in data, it asks for after each call."""

    guards: ctypes.Array[ctypes.c_int32] | None = None

    def __init__(self, family: Family, package: Path, *, native: bool) -> None:
        """Import the package, in a torch with CUDA or one that is made to have it.

        Raises:
            ImportError: when it is not built.
        """
        if not native:
            from opc.backends.torch import emulated_gpu

            library = emulated_gpu.load(package / EMULATED)
            self.guards = (ctypes.c_int32 * GUARDS).in_dll(library, "emulated_guards")
        super().__init__(family, package)
        # The first time, it only has the kernels note down what they find.
        self.module.check_gpu()

    def tensor(self, array: Array) -> torch.Tensor:
        """Return a tensor on the GPU with the array's values and strides."""
        found = super().tensor(array)
        if self.guards is not None:
            from opc.backends.torch import emulated_gpu

            return emulated_gpu.to_gpu(found)
        if found.numel() == 0:
            return found.cuda()
        length = 1 + sum((n - 1) * s for n, s in zip(found.shape, found.stride(), strict=True))
        return found.as_strided((length,), (1,)).cuda().as_strided(found.shape, found.stride())

    def array(self, tensor: torch.Tensor) -> Array:
        """Return an array with the values of a tensor, which is on the GPU."""
        assert tensor.is_cuda, f"a result is on {tensor.device}"
        if self.guards is not None:
            from opc.backends.torch import emulated_gpu

            return super().array(emulated_gpu.to_cpu(tensor))
        return super().array(tensor.cpu())

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call an op without recording it, and ask what its kernels have found."""
        before = self.guards[0] if self.guards is not None else 0
        found = super().run(op, tensors, attributes, only)
        assert self.guards is None or self.guards[0] > before, "no kernel for a GPU was called"
        self.module.check_gpu()
        return found


__all__ = ["EMULATED", "TorchOnGpuBackend", "emulation_steps"]
