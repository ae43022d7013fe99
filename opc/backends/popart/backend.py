"""PopART: custom ops of Graphcore's framework for training and inference, on a real SDK or on opc's emulation of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc.backends.base import Availability, Backend, BuildStep, Check
from opc.backends.example_text import test_file
from opc.backends.popart.scripts import api_source, build_files, run_source, templates
from opc.backends.poplar import sdk
from opc.backends.poplar.carried import carried_family
from opc.backends.poplar.files import requires, shared_files
from opc.backends.poplar.library import build_steps, library_source, source_path
from opc.backends.poplar.python_side import test_values
from opc.diagnostics import Diagnostic
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.popart.session import PopartSession


class PopartBackend(Backend):
    """Emits, builds and runs an op family for PopART."""

    name = "popart"
    title = "PopART"
    environment = sdk.environment()
    imports = ("numpy",)  # PopART is to be imported before onnx

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether sessions run a real SDK's PopART or the emulation."""
        return "emulated" if sdk.is_emulated() else "native"

    def probe(self) -> Availability:
        """Say whether there is an SDK, real or emulated."""
        return sdk.probe()

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why Poplar can't carry the family: dtypes that it lacks, stages that no tile can compute, its domain."""
        return tuple(requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `popart/`, of `poplar/`, and the test."""
        return {
            **shared_files(family),
            source_path(family): library_source(family),
            "popart/__init__.py": api_source(family),
            f"popart/run_{family.name}.py": run_source(family),
            **build_files(family),
            **test_file(carried_family(family), templates, "popart", **test_values(carried_family(family))),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_popart.so`.

        Raises:
            SpecError: when there is no SDK.
        """
        return build_steps(family)

    def session(self, family: Family, package: Path) -> PopartSession:
        """Load the built library.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.popart.session import PopartSession

        return PopartSession(family, package)

    def checks(self, session: PopartSession) -> Sequence[Check]:
        """Return what PopART promises of an op beyond values and gradients."""
        from opc.backends.popart.checks import PopartChecks

        return PopartChecks(session).all()
