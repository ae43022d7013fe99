"""The tvm-ffi backend: functions of tvm-ffi's C ABI, which PyTorch, Paddle, CuPy, NumPy and others call.

A package's `tvm_ffi/` holds the C++ library and the Python function that calls it. None of tvm-ffi's headers is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Link, WheelPart
from opc.backends.dtypes import fills_bytes, lacking
from opc.backends.kernel.backend import KernelBackend
from opc.backends.tvm_ffi.library import MAX_OPERANDS, api_source, library_source, loader_source, threads_source
from opc.diagnostics import Diagnostic
from opc.distribution import install_extra
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.tvm_ffi.session import TvmFfiSession

DISTRIBUTION = "apache-tvm-ffi"
REQUIRED = f"{DISTRIBUTION}>=0.1.15.post2"
"""The first version whose Python has what is used, and is not withdrawn."""


class TvmFfiBackend(Backend):
    """Emits, builds and runs an op family for callers of tvm-ffi."""

    name = "tvm_ffi"
    title = "tvm-ffi"
    wraps = True
    library_of = "kernel"  # it hands on tensors as they come
    imports = ("tvm_ffi", "torch")

    def probe(self) -> Availability:
        """Say whether tvm-ffi is installed, and PyTorch, on whose tensors it is proved, without importing them."""
        if find_spec("torch") is None:
            return Availability(
                False, reason="it is proved on tensors of torch, which is not installed", install=install_extra("torch")
            )
        try:
            return Availability(True, version(DISTRIBUTION))
        except PackageNotFoundError:
            return Availability(False, reason=f"{DISTRIBUTION} is not installed", install=install_extra("tvm-ffi"))

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why the family can't be carried: integers that DLPack packs in bytes, or too many operands."""
        many = (
            Diagnostic(f"{op.name} has more operands than the {MAX_OPERANDS} that tvm-ffi's adapter takes")
            for op in family.ops
            if max(len(op.inputs), len(op.outputs)) > MAX_OPERANDS
        )
        return (*lacking(family.ops, self.title, fills_bytes), *many)

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `tvm_ffi/`."""
        return {
            "tvm_ffi/__init__.py": api_source(family),
            "tvm_ffi/library.py": loader_source(family),
            f"tvm_ffi/{family.name}_tvm_ffi.cpp": library_source(family),
            "tvm_ffi/threads.c": threads_source(family),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_tvm_ffi.so`, which needs nothing of tvm-ffi's to be built."""
        kernel, adapter, threads = KernelBackend(), f"build/{family.name}_tvm_ffi.o", "build/tvm_ffi_threads.o"
        flags = ("-O1", "-std=c++17", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti")
        return (
            *kernel.build(family),
            Compile(f"tvm_ffi/{family.name}_tvm_ffi.cpp", adapter, flags, glue=True),
            Compile("tvm_ffi/threads.c", threads, ("-O2", "-fvisibility=hidden", "-D_GNU_SOURCE"), "c", glue=True),
            Link((adapter, threads, *kernel.objects(family)), library_path(family), (*kernel.link_flags(family), "-lpthread")),
        )

    def wheel(self, family: Family) -> WheelPart:
        """Return the library, which tvm-ffi loads."""
        path = library_path(family)
        return WheelPart((path,), (REQUIRED,), handed=path)

    def session(self, family: Family, package: Path) -> TvmFfiSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.tvm_ffi.session import TvmFfiSession

        return TvmFfiSession(family, package)

    def checks(self, session: TvmFfiSession) -> Sequence[Check]:
        """Return what callers expect beyond values."""
        from opc.backends.tvm_ffi.checks import TvmFfiChecks

        return TvmFfiChecks(session).all()


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_tvm_ffi.so"
