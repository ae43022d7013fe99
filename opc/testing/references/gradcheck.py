"""Proves derived gradients against differences, in float64 on the oracle, with rigorous bounds instead of tolerances.

For a forward op f, cotangents u and a segment from a to b, the mean value theorem says that <u, f(b) - f(a)> equals
<f'(z)^T u, b - a> for some z on the segment. The oracle evaluates the backward op on the box around the segment, which encloses
the right side for every z, and the forward op at both ends, which encloses the left side with all rounding errors. The two
enclosures must meet. No step of this is an estimate: truncation is inside the first enclosure, rounding inside both. Where a kink
lies in the box, the enclosure holds the derivatives of both sides, and the theorem still holds (Clarke, Optimization and
Nonsmooth Analysis, 1983, theorem 2.3.7). A pair of enclosures too wide to reveal a wrong gradient counts as undecided, unless
some elements alone make it so: then the others are proved, see `opc.testing.references.sharpness`. An element is equal to itself
on the whole box, and to the maximum that is taken from it: see `opc.testing.oracle.numbering`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.ir.expr import Call, walk
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Family, Op
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import Value, derived_inputs, gradient_names, seed_names
from opc.testing.oracle.bounds import Array, Bounds, between
from opc.testing.oracle.evaluation import Bounded, DomainError, EmptyReductionError, evaluate
from opc.testing.oracle.frame import UndecidedError
from opc.testing.oracle.numbering import ValueNumbers, compares
from opc.testing.references.points import FEW, FEWER, Point, binding_of, drawn, finite, points, second_order_points
from opc.testing.references.sharpness import STEP, narrow, sharpest
from opc.testing.references.tally import GradientResult, Tally, decides, dot

Begin = Callable[[str], object]
"""Is told the name of what begins."""

FIRST, SECOND = "gradient against differences", "second gradient against differences"
"""The proofs that a surrogate of the derivative is not held to."""

SHORTER = (1.0, 1.0, 1 / 8, 1 / 8, 1 / 64, 1 / 64, 1 / 512, 1 / 512)
"""How long the segments around a point are, as parts of the usual one, on which an op with step functions is tried before its
gradient is taken to be wrong there: what is rounded of a large number jumps in all long ones."""

_Evaluate = Callable[[Op, Mapping[str, Value]], dict[str, Bounded]]


def check_vjp(name: str, op: Op, backward: Op, cases: list[Point]) -> GradientResult:
    """Prove the vjp `backward` of `op` at points: floating inputs in float64, and attributes.

    Elements of outputs without value at a point get no cotangent, and elements of inputs that only these depend on stay where
    they are: the others are proved. Where a step function jumps on a segment there is no mean value: of an op with any, a point
    has failed when several segments around it have.
    """
    tally = Tally(name)
    rng = np.random.default_rng(7)
    active = list(dict.fromkeys(gradient_names(backward).values()))
    for inputs, attributes in cases:
        moved = [n for n in active if inputs.get(n) is not None]
        directions = [moved] + ([[n] for n in moved] if len(moved) > 1 else [])
        for chosen in directions:
            label = f"{', '.join(chosen)} {_describe(inputs, attributes)}"
            segments = (_Segment(op, backward, inputs, attributes, chosen, rng, n) for n in (SHORTER if jumps(op) else (1.0,)))
            _meet(tally, segments, rng, label)
    return tally.result()


def jumps(op: Op) -> bool:
    """Whether a body has functions that jump between values: those without a slope, and remainders."""
    steps = (e for s in op.body for e in walk(s.value) if isinstance(e, Call))
    return any(e.fn == "mod" or {*(FUNCTIONS[e.fn].derivative or ())} == {"0"} for e in steps)


def _meet(tally: Tally, segments: Iterable[_Segment], rng: np.random.Generator, label: str) -> None:
    """Record what a point decides: on the first of the segments around it, or where that fails on another that decides."""
    first: Tally | None = None
    for segment in segments:
        own = Tally(tally.name)
        _meet_on(own, segment, rng, label)
        if first is None:
            first = own
        elif own.decided and not own.message:
            first = own
            break
        if not (first.decided and first.message):
            break
    if first is not None:
        tally.add(first)


def _meet_on(tally: Tally, segment: _Segment, rng: np.random.Generator, label: str) -> None:
    """Record whether the enclosures of both sides of the theorem overlap on a segment."""
    try:
        cotangents = segment.cotangents(rng)
    except (DomainError, ShapeError):
        return
    try:
        if any(not u.all() for u in cotangents.values()) and not segment.hold(cotangents):
            tally.undecided += 1
            return
        sides = segment.sides(cotangents)
        if not decides(*sides) and segment.sharpen(cotangents):
            sides = segment.sides(cotangents)
        tally.meet(*sides, label)
    except (EmptyReductionError, UndecidedError):
        return  # an output without elements needs no maximum; its gradient may, and is refused
    except (DomainError, ShapeError) as reason:
        tally.without_value(reason, label)


class _Segment:
    """A segment from one point to another, on which the mean value theorem is applied."""

    def __init__(
        self,
        op: Op,
        backward: Op,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        chosen: Sequence[str],
        rng: np.random.Generator,
        length: float,
    ) -> None:
        """Take a segment around a point, along random steps of the inputs in `chosen`."""
        self.op, self.backward, self.inputs, self.attributes = op, backward, inputs, attributes
        self.names = {g: of for g, of in gradient_names(backward).items() if of in chosen}
        self.steps: dict[str, Array] = {}
        for n in chosen:
            x = np.asarray(inputs[n])
            self.steps[n] = length * STEP * np.maximum(np.abs(x), 1) * rng.uniform(-1, 1, x.shape)

    def evaluate(self) -> None:
        """Evaluate the op at both ends and on the box around them."""
        numbers = _numbers(self.op, self.backward)
        self.run = _evaluator(self.op, self.attributes, numbers)
        self.first, self.last, self.box = dict(self.inputs), dict(self.inputs), dict[str, Value](self.inputs)
        for n, step in self.steps.items():
            x = np.asarray(self.inputs[n])
            self.first[n], self.last[n] = first, last = x - step, x + step
            box = between(np.minimum(first, last), np.maximum(first, last))
            self.box[n] = box if numbers is None else numbers.fresh(box)
        self.ends = [self.run(self.op, v) for v in (self.first, self.last)]
        self.over = self.run(self.op, self.box)

    def cotangents(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return a random cotangent for every output, zero for elements without a value somewhere on the segment."""
        self.evaluate()
        result: dict[str, Array] = {}
        for o in seed_names(self.backward):
            if o in self.over:
                result[o] = rng.standard_normal(self.over[o].shape)
                for found in (*self.ends, self.over):
                    result[o] = _counting(result[o], found[o])
        return result

    def gradients(self, cotangents: Mapping[str, Array]) -> dict[str, Bounded]:
        """Return the enclosures of the gradients on the box, by the names of inputs."""
        found = self.run(self.backward, derived_inputs(self.backward, self.box, self.over, cotangents))
        return {of: found[g] for g, of in self.names.items()}

    def hold(self, cotangents: Mapping[str, Array]) -> bool:
        """Hold the elements still whose gradients have no value; return whether any element moves and any output counts."""
        for of, values in self.gradients(cotangents).items():
            self.steps[of] = _counting(self.steps[of], values)
        self.evaluate()
        return any(s.any() for s in self.steps.values()) and any(u.any() for u in cotangents.values())

    def sharpen(self, cotangents: dict[str, Array]) -> bool:
        """Leave out outputs and hold inputs that are too wide; return whether others are left that move an output."""
        for o, u in cotangents.items():
            for end in self.ends:
                u = np.where(narrow(end[o].bounds), u, 0.0)
            cotangents[o] = u
        gradients = self.gradients(cotangents)
        kept = sharpest([(2 * self.steps[of], values.bounds) for of, values in gradients.items()])
        for of, which in zip(gradients, kept):
            self.steps[of] = np.where(which, self.steps[of], 0.0)
        self.evaluate()
        return any(which.any() for which in kept)

    def sides(self, cotangents: Mapping[str, Array]) -> tuple[Bounds, Bounds, float]:
        """Return enclosures of both sides of the theorem, and the sum of the magnitudes of the right one's terms."""
        lengths = {n: np.asarray(self.last[n]) - np.asarray(self.first[n]) for n in self.steps}
        slope, scale = dot([(lengths[of], values.bounds) for of, values in self.gradients(cotangents).items()])
        rise, size = dot([(sign * u, end[o].bounds) for sign, end in zip((-1, 1), self.ends) for o, u in cotangents.items()])
        # Of a gradient that is 0 it is asked how much the outputs' sum changes, for its share of the step.
        return rise, slope, scale or STEP * size


