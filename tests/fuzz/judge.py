"""Holds the oracle to the brute-force evaluator: values of the op, and first and second gradients by differences of it.

What a kernel computes is held to the oracle, by the oracle's computed bounds; so what the oracle gets wrong must be seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import yaml

from opc.analysis.shapes.inference import ShapeError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.narrow import asked_types
from opc.ir.op import AttributeKind, Family, Op
from opc.names import spelled
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import derived_inputs, gradient, gradient_names, is_differentiated, is_integer, second_gradient
from opc.testing.oracle.bounds import Array, Bounds, exact
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.frame import DomainError, UndecidedError
from tests.fuzz import brute
from tests.fuzz.reading import RefusedError, Tensor
from tests.fuzz.scalars import FLOATS, NoValueError
from tests.fuzz.translate import OutsideError

SLACK = 1e-9
"""What the evaluator's own float64 may be off by, relative to the value."""

Inputs = Mapping[str, Array | None]


def wrong_values(text: str, family: Family, case: Case) -> Iterator[str]:
    """Yield where the oracle's sets do not hold what the evaluator finds."""
    inputs = case.arrays()
    try:
        want = evaluate(family.forward, inputs, case.attributes)
        refused = None
    except UndecidedError:
        return
    except (DomainError, ShapeError) as error:
        refused = error
    try:
        found = _evaluate(text, inputs, case)
    except NoValueError as error:
        if refused is None:
            yield f"the oracle has a value where there is none: {error}"
        return
    except (OutsideError, RefusedError) as error:
        yield f"{type(error).__name__}: {error}"
        return
    if refused is not None:
        yield f"the oracle has no value where there is one: {refused}"
        return
    unlike = {n: [*_unlike(spelled(n), *found[spelled(n)], bounded)] for n, bounded in want.items()}
    if any(unlike.values()):
        # The evaluator computes in float64: what overflows on the way in a narrower type does not there.
        wide = evaluate(family.forward, inputs, case.attributes, precise=True)
        for name, bounded in want.items():
            if unlike[name] and any(_unlike(spelled(name), *found[spelled(name)], bounded, wide[name].bounds)):
                yield from unlike[name]


def _evaluate(
    text: str, inputs: Inputs, case: Case, tape: brute.Tape | None = None, types: Mapping[str, str] | None = None
) -> dict[str, brute.Output]:
    """Return what the evaluator finds; the text has names of its own where the targets can't have them."""
    return brute.evaluate(
        text, {spelled(n): a for n, a in inputs.items()}, {spelled(n): v for n, v in case.attributes.items()}, tape, types
    )


def _unlike(
    name: str, dtype: str, shape: tuple[int, ...], values: Tensor, want: Bounded, wide: Bounds | None = None
) -> Iterator[str]:
    """Yield the first value that is not in the set of its element, nor, as it is, in that of `wide`."""
    if dtype != want.dtype.value or shape != want.shape:
        yield f"{name} is {dtype}{list(shape)}, of the oracle {want.dtype.value}{list(want.shape)}"
        return
    bounds = want.bounds
    for at, value in values.items():
        stored = value
        if bounds.is_float:
            with np.errstate(all="ignore"):
                stored = float(np.asarray(value, np.float64).astype(numpy_dtype(DType(dtype))))
        if not _holds(bounds, at, stored) and not (wide is not None and _holds(wide, at, value)):
            low, high, nan = bounds.low[at], bounds.high[at], bool(bounds.nan[at])
            yield f"{name}{list(at)} is {stored}, of the oracle {low} to {high}{' or NaN' if nan else ''}"
            return


def _holds(bounds: Bounds, at: tuple[int, ...], value: float) -> bool:
    """Whether the set of an element holds a value, or one beside it."""
    if value != value:
        return bool(bounds.nan[at])
    slack = SLACK * abs(value) if bounds.is_float and np.isfinite(value) else 0
    return bool(bounds.low[at] - slack <= value <= bounds.high[at] + slack)


# Gradients


def _point(family: Family, case: Case, rng: np.random.Generator) -> dict[str, Array | None]:
    """Return the inputs of a call with the floating ones far from kinks, most likely, and in float64."""
    result: dict[str, Array | None] = {}
    for name, a in case.arrays().items():
        floating = a is not None and not is_integer(a)
        result[name] = np.asarray(rng.uniform(-1.5, 1.5, a.shape)) if floating and a is not None else a
    return result


