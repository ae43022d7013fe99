"""The truth about an op that has native code and no body: its torch reference, evaluated in float64.

Of such an op no operation is known, so that its errors can't be followed one by one as the oracle does. Its code is held to be
backward stable instead (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 1.5): an answer is right when it is
the exact answer for inputs that differ from those given by no more than n units of roundoff of the largest, n the number of
elements they have together, rounded once. How far an output moves then follows from the reference's derivatives, taken by central
differences. Nothing in that is set by hand; it is exact to first order, and a call is left undecided where that is not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.ir.dtypes import Binding, resolve
from opc.ir.op import Op
from opc.testing.oracle.bounds import PRECISIONS, Array, Bounded, Bounds, between, held
from opc.testing.oracle.frame import DomainError, UndecidedError
from opc.testing.oracle.rounding import rounded
from opc.testing.references.torch_expression import evaluate as evaluate_text
from opc.testing.references.torch_expression import parse

MOST_ELEMENTS = 600
"""How many elements the inputs of a call may have: each is moved once for the derivatives."""

SURE = 2.0**-6
"""The part of its size by which an output may move; beyond, the first order is not accurate enough."""

_STEP = 2.0**-20
"""By what part of its size an element is moved for a derivative: error 2^-40 of the third, 2^-33 of the roundoff."""

Values = dict[str, Array]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have torch compute on one thread: of calls as small as these, others would take all of their time to wait for work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def evaluate_opaque(
    op: Op, env: ShapeEnv, inputs: Mapping[str, Bounds], binding: Binding, names: Collection[str], precise: bool
) -> dict[str, Bounded]:
    """Return what the outputs `names` may be on sets of inputs, small ones or single points.

    Raises:
        DomainError: when the reference refuses the call.
        UndecidedError: when it does not determine what is right.
    """
    middles = {n: _middle(b) for n, b in inputs.items()}
    floating = {n: v for n, v in middles.items() if inputs[n].is_float}
    count = sum(v.size for v in floating.values())
    if not all(np.isfinite(v).all() for v in floating.values()):
        raise UndecidedError("a reference does not tell what native code makes of NaN and infinity")
    if count > MOST_ELEMENTS:
        raise UndecidedError(f"native code is compared with its reference on inputs of at most {MOST_ELEMENTS} elements")
    outputs = {o.name: o for o in op.outputs if o.name in names}
    empty = {n for n in outputs if 0 in env.outputs[n]}
    found = _call(op, middles, env) if empty != set(outputs) else {}
    values = {n: np.zeros(env.outputs[n]) if n in empty else found[n] for n in outputs}
    for name, value in values.items():
        if value.shape != env.outputs[name]:
            raise DomainError(f"the reference gives {name} the shape {list(value.shape)}, not {list(env.outputs[name])}")
    types = [resolve(op.input(n).type, binding).compute for n in floating]
    own = 2.0**-53
    unit = own if precise else own + max((PRECISIONS[t].unit for t in types), default=0.0)
    moved = {n: count * unit * float(np.abs(v).max(initial=0.0)) for n, v in floating.items()}
    radius = {n: (inputs[n].high - inputs[n].low) / 2 + moved[n] for n in floating}
    reach = _reach(lambda v: _call(op, v, env), middles, radius, values)
    result: dict[str, Bounded] = {}
    for name, operand in outputs.items():
        dtype, value = resolve(operand.type, binding), values[name]
        if not dtype.is_floating:
            exact = value.astype(held(dtype))
            result[name] = Bounded(Bounds(exact, exact, np.zeros(exact.shape, np.bool_)), dtype)
            continue
        error = reach[name] + (own if precise else PRECISIONS[dtype.compute].unit) * np.abs(value)
        if (error > SURE * np.abs(value).max(initial=0.0)).any():
            raise UndecidedError("the call is so ill conditioned that the reference does not tell what is right")
        low, high = np.nextafter(value - error, -np.inf), np.nextafter(value + error, np.inf)
        bounds = between(low, high, np.zeros(value.shape, np.bool_))
        result[name] = Bounded(bounds if precise else rounded(bounds, dtype), dtype)
    return result


def _middle(bounds: Bounds) -> Array:
    return (bounds.low + bounds.high) / 2 if bounds.is_float else bounds.low


def _reach(
    function: Callable[[Mapping[str, Array]], Values], at: Mapping[str, Array], radius: Mapping[str, Array], values: Values
) -> Values:
    """Return how far each output moves, to first order, when inputs move by up to `radius`."""
    reach = {n: np.zeros(v.shape) for n, v in values.items()}
    for name, array in at.items():
        for index in np.ndindex(array.shape) if name in radius else ():
            step = _STEP * max(float(np.abs(array).max()), 2.0**-100)
            ends = []
            for sign in (1, -1):
                there = array.copy()
                there[index] += sign * step
                ends.append(function({**at, name: there}))
            for output in reach:
                if reach[output].size:
                    slope = np.abs(ends[0][output] - ends[1][output]) / (2 * step)
                    reach[output] += np.nan_to_num(slope, nan=np.inf) * radius[name][index]
    return reach


def _call(op: Op, inputs: Mapping[str, Array], env: ShapeEnv) -> Values:
    """Return the reference's outputs by name, in float64."""
    import torch

    text = op.stands_for.torch if op.stands_for is not None else None
    tensors = {o.name: torch.from_numpy(np.array(inputs[o.name])) if o.name in inputs else None for o in op.inputs}
    try:
        result = evaluate_text(parse(text or ""), {**tensors, **env.attributes})
    except (RuntimeError, torch.linalg.LinAlgError) as error:
        raise DomainError(str(error).split("\n")[0]) from None
    results = result if isinstance(result, tuple) else (result,)
    return {o.name: np.asarray(v.numpy()) for o, v in zip(op.outputs, results)}