def _counting(weights: Array, values: Bounded) -> Array:
    """Return weights with zeros for elements without a finite value."""
    return np.where(finite(values.bounds), weights, 0.0)


def _numbers(*ops: Op) -> ValueNumbers | None:
    """Return what knows elements again, where ops compare some."""
    return ValueNumbers() if any(compares(op) for op in ops) else None


def _evaluator(op: Op, attributes: Mapping[str, Any], numbers: ValueNumbers | None) -> _Evaluate:
    """Return what evaluates an op, or one derived from it, in float64."""

    def run(which: Op, given: Mapping[str, Value]) -> dict[str, Bounded]:
        return evaluate(which, given, attributes, binding=binding_of(op), precise=True, numbers=numbers)

    return run


def _describe(inputs: Mapping[str, Array | None], attributes: Mapping[str, Any]) -> str:
    shapes = ", ".join(f"{n}{list(v.shape)}" for n, v in inputs.items() if v is not None)
    return f"at {shapes}{f' with {dict(attributes)}' if attributes else ''}"


def check_jvp(name: str, op: Op, forward_mode: Op, backward: Op, cases: list[Point]) -> GradientResult:
    """Prove the jvp of `op` by <u, J v> = <J^T u, v> with its vjp, for random u and v."""
    tally = Tally(name)
    rng = np.random.default_rng(11)
    for inputs, attributes in cases:
        label = _describe(inputs, attributes)
        run = _evaluator(op, attributes, _numbers(op, forward_mode, backward))
        try:
            outputs = run(op, inputs)
        except (DomainError, ShapeError):
            continue
        u = {o: _counting(rng.standard_normal(outputs[o].shape), outputs[o]) for o in seed_names(backward) if o in outputs}
        v = {n: rng.standard_normal(x.shape) for n in seed_names(forward_mode) if (x := inputs.get(n)) is not None}
        try:
            pulled = run(backward, derived_inputs(backward, inputs, outputs, {**u}))
            gradients = {of: pulled[g] for g, of in gradient_names(backward).items() if g in pulled and of in v}
            if any(not w.all() for w in u.values()):
                # As in `check_vjp`, what has no value is left out.
                v |= {of: _counting(v[of], found) for of, found in gradients.items()}
                if not all(any(w.any() for w in weights.values()) for weights in (u, v)):
                    tally.undecided += 1
                    continue
            pushed = run(forward_mode, derived_inputs(forward_mode, inputs, outputs, {**v}))
        except (EmptyReductionError, UndecidedError):
            continue
        except (DomainError, ShapeError) as reason:
            tally.without_value(reason, label)
            continue
        sides = _both(forward_mode, pushed, gradients, u, v)
        if not decides(*sides):
            # As in `_Segment.sharpen`.
            u = {o: np.where(narrow(outputs[o].bounds), w, 0.0) for o, w in u.items()}
            pulled = run(backward, derived_inputs(backward, inputs, outputs, {**u}))
            gradients = {of: pulled[g] for g, of in gradient_names(backward).items() if g in pulled and of in v}
            kept = sharpest([(v[of], found.bounds) for of, found in gradients.items()])
            if any(which.any() for which in kept):
                v |= {of: np.where(which, v[of], 0.0) for of, which in zip(gradients, kept)}
                pushed = run(forward_mode, derived_inputs(forward_mode, inputs, outputs, {**v}))
                sides = _both(forward_mode, pushed, gradients, u, v)
        tally.meet(*sides, label)
    return tally.result()


