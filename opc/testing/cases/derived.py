"""Inputs of derived ops, put together from those of the op they come from: saved operands, cotangents, tangents.

Everything here works on the oracle's sets, so a gradient's expectation carries the errors of the forward op's saved outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opc.analysis.constants import constants
from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.ir.dtypes import Binding, DType, candidates, resolve
from opc.ir.op import Derivation, Family, Op, Role
from opc.testing.cases.calls import Case
from opc.testing.cases.fitting import volume
from opc.testing.cases.sizes import Shapes
from opc.testing.oracle.arithmetic import add
from opc.testing.oracle.bounds import PRECISIONS, Array, Bounds, exact
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.rounding import rounded

Value = Array | Bounds | Bounded | None


def derivation(op: Op) -> Derivation:
    """Return how a derived op came about.

    Raises:
        ValueError: when `op` is not derived.
    """
    if op.derivation is None:
        raise ValueError(f"{op.name} is not a derived op")
    return op.derivation


def gradient_names(op: Op) -> dict[str, str]:
    """Return for each output of a derived op the operand of the original op it belongs to."""
    return {o.name: of for o, of in zip(op.outputs, derivation(op).outputs, strict=True)}


def seed_names(op: Op) -> dict[str, str]:
    """Return for each operand of the original op the name of its cotangent or tangent among the inputs of a derived op."""
    roles = zip(op.inputs, derivation(op).inputs, strict=True)
    return {of: o.name for o, (role, of) in roles if role in (Role.COTANGENT, Role.TANGENT)}


def derived_inputs(
    op: Op, inputs: Mapping[str, Value], outputs: Mapping[str, Value], seeds: Mapping[str, Value]
) -> dict[str, Value]:
    """Return the inputs of the derived op `op`; `seeds` are cotangents or tangents by the operand they belong to."""
    result: dict[str, Value] = {}
    for operand, (role, of) in zip(op.inputs, derivation(op).inputs, strict=True):
        source = inputs if role is Role.INPUT else outputs if role is Role.OUTPUT else seeds
        result[operand.name] = source.get(of)
    return result


def is_integer(array: Array) -> bool:
    """Whether an array has no gradient: it holds integers or bools."""
    return array.dtype.kind in "iub" or "int" in array.dtype.name


def is_differentiated(op: Op, arrays: Mapping[str, Array | None]) -> bool:
    """Whether derived ops take a call of `op`: in floating types, but for constants that have floating types for it."""
    mixed = {x.name for x in op.inputs if any(d.is_floating for d in candidates(x.type))} - constants(op).keys()
    return not any(a is not None and name in mixed and is_integer(a) for name, a in arrays.items())


def family_volume(family: Family, case: Case) -> int:
    """Return the number of points of the largest loop in a call of the forward op and in the calls of its derivatives.

    It may grow much faster than that of the forward op: in the second gradient of a running product with the fourth power of the
    length.
    """

    def visit(op: Op, given: Shapes, derived: tuple[Op | None, ...]) -> int:
        try:
            env = infer(op, given, case.attributes)
        except ShapeError:
            return 0  # refused before any loop
        found = [volume(op, env)]
        for other in (d for d in derived if d is not None):
            known: Shapes = {**given, **env.outputs}
            own = {o.name: known.get(of) for o, (_, of) in zip(other.inputs, derivation(other).inputs, strict=True)}
            further = (family.backward_backward, family.backward_jvp) if other is family.backward else ()
            found.append(visit(other, own, further))
        return max(found)

    shapes = {n: None if a is None else a.data.shape for n, a in case.inputs.items()}
    return visit(family.forward, shapes, (family.backward, family.jvp))


def binding_of(op: Op, inputs: Mapping[str, Value], attributes: Mapping[str, Any]) -> Binding:
    """Return the binding of the type variables that inputs with known element types imply."""
    dtypes: dict[str, DType | None] = {}
    for name, value in inputs.items():
        if isinstance(value, Bounded):
            dtypes[name] = value.dtype
        elif value is not None and not isinstance(value, Bounds):
            dtypes[name] = DType(str(value.dtype))
    return infer_types(op, dtypes, attributes)


def gradient(
    forward: Op,
    backward: Op,
    inputs: Mapping[str, Value],
    attributes: Mapping[str, Any],
    cotangents: Mapping[str, Value],
    *,
    binding: Binding | None = None,
    precise: bool = False,
    saved: Mapping[str, Value] | None = None,
) -> dict[str, Bounded]:
    """Return the gradients of the floating inputs by input name, computed as a framework does: forward, then backward.

    `binding` is what the inputs' dtypes imply unless given; with `precise` all is computed in float64. `saved` are all outputs of
    the forward op where they are known.
    """
    binding = binding or binding_of(forward, inputs, attributes)
    if saved is None:
        saved = evaluate(forward, inputs, attributes, binding=binding, precise=precise)
    given = derived_inputs(backward, inputs, saved, cotangents)
    found = evaluate(backward, given, attributes, binding=binding, precise=precise)
    names = gradient_names(backward)
    return {names[n]: v for n, v in found.items() if inputs.get(names[n]) is not None}


def second_gradient(
    forward: Op,
    backward: Op,
    second: Op,
    inputs: Mapping[str, Value],
    attributes: Mapping[str, Any],
    cotangents: Mapping[str, Value],
    directions: Mapping[str, Value],
    *,
    binding: Binding | None = None,
    precise: bool = False,
    saved: Mapping[str, Value] | None = None,
) -> dict[str, Bounded]:
    """Return the gradients of sum(gradient[x] * directions[x]) for the inputs, and for the cotangents as `d_<output>`.

    `second` is the gradient of `backward` with its saved outputs held apart; what arrives at a saved output goes on through the
    forward op's gradient, and the two parts are added in the stored type, as autograd does. `binding` is what the inputs' dtypes
    imply unless given; with `precise` all is computed in float64. `saved` are as for `gradient`.
    """
    binding = binding or binding_of(forward, inputs, attributes)
    if saved is None:
        saved = evaluate(forward, inputs, attributes, binding=binding, precise=precise)
    given = derived_inputs(backward, inputs, saved, cotangents)
    names = gradient_names(backward)
    seeds = {o: directions[of] for o, of in names.items() if of in directions}
    parts = evaluate(second, derived_inputs(second, given, {}, seeds), attributes, binding=binding, precise=precise)
    roles = dict(zip((o.name for o in backward.inputs), derivation(backward).inputs, strict=True))
    result: dict[str, Bounded] = {}
    through: dict[str, Bounded] = {}
    for name, value in parts.items():
        role, of = roles[gradient_names(second)[name]]
        if role is Role.OUTPUT:
            through[of] = value
        elif role is Role.COTANGENT:
            result[f"d_{of}"] = value
        else:
            result[of] = value
    if through:
        over = derived_inputs(backward, inputs, saved, through)
        more = evaluate(backward, over, attributes, binding=binding, precise=precise)
        for name, value in more.items():
            of = names[name]
            result[of] = plus(result[of], value, precise) if of in result else value
    # An input the gradient does not depend on has a zero second gradient.
    for operand in forward.inputs:
        array = inputs.get(operand.name)
        if operand.name in names.values() and array is not None and operand.name not in result:
            result[operand.name] = Bounded(
                exact(np.zeros(array.low.shape if isinstance(array, Bounds) else array.shape)), resolve(operand.type, binding)
            )
    return {n: v for n, v in result.items() if n not in inputs or inputs[n] is not None}


def plus(a: Bounded, b: Bounded, precise: bool = False) -> Bounded:
    """Return the sum of two stored tensors, stored in the same type; with `precise` in float64."""
    with np.errstate(all="ignore"):
        total = add(a.bounds, b.bounds, PRECISIONS[DType.FLOAT64 if precise else a.dtype.compute])
        return Bounded(total if precise else rounded(total, a.dtype), a.dtype)
