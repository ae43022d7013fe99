"""What the ops of a family are to each other, and what that says of their operands: shared by the backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opc.analysis.shapes.inference import ShapeError, infer
from opc.ir.dtypes import candidates
from opc.ir.op import Derivation, Family, Op, Operand, Role

_TITLES = {
    "": "The op itself.",
    "_backward": "The gradient.",
    "_backward_backward": "The gradient of the gradient.",
    "_sizes": "The sizes that data tells.",
    "_jvp": "Forward mode.",
    "_backward_jvp": "Forward mode of the gradient.",
}


def title(family: Family, op: Op) -> str:
    """Return what an op is to its family, for comments in generated code."""
    return _TITLES[op.name.removeprefix(family.name)]


def derivation(op: Op) -> Derivation:
    """Return how a derived op came about.

    Raises:
        ValueError: when it is not derived.
    """
    if op.derivation is None:
        raise ValueError(f"{op.name} was not derived from another op")
    return op.derivation


def parts_of_second_gradient(family: Family) -> int:
    """Return how many terms a framework sums up for a second gradient: what comes back directly, and by each saved output."""
    if family.backward is None or family.backward.derivation is None:
        return 1
    return 1 + sum(role is Role.OUTPUT for role, _ in family.backward.derivation.inputs)


def gradient_of(family: Family, op: Op) -> Op | None:
    """Return the op that computes the gradient of another of the family, None where there is none."""
    if op is family.forward:
        return family.backward
    return family.backward_backward if op is family.backward else None


def cotangent(name: str) -> str:
    """Return the name of the cotangent of an output."""
    return f"d_{name}"


def differentiable(operand: Operand) -> bool:
    """Whether an operand can be floating, and then takes part in differentiation."""
    return any(d.is_floating for d in candidates(operand.type))


def chooses_outputs(op: Op) -> bool:
    """Whether the caller says which outputs are computed: there are several, and some are optional."""
    return len(op.outputs) > 1 and any(o.optional for o in op.outputs)


def computable(op: Op, shapes: Mapping[str, Sequence[int] | None], attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the outputs whose shapes follow from the inputs', except gradients of absent inputs; for a bad call, all outputs."""
    try:
        known = infer(op, {n: None if s is None else tuple(s) for n, s in shapes.items()}, attributes).outputs
    except ShapeError:
        return tuple(o.name for o in op.outputs)
    if op.derivation is None:
        return tuple(known)
    roles = zip(op.derivation.inputs, op.inputs, strict=True)
    absent = {of for (role, of), x in roles if role is Role.INPUT and shapes.get(x.name) is None}
    return tuple(o.name for o, of in zip(op.outputs, op.derivation.outputs, strict=True) if o.name in known and of not in absent)


def asked_outputs(
    op: Op, inputs: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the outputs to compute for a call: the named ones where an op leaves outputs out, by default all that can be."""
    if only is not None and chooses_outputs(op):
        return tuple(only)
    return computable(op, _shapes(inputs), op.complete(attributes))


def required_outputs(
    op: Op, inputs: Mapping[str, Any], attributes: Mapping[str, Any], only: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the outputs of a node in a graph: the named ones, by default all that can be computed, and the required ones."""
    names = computable(op, _shapes(inputs), op.complete(attributes)) if only is None else only
    return tuple(o.name for o in op.outputs if o.name in names or not o.optional)


def _shapes(inputs: Mapping[str, Any]) -> dict[str, Sequence[int] | None]:
    return {name: None if array is None else array.shape for name, array in inputs.items()}
