"""A built package in live Paddle, as the proof calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.dtypes import require_named
from opc.backends.paddle.signature import has_mask
from opc.backends.paddle.values import REFUSALS, dtype, to_numpy, to_paddle
from opc.backends.sessions import AutogradSession, Function
from opc.ir.dtypes import DTYPES
from opc.ir.op import Op

if TYPE_CHECKING:
    from opc.backends.base import Array


class PaddleSession(AutogradSession):
    """Calls the operators of a built package in dynamic graphs."""

    subpackage = "paddle"
    tells_sizes = True
    refusals = REFUSALS

    def tensor(self, array: Array) -> Any:
        """Return a tensor with the array's values and strides."""
        return to_paddle(array)

    def array(self, tensor: Any) -> Array:
        """Return an array with the tensor's values."""
        return to_numpy(tensor)

    def dtype(self, name: str) -> Any:
        """Return Paddle's dtype of that name.

        Raises:
            Unsupported: when it has no tensors of it.
        """
        require_named(name, "Paddle", lambda d: d.row.paddle is not None)
        return dtype(name)

    def leaf(self, tensor: Any) -> Any:
        """Return a tensor that requires a gradient."""
        tensor = tensor.detach()
        tensor.stop_gradient = False
        return tensor

    def derived(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]) -> Any:
        """Call an operator, with a flag for each optional output that says whether it is wanted."""
        mask = list(wanted) if has_mask(op) else None
        return getattr(self.operators, op.name)(list(tensors.values()), list(attributes.values()), mask)

    def vjp(self, function: Function, leaves: Sequence[Any], cotangents: Sequence[Any], *, again: bool) -> Sequence[Any]:
        """Return the gradients of the leaves; see `AutogradSession`."""
        import paddle

        for tensor in (*leaves, *cotangents):
            name = str(tensor.dtype).removeprefix("paddle.")
            if not next((d.row.paddle_graphs for d in DTYPES if d.value == name), True):
                raise Unsupported(f"Paddle does not differentiate {name}")
        pairs = [(r, c) for r, c in zip(function(*leaves), cotangents, strict=True) if not r.stop_gradient]
        found: Sequence[Any] = [None] * len(leaves)
        if pairs:
            results, seeds = [r for r, _ in pairs], [c for _, c in pairs]
            found = paddle.grad(results, list(leaves), seeds, create_graph=again, allow_unused=True)
        return [paddle.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]