def _both(
    forward_mode: Op,
    pushed: Mapping[str, Bounded],
    gradients: Mapping[str, Bounded],
    u: Mapping[str, Array],
    v: Mapping[str, Array],
) -> tuple[Bounds, Bounds, float]:
    """Return enclosures of <u, J v> and <J^T u, v>, and the sum of the magnitudes of the former's terms."""
    names = gradient_names(forward_mode)
    left, scale = dot([(u[of], pushed[t].bounds) for t, of in names.items() if t in pushed and of in u])
    right, _ = dot([(v[of], found.bounds) for of, found in gradients.items()])
    return left, right, scale


def check_same(name: str, op: Op, explicit: Op, automatic: Op, cases: list[Point]) -> GradientResult:
    """Prove that an explicit gradient equals the automatic one, element by element."""
    tally = Tally(name)
    rng = np.random.default_rng(13)
    for inputs, attributes in cases:
        run = _evaluator(op, attributes, _numbers(op, explicit, automatic))
        try:
            outputs = run(op, inputs)
        except (DomainError, ShapeError):
            continue
        cotangents = {o: rng.standard_normal(v.shape) for o, v in outputs.items()}
        both: list[dict[str, Bounded]] = []
        try:
            for gradient in (explicit, automatic):
                found = run(gradient, derived_inputs(gradient, inputs, outputs, {**cotangents}))
                both.append({of: found[g] for g, of in gradient_names(gradient).items() if inputs.get(of) is not None})
        except (EmptyReductionError, UndecidedError):
            continue
        except (DomainError, ShapeError) as reason:
            tally.without_value(reason, _describe(inputs, attributes))
            continue
        if both[0].keys() != both[1].keys():
            tally.message = f"gradients of {sorted(both[0])} against {sorted(both[1])}"
            break
        for of, value in both[0].items():
            tally.meet_elements(value, both[1][of], f"gradient of {of} {_describe(inputs, attributes)}")
    return tally.result()


