"""What PopRT promises of an op beyond values and gradients."""

from __future__ import annotations

from opc.backends.checks import Checks
from opc.backends.poprt.session import PoprtSession


class PoprtChecks(Checks[PoprtSession]):
    """The checks of one family."""
