"""What PopART promises of an op beyond values and gradients."""

from __future__ import annotations

from opc.backends.checks import Checks
from opc.backends.popart.session import PopartSession


class PopartChecks(Checks[PopartSession]):
    """The checks of one family."""
