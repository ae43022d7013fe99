"""ONNX Runtime's CUDA provider as the proof calls it: natively, or a plugin in its place in an ONNX Runtime for CPUs, whose
memory is the host's (`runtime/emulation/cuda/onnxruntime.cpp`)."""

from __future__ import annotations

import ctypes
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import Backend, BuildStep, Compile, Link, OpError, Unsupported
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.frameworks import OnGpuBackend, emulation, refuse_what_stops
from opc.backends.cuda.session import CudaSession
from opc.backends.node_call import Evaluate, NodeCall
from opc.backends.onnxruntime.backend import OnnxRuntimeBackend
from opc.backends.onnxruntime.session import OnnxRuntimeSession
from opc.backends.onnxruntime.values import quiet, run
from opc.ir.op import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opc.backends.base import Array, Attributes, Inputs

EMULATED = "build/on_gpu/libonnxruntime_cuda.so"
"""The provider in place of CUDA's, relative to the package."""

PROVIDER = "CUDAExecutionProvider"
COUNTS = 5
"""How many numbers `emulated_counts` writes, the first of them the nodes that the provider has taken."""


class OnnxRuntimeOnGpuBackend(OnGpuBackend):
    """ONNX Runtime with kernels for GPUs."""

    name = "onnxruntime_cuda"
    title = "ONNX Runtime CUDA"
    parts = ("onnxruntime", "cuda")

    @property
    def framework(self) -> Backend:
        """The backend of ONNX Runtime."""
        return OnnxRuntimeBackend()

    @property
    def has_cuda(self) -> bool:
        """Whether ONNX Runtime has its library for CUDA."""
        found = find_spec("onnxruntime")
        place = Path(str(found.origin if found is not None else "")).parent
        return (place / "capi" / "libonnxruntime_providers_cuda.so").exists()

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the library of custom ops and the kernels'."""
        steps = (*OnnxRuntimeBackend().build(family), *CudaBackend().build(family))
        own = Compile(emulation("onnxruntime.cpp"), "onnxruntime_cuda.o", glue=True)
        return steps if self.native else (*steps, Link((), EMULATED, shared=(own,)))

    def session(self, family: Family, package: Path) -> OnnxRuntimeOnGpuSession:
        """Load the built library.

        Raises:
            ImportError: when it has not been built.
        """
        return OnnxRuntimeOnGpuSession(family, package, native=self.native)


class OnnxRuntimeOnGpuSession(OnnxRuntimeSession):
    """Runs single-node models on CUDA's provider, and sees to it that this takes the node."""

    has_functions = False

    def __init__(self, family: Family, package: Path, *, native: bool) -> None:
        """Load the package, and where there is no GPU the provider that stands in.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        self.kernels = CudaSession(family, package) if native else None
        self.provider = None if native else _Emulated.of(package / EMULATED)

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        if self.ops[op].told:
            raise Unsupported("the CPU's provider runs the node: what tells a size from data would have to wait for the GPU")
        refuse_what_stops(self.kernels, op, inputs, attributes)
        return super().call(op, inputs, attributes, only)

    def load(self, call: NodeCall) -> Evaluate:
        """Load the model of a call, with the library."""
        import onnxruntime

        options, model = quiet(self.runtime.session_options()), call.model().SerializeToString()
        try:
            if self.provider is None:
                options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
                return partial(run, onnxruntime.InferenceSession(model, options, providers=[PROVIDER]))
            before = self.provider.nodes
            options.add_provider_for_devices(self.provider.devices, {})
            loaded = onnxruntime.InferenceSession(model, options)
        except Exception as error:
            raise OpError(str(error)) from error
        assert self.provider.nodes == before + 1, "the node is not the provider's"
        return partial(run, loaded)


class _Emulated:
    """The provider that stands in for CUDA's; a process registers it once."""

    _made: _Emulated | None = None

    def __init__(self, path: Path) -> None:
        import onnxruntime

        try:
            # Its name tells libraries of ops that kernels which compute on the CPU are right.
            self.library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ImportError(f"{path} can't be loaded: {error}") from error
        onnxruntime.register_execution_provider_library(PROVIDER, str(path))
        self.devices: list[Any] = [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]

    @classmethod
    def of(cls, path: Path) -> _Emulated:
        """Return the provider, registered from a library where none is."""
        if cls._made is None:
            cls._made = cls(path)
        return cls._made

    @property
    def nodes(self) -> int:
        """How many nodes it has taken."""
        counts = (ctypes.c_int * COUNTS)()
        self.library.emulated_counts(counts)
        return counts[0]


__all__ = ["EMULATED", "OnnxRuntimeOnGpuBackend"]
