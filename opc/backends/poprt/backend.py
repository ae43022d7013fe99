"""PopRT: PopART's custom ops in Graphcore's runtime for inference, which converts models of ONNX and runs them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc.backends.base import Availability, Backend, BuildStep, Check
from opc.backends.example_text import test_file
from opc.backends.poplar import sdk
from opc.backends.poplar.carried import carried_family
from opc.backends.poplar.files import requires, shared_files
from opc.backends.poplar.library import build_steps, library_source, source_path
from opc.backends.poplar.python_side import test_values
from opc.backends.poprt.scripts import files, templates
from opc.diagnostics import Diagnostic
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.poprt.session import PoprtSession

SINCE = "3.0"
"""PopRT came after SDK 2.6."""


class PoprtBackend(Backend):
    """Emits, builds and runs an op for PopRT."""

    name = "poprt"
    title = "PopRT"
    wraps = True
    library_of = "popart"
    environment = sdk.environment()

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether sessions run a real SDK's PopRT or the emulation."""
        return "emulated" if sdk.is_emulated() else "native"

    def probe(self) -> Availability:
        """Say whether there is an SDK, real or emulated."""
        return sdk.probe()

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why Poplar can't carry the family, or that the chosen SDK is too old."""
        return (*sdk.too_old("PopRT", SINCE), *requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `poprt/`, of `poplar/`, the library's source, and the test."""
        shared = {**shared_files(family), source_path(family): library_source(family)}
        return {
            **shared,
            **files(family),
            **test_file(carried_family(family), templates, "poprt", **test_values(carried_family(family))),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make PopART's library, which models load.

        Raises:
            SpecError: when there is no SDK.
        """
        return build_steps(family)

    def session(self, family: Family, package: Path) -> PoprtSession:
        """Load the built library.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.poprt.session import PoprtSession

        return PoprtSession(family, package)

    def checks(self, session: PoprtSession) -> Sequence[Check]:
        """Return what PopRT promises of an op beyond values."""
        from opc.backends.poprt.checks import PoprtChecks

        return PoprtChecks(session).all()
