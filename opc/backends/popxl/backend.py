"""PopXL: custom ops of Graphcore's graphs in Python, on a real SDK or on opc's emulation of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Link
from opc.backends.example_text import test_file
from opc.backends.poplar import sdk
from opc.backends.poplar.carried import carried_family
from opc.backends.poplar.files import requires, shared_files
from opc.backends.poplar.library import ALSO, FLAGS, codelet_steps, compile_step
from opc.backends.poplar.python_side import test_values
from opc.backends.popxl.library import library_source, module_name, templates
from opc.backends.popxl.scripts import api_source, op_source, run_source
from opc.diagnostics import Diagnostic
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.popxl.session import PopxlSession

HEADER = "opc/adapters/popxl.h"
"""What a module's source includes first."""

SINCE = "2.6"
"""The first SDK with `ParameterizedOp`."""


class PopxlBackend(Backend):
    """Emits, builds and runs an op family for PopXL."""

    name = "popxl"
    title = "PopXL"
    wraps = True
    library_of = "popart"
    environment = sdk.environment()

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether sessions run a real SDK's PopXL or the emulation."""
        return "emulated" if sdk.is_emulated() else "native"

    def probe(self) -> Availability:
        """Say whether there is an SDK, real or emulated."""
        return sdk.probe()

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why Poplar can't carry the family, or that the chosen SDK is too old."""
        return (*sdk.too_old("PopXL's ParameterizedOp", SINCE), *requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `popxl/`, of `poplar/`, and the test."""
        name = family.name
        return {
            **shared_files(family),
            f"popxl/{module_name(family)}.cpp": library_source(family),
            f"popxl/{name}_op.py": op_source(family),
            f"popxl/run_{name}.py": run_source(family),
            "popxl/__init__.py": api_source(family),
            **test_file(carried_family(family), templates, "popxl", **test_values(carried_family(family))),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the module that cppimport would make, in `build/popxl/`.

        Raises:
            SpecError: when there is no SDK, or no pybind11.
        """
        used, python = sdk.need(), sdk.python_build()
        name = module_name(family)
        compiled = Compile(
            f"popxl/{name}.cpp",
            f"build/{name}.o",
            (*FLAGS, *used.flags, *python.include),
            glue=True,
            header=HEADER,
            kept=used.kept,
            also=ALSO,
            inlined=(*used.include, python.pybind11),
            over=compile_step(family, used),
        )
        module = Link((compiled.object,), f"build/popxl/{name}{python.suffix}", used.link)
        return (compiled, module, *codelet_steps(family, used))

    def session(self, family: Family, package: Path) -> PopxlSession:
        """Load the built module.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.popxl.session import PopxlSession

        return PopxlSession(family, package)

    def checks(self, session: PopxlSession) -> Sequence[Check]:
        """Return what PopXL promises of an op beyond values and gradients."""
        from opc.backends.popxl.checks import PopxlChecks

        return PopxlChecks(session).all()
