"""What the checks of a torch session compare results by, and the calls they make of a family's operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opc.backends.checks import Checks, Sample
from opc.backends.derivatives import rules
from opc.backends.sessions import as_tuple
from opc.backends.torch.session import TorchSession
from opc.ir.op import Role
from opc.records import replace

if TYPE_CHECKING:
    from torch import Tensor

_MOVING = (Role.COTANGENT, Role.TANGENT)


class TorchSamples(Checks[TorchSession]):
    """Sample calls of one session's family, as functions of tensors."""

    def function(self, attributes: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the op's function on tensors alone."""
        return partial(self.session.function, **self.session.values(self.op, attributes))

    def on(self, given: Sample) -> tuple[Callable[..., Any], list[Tensor]]:
        """Return the op as a function of the tensors that are given, and these."""
        call, tensors = self.function(given.attributes), self.tensors(given)
        names = [n for n, t in tensors.items() if t is not None]
        absent = {n: None for n in tensors if n not in names}
        return (lambda *present: call(**dict(zip(names, present, strict=True)), **absent)), [tensors[n] for n in names]

    def tensors(self, given: Sample) -> dict[str, Any]:
        """Return the inputs as tensors, None for absent ones."""
        return self.session.tensors(self.op, given.arrays)

    def leaves(self, given: Sample) -> tuple[int, ...]:
        """Return the positions of the differentiable tensors among those given."""
        return tuple(i for i, n in enumerate(given.given) if n in self.moving)

    def scalar(self, given: Sample) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """Return a number that depends on every output, nonlinearly, as a function of the tensors."""
        import torch

        function, tensors = self.on(given)

        def total(*arguments: Tensor) -> Tensor:
            floating = [o for o in as_tuple(function(*arguments)) if o.is_floating_point()]
            return torch.stack([(o * o * o + o).sum().to(torch.float64) for o in floating]).sum()

        return total, tensors


def assert_equal(got: Any, expected: Any, what: str) -> None:
    """Assert that nested tensors agree to a few roundings of what was added up for them."""
    import torch

    left, right = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(expected)
    assert len(left) == len(right), f"{what}: {len(left)} results instead of {len(right)}"
    for a, b in zip(left, right, strict=True):
        assert a.shape == b.shape, f"{what}: shape {tuple(a.shape)} instead of {tuple(b.shape)}"
        assert a.dtype == b.dtype, f"{what}: {a.dtype} instead of {b.dtype}"
        torch.testing.assert_close(a, b, rtol=0, atol=rounding_bound(b), equal_nan=True, msg=lambda m: f"{what}: {m}")


def rounding_bound(expected: Tensor) -> float:
    """Return how far two ways of computing the same values may be apart: the rounding of each of so many terms of their size."""
    import torch

    if not expected.is_floating_point() or expected.numel() == 0:
        return 0.0
    finite = expected[torch.isfinite(expected)].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    return float(64 * torch.finfo(expected.dtype).eps * max(scale, 1.0))


def single(given: Sample) -> Sample:
    """Return the sample with float32, the usual type of a model, in place of float64."""
    float32 = {n: a.astype("float32") if a is not None and a.dtype == "float64" else a for n, a in given.arrays.items()}
    return replace(given, arrays=float32)


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


def check_operator(operator: Any, arguments: tuple[Any, ...]) -> None:
    """Run `torch.library.opcheck` on a call of an operator.

    What it compares with a trace, it compares here with the results in another order, the floating ones first: torch adds them up
    in the type of the first, and refuses to add a floating result to an integer one.

    Raises:
        torch.testing._internal.optests.generate_tests.OpCheckError: when torch finds a fault; its comparison with a trace raises
            what it raises.
    """
    import torch
    from torch.library import opcheck
    from torch.testing._internal.optests import aot_autograd_check
    from torch.utils._pytree import tree_map_only

    def ordered(*given: Any) -> tuple[Any, ...]:
        results = as_tuple(operator(*tree_map_only(torch.Tensor, torch.clone, given)))
        return tuple(sorted(results, key=lambda r: r is None or not r.is_floating_point()))

    opcheck(operator, arguments, test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))
    aot_autograd_check(ordered, arguments, {}, dynamic=True, check_gradients="auto")


def operator_calls(session: TorchSession, given: Sample) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the operators of a family with arguments from a call of the forward op; tensors require gradients if it has any.

    An output that the call asks for in a type without gradients has none, and no operator of what would derive from it.
    """
    import torch

    family = session.family
    attributes = session.complete(family.forward, given.attributes)
    generator = torch.Generator().manual_seed(2)
    recorded = {rule.op.name for rule in rules(family) if rule.vjp and not rule.beyond}
    operands: dict[str, dict[str, Tensor | None]] = {}
    for op in family.ops:
        tensors = session.tensors(op, given.arrays)
        if op.derivation is not None:
            source = operands.get(op.derivation.of)
            if source is None:
                continue
            moving = [of for role, of in op.derivation.inputs if role in _MOVING]
            values = (source.get(of) for of in (*moving, *op.derivation.outputs))
            if any(value is not None and not value.is_floating_point() for value in values):
                continue
            tensors = {}
            for x, (role, of) in zip(op.inputs, op.derivation.inputs, strict=True):
                value = source.get(of)
                if value is not None and role in _MOVING:
                    value = torch.randn(value.shape, generator=generator, dtype=value.dtype)
                tensors[x.name] = value
        wanted = session.wanted(op, tensors, attributes, None)
        arguments = session.arguments(op, tensors, session.values(op, attributes), wanted)
        results = as_tuple(getattr(session.operators, op.name).raw(*arguments))
        operands[op.name] = {**tensors, **dict(zip((o.name for o in op.outputs), results, strict=True))}
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.is_floating_point():
                argument.requires_grad_(op.name in recorded)
        yield op.name, arguments
