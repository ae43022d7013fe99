"""The JAX backend: handlers of XLA's foreign functions, and primitives that call them.

A package's `jax/` holds the C++ library of handlers (`library`), the primitives with derivatives and vmap (`operators`), and the
function people call (`api`). Of jaxlib's headers one is compiled, XLA's C API of foreign functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import environments
from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Environment, Link, WheelPart
from opc.backends.dtypes import lacking
from opc.backends.example_text import test_file
from opc.backends.jax.api import api_source
from opc.backends.jax.library import MAX_OPERANDS, library_source, templates
from opc.backends.jax.operators import operators_source, shared_sources
from opc.backends.kernel.backend import KernelBackend
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.jax.session import JaxSession

VERSIONS = ">=0.10"
"""The versions of JAX whose interfaces are used."""


class JaxBackend(Backend):
    """Emits, builds and runs an op family for JAX."""

    name = "jax"
    title = "JAX"
    tensor = "jax.Array"
    wraps = True
    environment = Environment("jax")
    imports = ("jax", "jax.export")

    def probe(self) -> Availability:
        """Say whether JAX is installed, and new enough, without importing it."""
        return environments.probe(self.name, "jax", versions=VERSIONS)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why JAX can't carry the family: dtypes that it lacks, no input, or too many operands."""
        found = list(lacking(family.ops, self.title, lambda d: d.row.xla is not None))
        for op in family.ops:
            if max(len(op.inputs), len(op.outputs)) > MAX_OPERANDS:
                found.append(Diagnostic(f"{op.name} has more operands than the {MAX_OPERANDS} that JAX's adapter takes"))
        return tuple(found)

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `jax/` and its test."""
        return {
            "jax/__init__.py": api_source(family),
            "jax/operators.py": operators_source(family),
            f"jax/{family.name}_jax.cpp": library_source(family),
            **shared_sources(family),
            **test_file(family, templates, "jax"),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_jax.so`, which is linked with nothing of JAX's.

        Raises:
            SpecError: when jaxlib, whose headers are compiled, is not installed.
        """
        kernel, adapter = KernelBackend(), f"build/{family.name}_jax.o"
        return (
            *kernel.build(family),
            Compile(f"jax/{family.name}_jax.cpp", adapter, _flags(family), glue=True),
            Link((adapter, *kernel.objects(family)), library_path(family), (*kernel.link_flags(family), "-lpthread")),
        )

    def wheel(self, family: Family) -> WheelPart:
        """Return the library of handlers; importing the module registers them with XLA, which exported programs ask for."""
        about = "Return what jax.export is to be given as `disabled_checks`, so that it lets programs with these ops through."
        checks = ("jax_export_checks", "EXPORT_CHECKS", about)
        return WheelPart((library_path(family),), (f"jax{VERSIONS}",), registers=True, joined=(checks,))

    def session(self, family: Family, package: Path) -> JaxSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.jax.session import JaxSession

        return JaxSession(family, package)

    def checks(self, session: JaxSession) -> Sequence[Check]:
        """Return what JAX promises of an op beyond values and gradients."""
        from opc.backends.jax.checks import JaxChecks

        return JaxChecks(session).all()

    def unreadable(self, value: Any) -> str:
        """Return what keeps an array from kernels in the CPU's memory; what JAX traces is nowhere yet."""
        places = getattr(value, "devices", None)
        try:
            devices = places() if callable(places) else ()
        except Exception:  # a tracer has no devices, and says so by an error of its own
            return ""
        other = next((d for d in devices if d.platform != "cpu"), None)
        return "" if other is None else f"is on {other}"


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_jax.so"


def _flags(family: Family) -> tuple[str, ...]:
    folder = environments.folder("jax", "jaxlib")
    if folder is None:
        reason = f"{family.name} needs XLA's header for foreign functions, and jaxlib is not installed"
        raise SpecError([Diagnostic(reason, hint="opc env create jax")])
    # -isystem: the warnings of its header are not the user's. The version has the file compiled anew after an update.
    version = f'-DOPC_JAXLIB_VERSION="{environments.version("jax", "jaxlib")}"'
    return ("-O2", "-std=c++17", "-fvisibility=hidden", "-fno-sized-deallocation", version, "-isystem", str(folder / "include"))