def unheard(name: str) -> None:
    """Tell nobody that something begins."""


def unproved(family: Family) -> list[str]:
    """Return the names of the proofs that a family's surrogates are not held to."""
    proofs = (FIRST, family.forward, family.backward), (SECOND, family.backward, family.backward_backward)
    return [name for name, op, vjp in proofs if op is not None and vjp is not None and op.name in family.surrogates]


def check_family(family: Family, chosen: Iterable[Case] | None = None, begin: Begin = unheard) -> list[GradientResult]:
    """Prove every derived op of a family; empty for an op without gradient.

    A surrogate, which the spec puts in the place of a derivative, is held to no differences: see `unproved`.
    `chosen` are the calls of the forward op to differentiate at, by default `points`. `begin` is told each proof's name first.
    """
    forward, backward = family.forward, family.backward
    if backward is None:
        return []
    results: list[GradientResult] = []
    left_out = unproved(family)

    def prove(check: Callable[..., GradientResult], name: str, *ops: Op, second: bool = False) -> None:
        begin(name)
        found = check(name, *ops, places(second, None))
        for limit in FEWER if found.vague and chosen is None else ():
            fewer = check(name, *ops, places(second, limit))
            if fewer.decided or (fewer.message and not fewer.vague):
                found = fewer
                break
        results.append(found)

    @cache
    def places(second: bool, limit: int | None) -> list[Point]:
        if second:
            return second_order_points(forward, backward, places(False, limit))
        return drawn(forward, points(forward, family=family, limit=limit) if chosen is None else chosen)

    if FIRST not in left_out:
        prove(check_vjp, FIRST, forward, backward)
    if family.explicit_backward and not forward.opaque and not left_out:
        from opc.transform.autodiff import vjp

        automatic = vjp(forward)
        if automatic is not None:
            prove(check_same, "explicit gradient against automatic", forward, backward, automatic)
    if family.jvp is not None:
        prove(check_jvp, "jvp against gradient", forward, family.jvp, backward)
    if family.backward_backward is not None:
        if SECOND not in left_out:
            prove(check_vjp, SECOND, backward, family.backward_backward, second=True)
        if family.backward_jvp is not None:
            prove(check_jvp, "jvp of gradient", backward, family.backward_jvp, family.backward_backward, second=True)
    return results


def check_sample(family: Family, count: int = FEW, begin: Begin = unheard) -> list[GradientResult]:
    """Prove every derived op of a family at a few points.

    Where these are too vague to decide, or where a derivative is 0 at all of them, it is proved at those of `check_family`.
    """
    found = check_family(family, islice(points(family.forward, count, family=family), count), begin)
    return found if all(result.ok and result.decided > result.flat for result in found) else check_family(family, begin=begin)


__all__ = [
    "FEW",
    "Begin",
    "GradientResult",
    "check_family",
    "check_jvp",
    "check_same",
    "check_sample",
    "check_vjp",
    "points",
    "unheard",
]
