"""A built package in live torch, as the proof calls it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends import package as packages
from opc.backends.base import Check, OpError, Unsupported
from opc.backends.dtypes import as_bits, foreign, of_bits, require_dtype
from opc.backends.torch.batching import needs_batch_axes
from opc.backends.torch.derivatives import cotangent, differentiable
from opc.backends.torch.limits import where_torch_computes
from opc.backends.torch.schema import has_mask
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import AttributeKind, Family, Op, Role

if TYPE_CHECKING:
    import torch

    from opc.backends.base import Array

REFUSALS = (RuntimeError, ValueError, TypeError)
"""What torch raises for a bad call; NotImplementedError is a RuntimeError."""


_FOREIGN = frozenset(d.value for d in DTYPES if d.row.numpy != "numpy")


def to_torch(array: Array) -> torch.Tensor:
    """Return a tensor with the array's values and strides, sharing its memory.

    Raises:
        Unsupported: when torch has no such strides, or no such dtype.
    """
    import torch

    if any(s < 0 for s in array.strides):
        raise Unsupported("torch tensors have no negative strides")
    require_dtype(array, "torch", lambda d: d.row.torch is not None)
    own = foreign(array)
    if own is not None:
        return to_torch(as_bits(array)).view(getattr(torch, own.value))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return an array with the tensor's values."""
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in _FOREIGN:
        return of_bits(np.asarray(tensor.view(torch.uint8 if tensor.dtype.itemsize == 1 else torch.int16)), name)
    return np.asarray(tensor)


class TorchSession:
    """Calls the operators of a built package."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package.

        Raises:
            ImportError: when it is not built.
        """
        self.family = family
        self.package = package
        self.module = packages.load(package, "torch")
        self.operators = packages.load(package, "torch.operators")
        self.function = getattr(self.module, family.name)
        self._ops = {op.name: op for op in family.ops}
        self._batched = needs_batch_axes(family)

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`. `only` are the names of the wanted outputs."""
        import torch

        described = self._ops[op]
        tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_torch(a) for x in described.inputs}
        defaults = {a.name: a.default for a in described.attributes if not a.required}
        given = self.attributes(described, defaults | dict(attributes))
        try:
            with torch.no_grad():
                if described is self.family.forward:
                    result = self.function(**tensors, **given)
                else:
                    result = self._derived(described, tensors, given, only)
        except REFUSALS as error:
            raise OpError(str(error)) from error
        results = result if isinstance(result, tuple) else (result,)
        made = {o.name: to_numpy(t) for o, t in zip(described.outputs, results, strict=True) if t is not None}
        return made if only is None else {name: made[name] for name in only}

    def _derived(self, op: Op, tensors: Mapping[str, Any], given: Mapping[str, Any], only: Sequence[str] | None) -> Any:
        """Call an operator of which there is no function with defaults."""
        return getattr(self.operators, op.name).op(*self.arguments(op, tensors, given, only))

    def arguments(
        self, op: Op, tensors: Mapping[str, torch.Tensor | None], given: Mapping[str, Any], only: Sequence[str] | None = None
    ) -> tuple[Any, ...]:
        """Return the arguments of an operator as its schema orders them; by default every output that can be is wanted."""
        passed = [*tensors.values(), *(given.get(a.name) for a in op.attributes)]
        if self._batched:
            passed.append(0)
        if has_mask(op):
            wanted = _computable(op, tensors, given) if only is None else set(only)
            passed.append([o.name in wanted for o in op.outputs])
        return tuple(passed)

    @staticmethod
    def attributes(op: Op, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return attribute values as torch takes them: dtypes are torch's own, tuples lists."""
        import torch

        dtypes = {a.name for a in op.attributes if a.kind is AttributeKind.DTYPE}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name in dtypes and isinstance(value, str | DType):
                values[name] = getattr(torch, str(value), value)
            else:
                values[name] = list(value) if isinstance(value, tuple) else value
        return values

    @where_torch_computes()
    def gradient(
        self, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], cotangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of the floating inputs through torch's autograd, by input name."""
        tensors, leaves = self._leaves(inputs)
        gradients = self._gradients(tensors, leaves, attributes, {n: to_torch(c) for n, c in cotangents.items()}, False)
        return {name: to_numpy(g) for name, g in zip(leaves, gradients, strict=True)}

    @where_torch_computes()
    def second_gradient(
        self,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Array],
        second: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) for the inputs, and for the cotangents as `d_<output>`."""
        import torch

        tensors, leaves = self._leaves(inputs)
        seeds = {n: to_torch(c).clone().requires_grad_() for n, c in cotangents.items()}
        first = dict(zip(leaves, self._gradients(tensors, leaves, attributes, seeds, True), strict=True))
        wanted = [first[n] for n in second if first[n].requires_grad]
        directions = [to_torch(d) for n, d in second.items() if first[n].requires_grad]
        targets = {**leaves, **{cotangent(n): s for n, s in seeds.items()}}
        found = torch.autograd.grad(wanted, list(targets.values()), directions, allow_unused=True, materialize_grads=True)
        return {name: to_numpy(g) for name, g in zip(targets, found, strict=True)}

    def _leaves(self, inputs: Mapping[str, Array | None]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return the inputs as tensors, and those among them that a gradient is asked for."""
        tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_torch(a) for x in self.family.forward.inputs}
        leaves = {}
        for x in self.family.forward.inputs:
            tensor = tensors[x.name]
            if tensor is not None and differentiable(x) and tensor.is_floating_point():
                leaves[x.name] = tensors[x.name] = tensor.detach().requires_grad_()
        return tensors, leaves

    def _gradients(
        self,
        tensors: Mapping[str, Any],
        leaves: Mapping[str, torch.Tensor],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, torch.Tensor],
        again: bool,
    ) -> tuple[torch.Tensor, ...]:
        import torch

        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        result = self.function(**tensors, **self.attributes(self.family.forward, attributes))
        results = result if isinstance(result, tuple) else (result,)
        outputs = {o.name: r for o, r in zip(self.family.forward.outputs, results, strict=True) if o.name in cotangents}
        found: tuple[torch.Tensor, ...] = torch.autograd.grad(
            list(outputs.values()),
            list(leaves.values()),
            [cotangents[n] for n in outputs],
            create_graph=again,
            allow_unused=True,
            materialize_grads=True,
        )
        return found

    def checks(self) -> Sequence[Check]:
        """Return what torch promises of an op beyond values and gradients."""
        from opc.backends.torch.checks import checks

        return checks(self)


def _computable(op: Op, tensors: Mapping[str, torch.Tensor | None], given: Mapping[str, Any]) -> set[str]:
    """Return the outputs whose shape the inputs tell, but gradients of absent operands; all of them for a bad call."""
    try:
        shapes = infer(op, {n: None if t is None else tuple(t.shape) for n, t in tensors.items()}, given).outputs
    except ShapeError:
        return {o.name for o in op.outputs}
    if op.derivation is None:
        return set(shapes)
    roles = zip(op.derivation.inputs, op.inputs, strict=True)
    absent = {of for (role, of), x in roles if role is Role.INPUT and tensors[x.name] is None}
    return {o.name for o, of in zip(op.outputs, op.derivation.outputs, strict=True) if o.name in shapes and of not in absent}
