"""What a wrong element was computed from: the elements of the inputs with their values, for the message of a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.ir.op import Family, Op
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import Value, derived_inputs, gradient_names
from opc.testing.lineage import Point, UntoldError, lineage
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, DomainError, evaluate
from opc.testing.oracle.tolerance import Comparison
from opc.testing.oracle.wording import array_number, element_text

MOST_SHOWN = 8
"""How many elements of an input are shown, and how many an input may have that is shown whole."""


def inputs_of(
    family: Family,
    case: Case,
    found: Comparison,
    cotangents: Mapping[str, Array] | None = None,
    directions: Mapping[str, Array] | None = None,
) -> str:
    """Return the values that the wrong element of a comparison comes from: `x[3] = 0.1, alpha = 0.5`; empty where it has none.

    With `cotangents` the call is a gradient through autograd, with `directions` that of a gradient.
    """
    given = [f"{name} = {value}" for name, value in case.attributes.items()]
    try:
        op, arrays, output = _call(family, case, found.output, cotangents or {}, directions or {})
    except (DomainError, ShapeError, LookupError):
        return ", ".join(given)
    try:
        if found.index is None or op is None:
            raise UntoldError("the answer is wrong as a whole")
        elements = lineage(op, arrays, case.attributes, output, found.index)
        parts = [elements_text(name, arrays[name], points) for name, points in elements.items()]
    except (ShapeError, UntoldError):
        parts = [array_text(name, array) for name, array in arrays.items() if array is not None and array.size <= MOST_SHOWN]
    absent = [f"without {o.name}" for o in (op.inputs if op else ()) if o.optional and arrays.get(o.name) is None]
    return ", ".join([*parts, *given, *absent])


def _call(
    family: Family, case: Case, output: str, cotangents: Mapping[str, Array], directions: Mapping[str, Array]
) -> tuple[Op | None, dict[str, Array | None], str]:
    """Return the op that computes an output, its inputs, and what the output is called there; no op where that are several."""
    arrays, forward, backward = case.arrays(), family.forward, family.backward
    if not cotangents or backward is None:
        return next(op for op in family.ops if op.name == case.op), arrays, output
    saved = evaluate(forward, arrays, case.attributes)
    inner = _arrays(derived_inputs(backward, arrays, saved, cotangents))
    if not directions or family.backward_backward is None:
        return backward, inner, _name_of(backward, output)
    second = family.backward_backward
    seeds = {o: directions[of] for o, of in gradient_names(backward).items() if of in directions}
    known = _arrays(derived_inputs(second, inner, {}, seeds))
    belongs = {o.name: of for o, (_, of) in zip(backward.inputs, backward.derivation.inputs)} if backward.derivation else {}
    names = [n for n, of in gradient_names(second).items() if output in (belongs.get(of), of)]
    # What arrives at saved outputs goes on through the gradient: then the element is a sum over two ops.
    alone = len(names) == 1 and not any(of in {o.name for o in forward.outputs} for of in gradient_names(second).values())
    return (second if alone else None), known, names[0] if alone else output


def _name_of(op: Op, of: str) -> str:
    return next(name for name, operand in gradient_names(op).items() if operand == of)


def _arrays(values: Mapping[str, Value]) -> dict[str, Array | None]:
    """Return operands as arrays; of a set, its middle."""
    return {n: v.value if isinstance(v, Bounded) else v if isinstance(v, np.ndarray) else None for n, v in values.items()}


def elements_text(name: str, array: Array | None, points: Sequence[Point]) -> str:
    """Return elements of an input with their values: one, a run along an axis, or the first few."""
    if array is None or not points:
        return f"nothing of {name}"
    if len(points) == 1:
        return f"{element_text(name, points[0])} = {array_number(array, points[0])}"
    run = _run(points)
    if run is not None:
        shown = [array_number(array, point) for point in points[:MOST_SHOWN]]
        return f"{name}[{run}] = [{', '.join(shown)}{', ...' if len(points) > MOST_SHOWN else ''}]"
    shown = [f"{element_text(name, p)} = {array_number(array, p)}" for p in points[:MOST_SHOWN]]
    left = len(points) - len(shown)
    return ", ".join(shown) + (f" and {left} more of {name}" if left else "")


def _run(points: Sequence[Point]) -> str | None:
    """Return the slice `1, 0:64` that points in a row along one axis are; None where they are not."""
    first, last = points[0], points[-1]
    moving = [axis for axis in range(len(first)) if first[axis] != last[axis]]
    if len(moving) != 1:
        return None
    axis = moving[0]
    along = [(*first[:axis], first[axis] + k, *first[axis + 1 :]) for k in range(len(points))]
    if list(points) != along:
        return None
    return ", ".join(f"{first[axis]}:{last[axis] + 1}" if a == axis else str(i) for a, i in enumerate(first))


def array_text(name: str, array: Array) -> str:
    """Return a small input whole."""

    def rows(index: Point) -> Any:
        if len(index) == array.ndim:
            return array_number(array, index)
        return f"[{', '.join(rows((*index, i)) for i in range(array.shape[len(index)]))}]"

    return f"{name} = {rows(())}"


__all__ = ["array_text", "elements_text", "inputs_of"]
