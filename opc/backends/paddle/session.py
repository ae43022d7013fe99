"""A built package in live Paddle, as the proof calls it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends import package as packages
from opc.backends.base import Check, OpError, Unsupported
from opc.backends.dtypes import foreign
from opc.backends.paddle.signature import cotangent, differentiable, has_mask
from opc.backends.paddle.values import attribute_values, to_numpy, to_paddle
from opc.ir.op import Family, Op, Role

if TYPE_CHECKING:
    from opc.backends.base import Array

REFUSALS = (RuntimeError, ValueError, TypeError, OSError, NotImplementedError)
"""What Paddle raises for a bad call: an error of an operator is an OSError."""


class PaddleSession:
    """Calls the operators of a built package in dynamic graphs."""

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package, which registers its operators.

        Raises:
            ImportError: when it is not built.
        """
        self.family = family
        self.package = package
        self.module = packages.load(package, "paddle")
        self.operators = packages.load(package, "paddle.operators")
        self.function = getattr(self.module, family.name)
        self._ops = {op.name: op for op in family.ops}

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`. `only` are the names of the wanted outputs."""
        described = self._ops[op]
        tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_paddle(a) for x in described.inputs}
        try:
            if described is self.family.forward:
                result = self.function(**tensors, **attribute_values(described, attributes))
                results = result if isinstance(result, tuple) else (result,)
            else:
                values = complete(described, attributes)
                wanted = None
                if has_mask(described):
                    names = computable(described, inputs, values) if only is None else set(only)
                    wanted = [o.name in names for o in described.outputs]
                given = list(attribute_values(described, values).values())
                results = getattr(self.operators, op)(list(tensors.values()), given, wanted)
        except REFUSALS as error:
            raise OpError(str(error)) from error
        made = {o.name: to_numpy(t) for o, t in zip(described.outputs, results, strict=True) if t is not None}
        return made if only is None else {name: made[name] for name in only}

    def gradient(
        self, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], cotangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the gradients of the floating inputs through Paddle's autograd, by input name."""
        _differentiated([*inputs.values(), *cotangents.values()])
        tensors, leaves = self._leaves(inputs)
        found = self._gradients(tensors, leaves, attributes, {n: to_paddle(c) for n, c in cotangents.items()}, False)
        return {name: to_numpy(g) for name, g in zip(leaves, found, strict=True)}

    def second_gradient(
        self,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Array],
        second: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Return the gradients of sum(gradient[x] * second[x]) for the inputs, and for the cotangents as `d_<output>`."""
        import paddle

        _differentiated([*inputs.values(), *cotangents.values()])
        tensors, leaves = self._leaves(inputs)
        seeds = {n: _leaf(to_paddle(c)) for n, c in cotangents.items()}
        first = dict(zip(leaves, self._gradients(tensors, leaves, attributes, seeds, True), strict=True))
        moving = [n for n in second if not first[n].stop_gradient]
        targets = {**leaves, **{cotangent(n): s for n, s in seeds.items()}}
        found: list[Any] = [None] * len(targets)
        if moving:
            directions = [to_paddle(second[n]) for n in moving]
            found = paddle.grad([first[n] for n in moving], list(targets.values()), directions, allow_unused=True)
        return {n: to_numpy(paddle.zeros_like(t) if g is None else g) for (n, t), g in zip(targets.items(), found, strict=True)}

    def _leaves(self, inputs: Mapping[str, Array | None]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the inputs as tensors, and those among them that a gradient is asked for."""
        tensors = {x.name: None if (a := inputs.get(x.name)) is None else to_paddle(a) for x in self.family.forward.inputs}
        leaves = {}
        for x in self.family.forward.inputs:
            tensor = tensors[x.name]
            if tensor is not None and differentiable(x) and tensor.is_floating_point():
                leaves[x.name] = tensors[x.name] = _leaf(tensor)
        return tensors, leaves

    def _gradients(
        self,
        tensors: Mapping[str, Any],
        leaves: Mapping[str, Any],
        attributes: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        again: bool,
    ) -> list[Any]:
        import paddle

        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        result = self.function(**tensors, **attribute_values(self.family.forward, attributes))
        results = result if isinstance(result, tuple) else (result,)
        outputs = {o.name: r for o, r in zip(self.family.forward.outputs, results, strict=True) if o.name in cotangents}
        found = paddle.grad(
            list(outputs.values()),
            list(leaves.values()),
            [cotangents[n] for n in outputs],
            create_graph=again,
            allow_unused=True,
        )
        return [paddle.zeros_like(x) if g is None else g for x, g in zip(leaves.values(), found, strict=True)]

    def checks(self) -> Sequence[Check]:
        """Return what Paddle promises of an op beyond values and gradients."""
        from opc.backends.paddle.checks import checks

        return checks(self)


def _differentiated(arrays: Iterable[Array | None]) -> None:
    """Raise Unsupported for floating arrays of a dtype that Paddle's autograd leaves out."""
    for array in arrays:
        own = None if array is None else foreign(array)
        if own is not None and not own.row.paddle_graphs:
            raise Unsupported(f"Paddle does not differentiate {own}")


def _leaf(tensor: Any) -> Any:
    tensor = tensor.detach()
    tensor.stop_gradient = False
    return tensor


def complete(op: Op, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return every attribute's value, defaults included, in the op's order."""
    return {a.name: attributes.get(a.name, a.default) for a in op.attributes}


def computable(op: Op, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any]) -> set[str]:
    """Return the outputs whose shape the inputs tell, but gradients of absent operands; all of them for a bad call."""
    try:
        shapes = infer(op, {n: None if a is None else a.shape for n, a in inputs.items()}, attributes).outputs
    except ShapeError:
        return {o.name for o in op.outputs}
    if op.derivation is None:
        return set(shapes)
    roles = zip(op.derivation.inputs, op.inputs, strict=True)
    absent = {of for (role, of), x in roles if role is Role.INPUT and inputs.get(x.name) is None}
    return {o.name for o, of in zip(op.outputs, op.derivation.outputs, strict=True) if o.name in shapes and of not in absent}
