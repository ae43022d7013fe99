"""A built package in live JAX, as the proof calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends.derived import parts_of_second_gradient
from opc.backends.dtypes import require_dtype, require_named
from opc.backends.sessions import AutogradSession, Function
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array


def _has(dtype: DType) -> bool:
    return dtype.row.xla is not None


class JaxSession(AutogradSession):
    """Calls the primitives of a built package, on arrays of 64 bits too."""

    subpackage = "jax"
    tells_sizes = True
    traces_gradients = True
    sequence = tuple

    def __init__(self, family: Family, package: Path) -> None:
        super().__init__(family, package)
        # XLA's own sums take denormal numbers for zero; a test of this backend holds that.
        self.flushed_parts = parts_of_second_gradient(family)

    def context(self) -> AbstractContextManager[object]:
        """Return what lets JAX have arrays of 64 bits."""
        import jax

        found: AbstractContextManager[object] = jax.enable_x64(True)
        return found

    def tensor(self, array: Array) -> Any:
        """Return an array of JAX's with the array's values, dense as all of its are.

        Raises:
            Unsupported: when its dtype is one that JAX hands to no handler.
        """
        import jax

        require_dtype(array, "JAX", _has)
        with self.context():
            return jax.device_put(np.ascontiguousarray(array).reshape(array.shape))

    def dtype(self, name: str) -> Any:
        """Return the name of a dtype.

        Raises:
            Unsupported: when JAX hands arrays of it to no handler.
        """
        require_named(name, "JAX", _has)
        return super().dtype(name)

    def array(self, tensor: Any) -> Array:
        """Return an array of NumPy's with the values of one of JAX's."""
        return np.asarray(tensor)

    def derived(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]) -> Any:
        """Call a primitive of which there is no function with defaults."""
        operator = getattr(self.operators, op.name)
        known = self.operators.ATTRIBUTES.of(op.name, list(attributes.values()))
        return operator(list(tensors.values()), known, wanted)

    def vjp(self, function: Function, leaves: Sequence[Any], cotangents: Sequence[Any], *, again: bool) -> Sequence[Any]:
        """Return the gradients of the leaves; see `AutogradSession`. Both are one compiled program."""
        import jax

        def pulled(*arguments: Any) -> Sequence[Any]:
            _, pull = jax.vjp(function, *arguments[: len(leaves)])
            gradients: Sequence[Any] = pull(tuple(arguments[len(leaves) :]))
            return gradients

        found: Sequence[Any] = jax.jit(pulled)(*leaves, *cotangents)
        return found