class Slope:
    """A weighted sum of an op's floating outputs, along directions of its inputs."""

    def __init__(
        self, text: str, case: Case, inputs: Inputs, weights: Mapping[str, Array], types: Mapping[str, str] | None = None
    ) -> None:
        self.text, self.case, self.inputs, self.weights, self.types = text, case, inputs, weights, types
        self.tape = brute.Tape()
        self.size = 0.0
        self.at({})

    def at(self, moved: Mapping[str, Array]) -> float:
        """Return the sum with the inputs moved."""
        inputs = {n: a if a is None or n not in moved else a + moved[n] for n, a in self.inputs.items()}
        found = _evaluate(self.text, inputs, self.case, self.tape, self.types)
        terms = [float(w[at]) * value for n, w in self.weights.items() for at, value in found[spelled(n)][2].items()]
        self.size = max(self.size, float(np.sum(np.abs(terms))))
        return float(np.sum(terms))

    def first(self, v: Mapping[str, Array]) -> float | None:
        """Return the derivative along `v`; None where there is a kink, here or nearby."""

        def on(h: float) -> float:
            return self.at({n: h * d for n, d in v.items()})

        def central(h: float) -> float:
            return (on(h) - on(-h)) / (2 * h)

        def turn(h: float) -> float:
            return (on(h) - 2 * self.at({}) + on(-h)) / (2 * h)

        told = _settled(central, 1e-3, 1e-15 * self.size / 1e-4)
        # Central differences at a kink tell the mean of its two slopes. Of a smooth function the two are one: half
        # their difference falls with the step, so nothing is left of it when extrapolated.
        if told is not None and abs(2 * turn(5e-4) - turn(1e-3)) > CLOSE * max(abs(told), 1e-3):
            return None
        return told

    def second(self, v: Mapping[str, Array], w: Mapping[str, Array]) -> float | None:
        """Return the derivative along `v` and `w`; None where there is a kink nearby."""
        if self.tape.at_zeroth_power:
            return None

        def central(h: float) -> float:
            corners = [a * b * self.at({n: h * (a * v[n] + b * w[n]) for n in v}) for a in (1, -1) for b in (1, -1)]
            return sum(corners) / (4 * h * h)

        return _settled(central, 1e-2, 1e-15 * self.size / 1e-6)


def _settled(central: Callable[[float], float], h: float, noise: float) -> float | None:
    """Return what central differences tend to, or None where smaller steps do not tell the same, or rounding is all they tell."""
    one, two, four = central(h), central(h / 2), central(h / 4)
    first, second = (4 * two - one) / 3, (4 * four - two) / 3
    best = (16 * second - first) / 15
    scale = max(abs(one), abs(four), 1e-6)
    # Of a smooth function the error falls by 4 with each half of the step, and that of what is extrapolated is small.
    if not np.isfinite(best) or abs(first - second) > 1e-5 * scale + 100 * noise or 100 * noise > CLOSE * scale:
        return None
    return best


CLOSE = 2e-4
"""How near differences and a gradient must be, relative to the sum of the terms' magnitudes."""


def _dot(pairs: list[tuple[Array, Bounded]]) -> tuple[float, float, float]:
    """Return the least and the greatest sum of products, and the sum of the terms' magnitudes; no number where a set has none."""
    ends = [[np.zeros(1)], [np.zeros(1)]]
    for a, b in pairs:
        with np.errstate(invalid="ignore"):
            both = np.stack([a * b.bounds.low, a * b.bounds.high])
        both[:, b.bounds.nan & (a != 0)] = np.nan
        ends[0].append(both.min(axis=0).reshape(-1))
        ends[1].append(both.max(axis=0).reshape(-1))
    low, high = (np.concatenate(e) for e in ends)
    return float(low.sum()), float(high.sum()), float(np.maximum(np.abs(low), np.abs(high)).sum())


def doubled(text: str) -> str:
    """Return a spec whose floating types are float64 alone."""
    data = yaml.safe_load(text)
    floating = {n for n, kinds in data.get("types", {}).items() if isinstance(kinds, list) and set(kinds) <= {*FLOATS}}
    data["types"] = {n: ["float64"] if n in floating else kinds for n, kinds in data.get("types", {}).items()}
    for entry in (data.get("attributes") or {}).values():
        if isinstance(entry, dict) and entry["type"] == "dtype" and entry.get("binds") in floating and "default" in entry:
            entry["default"] = "float64"
    return str(yaml.safe_dump(data, sort_keys=False))


