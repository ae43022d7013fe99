"""The examples of a spec as calls, and the proof that the op's body gives what they say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.backends.told_examples import example_binding, plain_array
from opc.ir.dtypes import DType, numpy_dtype, resolve
from opc.ir.op import Example, Family, Op
from opc.testing.cases import samples
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.oracle.bounds import Array, Bounds, between, exact, held
from opc.testing.oracle.evaluation import DomainError, evaluate, told_sizes
from opc.testing.oracle.wording import element_text, number_text


def example_cases(family: Family) -> Iterator[Case]:
    """Yield every example as a call, in each element type of the op."""
    op = family.forward
    for number, example in enumerate(family.examples):
        for binding in samples.bindings_of(op):
            values = dict(example.values)
            whole = [o.name for o in (*op.inputs, *op.outputs) if not resolve(o.type, binding).is_floating]
            if any(_has_fractions(values[name]) for name in whole if name in values):
                continue
            inputs: dict[str, TensorArg | None] = {}
            for o in op.inputs:
                dtype = numpy_dtype(resolve(o.type, binding))
                inputs[o.name] = TensorArg(plain_array(values[o.name]).astype(dtype)) if o.name in values else None
            types = "-".join(d.value for d in binding.values())
            name = f"{op.name}/example{number:02d}-{types}"
            yield Case(name, op.name, inputs, _attributes(op, values), place=example.span.place, told=example.told)


def _attributes(op: Op, values: dict[str, Any]) -> dict[str, Any]:
    given = {a.name: values[a.name] for a in op.attributes if a.name in values}
    return {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}


def _has_fractions(value: object) -> bool:
    return any(not v.is_integer() for v in _numbers(value))


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, list | tuple):
        for v in value:
            yield from _numbers(v)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def literal(value: object) -> Bounds:
    """Return the set of numbers a decimal literal may denote: itself where float64 holds it exactly, else its neighbours."""
    array = plain_array(value)
    if array.dtype.kind != "f":
        return exact(array)
    flat = array.reshape(-1)
    inexact = np.array([np.isfinite(v) and Fraction(repr(float(v))) != Fraction(float(v)) for v in flat], np.bool_)
    below = np.where(inexact, np.nextafter(flat, -np.inf), flat).reshape(array.shape)
    above = np.where(inexact, np.nextafter(flat, np.inf), flat).reshape(array.shape)
    nan = np.isnan(array)
    return between(np.where(nan, np.inf, below), np.where(nan, -np.inf, above), nan)


def check_examples(family: Family) -> Iterator[tuple[str, str]]:
    """Yield for every example its name and what is wrong with it, empty when it holds.

    The op is evaluated in float64, and must reach each value given up to the rounding of literals and operations.
    """
    op = family.forward
    for number, example in enumerate(family.examples):
        wrong = _check(op, example)
        yield f"example {number}", f"{example.span.place}: {wrong}" if wrong and example.span.place else wrong


def _meets(found: Bounds, expected: Bounds) -> Array:
    """Return where a value that is found may be one that is expected."""
    return ((found.low <= expected.high) & (expected.low <= found.high)) | (found.nan & expected.nan)


def _stored(b: Bounds, dtype: DType) -> Bounds:
    """Return what values are once they are stored in a type of 16 or 8 bits; what some of these do not hold is NaN then."""
    low, high = (v.astype(numpy_dtype(dtype)).astype(np.float64) for v in (b.low, b.high))
    nan = np.isnan(low) | np.isnan(high)
    return between(np.where(nan, np.inf, low), np.where(nan, -np.inf, high), b.nan | nan)


def _check(op: Op, example: Example) -> str:
    values = dict(example.values)
    binding = example_binding(op, example)
    inputs: dict[str, Array | Bounds | None] = {}
    for o in op.inputs:
        if o.name in values:
            given = literal(values[o.name])
            as_held = not given.is_float and not given.is_bool
            inputs[o.name] = exact(given.low.astype(held(resolve(o.type, binding)))) if as_held else given
    attributes = _attributes(op, values)
    try:
        unsaid = {name: value for name, value in attributes.items() if name not in example.told}
        for name, size in told_sizes(op, inputs, unsaid, binding).items():
            if size != attributes[name]:
                return f"{name} is {size}, but the outputs of the example have {attributes[name]}"
        found = evaluate(op, inputs, attributes, binding=binding, precise=True)
    except (ShapeError, DomainError) as error:
        return str(error)
    for name, want in values.items():
        if name not in found:
            continue
        got, expected = found[name].bounds, literal(want)
        if got.low.shape != expected.low.shape:
            return f"{name} has shape {list(got.low.shape)}, not {list(expected.low.shape)}"
        meets = _meets(got, expected)
        if (kind := found[name].dtype).is_floating and kind.bits < 32:
            # An example may give the number that is meant, or what is left of it when it is stored.
            meets |= _meets(_stored(got, kind), expected)
        if not bool(np.all(meets)):
            index = tuple(int(i) for i in np.unravel_index(int(np.argmin(meets)), meets.shape))
            value, said = (number_text(v[index], found[name].dtype) for v in (found[name].value, plain_array(want)))
            return f"{element_text(name, index)} is {value}, but the example says {said}"
    return ""
