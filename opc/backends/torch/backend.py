"""The PyTorch backend: operators on libtorch's stable C shim, built without torch's headers.

A package's `torch/` holds the C++ library, which registers schemas and kernels (`library`), its Python side with fake kernels,
derivatives and vmap (`operators`, `derivatives`, `batching`), the function people call (`api`), and the export to ONNX
(`export`). The shim's functions that are used are those of torch 2.10 and later. Calls on a GPU go to the library that the CUDA
backend makes of the op: `opc/adapters/torch_cuda.h` finds it when the first one comes, with what torch's own library for CUDA has
of the shim.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Link, WheelPart
from opc.backends.batching import needs_batch_axes
from opc.backends.dtypes import lacking
from opc.backends.kernel import libraries
from opc.backends.kernel.backend import NATIVE_FLAGS, KernelBackend
from opc.backends.torch import generated_tests
from opc.backends.torch.api import api_source
from opc.backends.torch.export import onnx_source
from opc.backends.torch.library import library_source, stub_source
from opc.backends.torch.operators import dispatch_source, late_source, operators_source
from opc.backends.torch.schema import MAX_ARGUMENTS, count_arguments
from opc.backends.torch.sharding import sharding_source
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import install_extra
from opc.emit.kernel.native import native_files, source_path
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.torch.session import TorchSession

INSTALL = install_extra("torch")
LOWEST = (2, 10)
"""The first version of torch whose shim has every function that `opc/adapters/torch.h` calls."""


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_torch.so"


def _native(family: Family) -> tuple[tuple[Compile, ...], tuple[str, ...]]:
    """Return the steps that compile the code on at::Tensor, and what it is linked with."""
    native = family.native_for("torch")
    if native is None:
        return (), ()
    found = find_spec("torch")
    if found is None or found.origin is None:
        raise SpecError(
            [Diagnostic(f"the native code of {family.name} needs torch's headers, and torch is not installed", hint=INSTALL)]
        )
    include = Path(found.origin).parent / "include"
    needs = libraries.find(native)
    flags = (*NATIVE_FLAGS, "-std=c++20", "-isystem", str(include), *needs.compile)
    return (Compile(source_path(family, "torch"), f"build/{family.name}_torch_native.o", flags),), needs.link


class TorchBackend(Backend):
    """Emits, builds and runs an op family for PyTorch."""

    name = "torch"
    title = "PyTorch"
    companion = "opc.backends.torch.on_gpu:TorchOnGpuBackend"
    tensor = "torch.Tensor"
    wraps = True
    on_gpu = "cuda"
    imports = (
        "torch",
        # What torch.library.opcheck, torch.compile and torch.onnx.export import when they are first called.
        "torch.testing._internal.optests",
        "torch._dynamo.testing",
        "torch._inductor.compile_fx",
        "torch.onnx._internal.exporter._compat",
        "onnxscript.function_libs.torch_lib.ops",
        # Torch's own sample inputs.
        "torch.testing._internal.common_methods_invocations",
    )

    def probe(self) -> Availability:
        """Say whether torch is installed, and new enough, without importing it."""
        try:
            version = metadata.version("torch")
        except metadata.PackageNotFoundError:
            return Availability(False, reason="torch is not installed", install=INSTALL)
        numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
        if numbers < LOWEST:
            reason = f"torch {version} is older than {'.'.join(map(str, LOWEST))}, which first has all of the C shim"
            return Availability(False, version, reason, INSTALL)
        return Availability(True, version)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why torch can't carry the family: dtypes it lacks, no input to choose a device by, too many arguments."""
        op = family.forward
        found = list(lacking(family.ops, self.title, lambda d: d.row.torch is not None))
        if all(x.optional for x in op.inputs):
            found.append(Diagnostic(f"{op.name} has no input that is always given, by which torch could choose a device"))
        batched = needs_batch_axes(family)
        for each in family.ops:
            if (count := count_arguments(each, batched=batched)) > MAX_ARGUMENTS:
                found.append(Diagnostic(f"{each.name} has {count} arguments; an operator of torch takes {MAX_ARGUMENTS}"))
        return tuple(found)

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `torch/` and its test."""
        name = family.name
        return {
            "torch/__init__.py": api_source(family),
            "torch/dispatch.py": dispatch_source(family),
            "torch/late.py": late_source(family),
            "torch/libtorch_stub.c": stub_source(family),
            "torch/onnx.py": onnx_source(family),
            "torch/operators.py": operators_source(family),
            "torch/sharding.py": sharding_source(family),
            f"torch/{name}_torch.cpp": library_source(family),
            **native_files(family, "torch"),
            **generated_tests.files(family),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_torch.so`.

        It is linked against a stand-in for libtorch_cpu.so of the same soname, so that torch need not be installed; at run time
        the loader finds torch's own, which is loaded already. Only code on at::Tensor needs torch's headers.

        Raises:
            SpecError: when native code needs torch or another package, which is not installed.
        """
        kernel = KernelBackend()
        name = family.name
        adapter, stub, library = f"build/{name}_torch.o", "build/libtorch_stub.o", "build/stub/libtorch_cpu.so"
        native, native_link = _native(family)
        objects = (*kernel.objects(family), *(step.object for step in native), adapter, library)
        return (
            *kernel.build(family),
            Compile(f"torch/{name}_torch.cpp", adapter, ("-O2",), glue=True),
            Compile("torch/libtorch_stub.c", stub, ("-fvisibility=default",), "c", glue=True),
            Link((stub,), library, ("-Wl,-soname,libtorch_cpu.so",)),
            *native,
            Link(objects, library_path(family), (*native_link, *kernel.link_flags(family))),
        )

    def wheel(self, family: Family) -> WheelPart:
        """Return the library of operators: one serves every torch whose C shim has what it calls."""
        return WheelPart((library_path(family),), (f"torch>={'.'.join(map(str, LOWEST))}",), registers=True)

    def session(self, family: Family, package: Path) -> TorchSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.torch.session import TorchSession

        return TorchSession(family, package)

    def checks(self, session: TorchSession) -> Sequence[Check]:
        """Return what torch promises of an op beyond values and gradients."""
        from opc.backends.torch.checks import TorchChecks

        return TorchChecks(session).all()

    def unreadable(self, value: Any) -> str:
        """Return what keeps a tensor from a kernel for dense ones in the memory of the CPU or a GPU of CUDA's."""
        if str(value.layout) != "torch.strided":
            return f"has the layout {value.layout}"
        if value.is_quantized:
            return "is quantized"
        return "" if value.device.type in ("cpu", "cuda", "meta") else f"is on {value.device}"
