"""What JAX promises of an op beyond values and gradients."""

from __future__ import annotations

from opc.backends.checks import Checks
from opc.backends.jax.session import JaxSession


class JaxChecks(Checks[JaxSession]):
    """The checks of one session's family."""
