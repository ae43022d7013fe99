"""Calls that the checks of a torch session make, and how their results are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.base import Unsupported
from opc.backends.torch.derivatives import rules
from opc.ir.dtypes import DType, candidates
from opc.ir.op import Family, Operand, Role

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from opc.backends.torch.session import TorchSession


@dataclass(frozen=True, slots=True)
class Sample:
    """The arguments of one call: tensors by input, attributes by name."""

    tensors: Mapping[str, Tensor | None]
    attributes: Mapping[str, Any]

    @property
    def present(self) -> list[str]:
        """The inputs that are given."""
        return [name for name, t in self.tensors.items() if t is not None]


def sample(family: Family, seed: int = 0, times: int = 2) -> Sample:
    """Return random tensors shaped like the spec's first example, its axes `times` as long where the op allows that.

    Raises:
        Unsupported: when the spec has no example.
    """
    import torch

    if not family.examples:
        raise Unsupported("the spec has no example to check this on")
    op = family.forward
    values = dict(family.examples[0].values)
    attributes = {a.name: values[a.name] for a in op.attributes if a.name in values}
    arrays = {x.name: None if values.get(x.name) is None else np.asarray(values[x.name]) for x in op.inputs}
    longer = {n: None if a is None else np.tile(a, [times if s > 1 else 1 for s in a.shape]) for n, a in arrays.items()}
    try:
        infer(op, {n: None if a is None else a.shape for n, a in longer.items()}, attributes)
    except ShapeError:
        longer = arrays
    generator = torch.Generator().manual_seed(seed)
    tensors = {x.name: None if (a := longer[x.name]) is None else _random(x, a, generator) for x in op.inputs}
    return Sample(tensors, attributes)


def _random(operand: Operand, like: Any, generator: torch.Generator) -> Tensor:
    """Return a random float64 tensor of the shape of `like`; of another dtype, the values of `like` where there is no float64.

    Where `like` has nothing negative, such as probabilities and variances, the random values are magnitudes.
    """
    import torch

    dtypes = candidates(operand.type)
    if DType.FLOAT64 in dtypes:
        values = torch.randn(like.shape, generator=generator, dtype=torch.float64)
        return values.abs() if np.all(like >= 0) else values
    return torch.tensor(like, dtype=getattr(torch, dtypes[0].value))


def outputs(result: Any) -> tuple[Tensor, ...]:
    """Return the outputs of a call as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def assert_equal(got: Any, expected: Any, what: str) -> None:
    """Assert that nested tensors agree to a few roundings of what was added up for them."""
    import torch

    left, right = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(expected)
    assert len(left) == len(right), f"{what}: {len(left)} results instead of {len(right)}"
    for a, b in zip(left, right, strict=True):
        assert a.shape == b.shape, f"{what}: shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        assert a.dtype == b.dtype, f"{what}: {a.dtype} instead of {b.dtype}"
        torch.testing.assert_close(a, b, rtol=0, atol=_bound(b), equal_nan=True, msg=lambda m: f"{what}: {m}")


def _bound(expected: Tensor) -> float:
    """Return how far two ways of computing the same values may be apart: the rounding of each of so many terms of their size."""
    import torch

    if not expected.is_floating_point() or expected.numel() == 0:
        return 0.0
    finite = expected[torch.isfinite(expected)].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    return float(64 * torch.finfo(expected.dtype).eps * max(scale, 1.0))


def single(given: Sample) -> Sample:
    """Return the sample with float32, the usual type of a model, in place of float64."""
    import torch

    tensors = {n: t.float() if t is not None and t.dtype == torch.float64 else t for n, t in given.tensors.items()}
    return Sample(tensors, given.attributes)


def loop(function: Callable[..., Any], arguments: Sequence[Tensor], dims: Sequence[int | None]) -> Any:
    """Return the stacked results of calling a function for each entry of the batched arguments."""
    import torch

    size = next(a.shape[0] for a, d in zip(arguments, dims, strict=True) if d is not None)
    results = [function(*(a[i] if d is not None else a for a, d in zip(arguments, dims, strict=True))) for i in range(size)]
    if isinstance(results[0], tuple):
        return tuple(torch.stack(column) for column in zip(*results, strict=True))
    return torch.stack(results)


def assert_refused(call: Callable[[], Any], what: str) -> None:
    """Assert that a call raises torch's error."""
    try:
        call()
    except (RuntimeError, TypeError, ValueError):
        return
    raise AssertionError(f"{what} was accepted")


def operator_calls(session: TorchSession, given: Sample) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield every operator of a family with arguments from a call of the forward op; tensors require gradients if it has any."""
    import torch

    family = session.family
    defaults = {a.name: a.default for a in family.forward.attributes if not a.required}
    attributes = session.attributes(family.forward, defaults | dict(given.attributes))
    generator = torch.Generator().manual_seed(2)
    recorded = {rule.op.name for rule in rules(family) if rule.vjp}
    operands: dict[str, dict[str, Tensor | None]] = {}
    for op in family.ops:
        tensors = dict(given.tensors)
        if op.derivation is not None:
            source, tensors = operands[op.derivation.of], {}
            for x, (role, of) in zip(op.inputs, op.derivation.inputs, strict=True):
                value = source.get(of)
                if value is not None and role in (Role.COTANGENT, Role.TANGENT):
                    value = torch.randn(value.shape, generator=generator, dtype=value.dtype)
                tensors[x.name] = value
        arguments = session.arguments(op, tensors, attributes)
        results = outputs(getattr(session.operators, op.name).raw(*arguments))
        operands[op.name] = {**tensors, **dict(zip((o.name for o in op.outputs), results, strict=True))}
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.is_floating_point():
                argument.requires_grad_(op.name in recorded)
        yield op.name, arguments
