"""What PopXL promises of an op beyond values and gradients."""

from __future__ import annotations

from opc.backends.checks import Checks
from opc.backends.popxl.session import PopxlSession


class PopxlChecks(Checks[PopxlSession]):
    """The checks of one family."""
