"""A built package in live torch, as the proof calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opc.backends.batching import needs_batch_axes
from opc.backends.derived import chooses_outputs
from opc.backends.dtypes import require_named
from opc.backends.sessions import AutogradSession, Function
from opc.backends.torch.limits import where_torch_computes
from opc.backends.torch_values import to_numpy, to_torch
from opc.ir.op import Op

if TYPE_CHECKING:
    import torch

    from opc.backends.base import Array


class TorchSession(AutogradSession):
    """Calls the operators of a built package."""

    subpackage = "torch"
    tells_sizes = True

    def tensor(self, array: Array) -> torch.Tensor:
        """Return a tensor with the array's values and strides, sharing its memory."""
        return to_torch(array)

    def array(self, tensor: torch.Tensor) -> Array:
        """Return an array with the tensor's values."""
        return to_numpy(tensor)

    def dtype(self, name: str) -> Any:
        """Return torch's dtype of that name."""
        import torch

        # It has names for more dtypes than it has tensors of.
        require_named(name, "torch", lambda d: d.row.torch is not None)
        return getattr(torch, name, name)

    def leaf(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor that requires a gradient."""
        return tensor.detach().requires_grad_()

    def run(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call an op without recording it."""
        import torch

        with torch.no_grad():
            return super().run(op, tensors, attributes, only)

    def derived(self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]) -> Any:
        """Call an operator of which there is no function with defaults."""
        return getattr(self.operators, op.name).op(*self.arguments(op, tensors, attributes, wanted))

    def arguments(
        self, op: Op, tensors: Mapping[str, Any], attributes: Mapping[str, Any], wanted: Sequence[bool]
    ) -> tuple[Any, ...]:
        """Return the arguments of an operator as its schema orders them."""
        passed = [*tensors.values(), *attributes.values()]
        passed += [0] if needs_batch_axes(self.family) else []
        return (*passed, list(wanted)) if chooses_outputs(op) else tuple(passed)

    @where_torch_computes()
    def vjp(self, function: Function, leaves: Sequence[Any], cotangents: Sequence[Any], *, again: bool) -> Sequence[Any]:
        """Return the gradients of the leaves; see `AutogradSession`."""
        import torch

        # What no leaf reaches, such as the gradient of a linear op by its input, has no gradient.
        pairs = [(r, c) for r, c in zip(function(*leaves), cotangents, strict=True) if r.requires_grad]
        results, seeds = [r for r, _ in pairs], [c for _, c in pairs]
        found: tuple[torch.Tensor, ...] = torch.autograd.grad(
            results, list(leaves), seeds, create_graph=again, allow_unused=True, materialize_grads=True
        )
        return found
