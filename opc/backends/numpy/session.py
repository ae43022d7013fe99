"""The NumPy functions of a family as the proof calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opc.backends.derived import chooses_outputs
from opc.backends.sessions import TensorSession
from opc.ir.op import Op


class NumpySession(TensorSession):
    """Calls the functions of a built package."""

    subpackage = "numpy"
    tells_sizes = True
    no_autograd = "NumPy has no autograd; the gradients are functions of their own"
    refusals = (TypeError, ValueError, IndexError)
    sequence = tuple

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call the function of an op."""
        choice = {"only": tuple(only)} if only is not None and chooses_outputs(op) else {}
        return getattr(self.module, op.name)(**tensors, **self.values(op, attributes), **choice)