def _by_numbers(text: str, case: Case, inputs: Inputs, u: Mapping[str, Array]) -> dict[str, Bounded]:
    """Return the gradients as the NumPy reference computes them in float64: for what the oracle's sets leave undecided.

    Equal elements whose values carry rounding errors are such a case: whether one is the greatest is not known of a set.
    """
    family = compile_text(doubled(text), "doubled")
    forward, backward = family.forward, family.backward
    assert backward is not None
    attributes = {
        a.name: "float64" if a.kind is AttributeKind.DTYPE and str(case.attributes.get(a.name)) in FLOATS else v
        for a in forward.attributes
        if (v := case.attributes.get(a.name)) is not None
    }
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)

    def run(op: Op, arrays: Mapping[str, Any]) -> dict[str, Array]:
        more = {"wanted": [o.name for o in op.outputs]} if any(o.optional for o in op.outputs) else {}
        with np.errstate(all="ignore"):
            found = module[function_name(op)](*(arrays.get(o.name) for o in op.inputs), **attributes, **more)
        return {o.name: np.asarray(a) for o, a in zip(op.outputs, found, strict=True)}

    found = run(backward, derived_inputs(backward, inputs, run(forward, inputs), u))
    return {of: Bounded(exact(found[g]), DType.FLOAT64) for g, of in gradient_names(backward).items() if found.get(g) is not None}


def wrong_gradients(text: str, family: Family, case: Case) -> Iterator[str]:
    """Yield where differences of the evaluator contradict the first or the second gradient, as the oracle has them."""
    op, backward = family.forward, family.backward
    if backward is None or not is_differentiated(op, case.arrays()):
        return
    rng = np.random.default_rng(5)
    inputs = _point(family, case, rng)
    of_call = {str(o.type): DType(str(a.dtype)) for o in op.inputs if (a := case.arrays().get(o.name)) is not None}
    # What the body asks of a type is answered as it is in the call.
    asked = {e.variable: of_call[e.variable] for e in asked_types(op) if e.variable in of_call}
    binding = {t.name: asked.get(t.name) or next((d for d in reversed(t.dtypes) if d.is_floating), None) for t in op.types}
    for o in op.inputs:
        name, a = str(o.type), inputs.get(o.name)
        if a is not None and binding.get(name, 0) is None:
            binding[name] = DType(str(a.dtype))
    active = [n for n in dict.fromkeys(gradient_names(backward).values()) if inputs.get(n) is not None]
    try:
        out = evaluate(op, inputs, case.attributes, binding=binding, precise=True)
        u = {n: rng.standard_normal(v.shape) for n, v in out.items() if v.dtype.is_floating}
        v, w = ({n: rng.standard_normal(np.shape(inputs[n])) for n in active} for _ in range(2))
        slope = Slope(text, case, inputs, u, {n: d.value for n, d in asked.items()})
    except (DomainError, ShapeError, NoValueError, OutsideError, RefusedError):
        return
    try:
        given = gradient(op, backward, inputs, case.attributes, {**u}, binding=binding, precise=True)
    except UndecidedError:
        return
    except (DomainError, ShapeError) as error:
        yield f"{case.name}: the gradient has no value: {error}"
        return
    told = slope.first(v)
    if told is not None:
        low, high, scale = _dot([(v[n], given[n]) for n in active if n in given])
        if not high - low <= CLOSE * max(abs(told), 1e-3):
            if asked:
                return  # in float64 the body would be another
            given = _by_numbers(text, case, inputs, u)
            low, high, scale = _dot([(v[n], given[n]) for n in active if n in given])
        if not np.isfinite(high - low) and "inf" in text:
            return  # a spec that pads with infinity multiplies it by 0
        slack = CLOSE * max(scale, abs(told), 1e-3)
        if not low - slack <= told <= high + slack:
            yield f"{case.name}: the gradient is {low:.9g} to {high:.9g} along a direction, by differences {told:.9g}"
            return
    if family.backward_backward is None:
        return
    try:
        more = second_gradient(
            op, backward, family.backward_backward, inputs, case.attributes, {**u}, {**v}, binding=binding, precise=True
        )
    except UndecidedError:
        return
    except (DomainError, ShapeError) as error:
        yield f"{case.name}: the second gradient has no value: {error}"
        return
    if told is None:
        return
    twice = slope.second(v, w)
    if twice is not None:
        low, high, scale = _dot([(w[n], more[n]) for n in active if n in more])
        slack = 10 * CLOSE * max(scale, abs(twice), 1e-2)
        # What the sets leave undecided is held nowhere but by the first gradient.
        if low - slack > twice or twice > high + slack:
            yield f"{case.name}: the second gradient is {low:.9g} to {high:.9g} along two directions, by differences {twice:.9g}"


__all__ = ["wrong_gradients", "wrong_values"]
