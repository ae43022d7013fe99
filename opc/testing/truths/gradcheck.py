"""Proves derived gradients against differences, in float64 on the oracle, with rigorous bounds instead of tolerances.

For a forward op f, cotangents u and a segment from a to b, the mean value theorem says that <u, f(b) - f(a)> equals
<f'(z)^T u, b - a> for some z on the segment. The oracle evaluates the backward op on the box around the segment, which encloses
the right side for every z, and the forward op at both ends, which encloses the left side with all rounding errors. The two
enclosures must meet. No step of this is an estimate: truncation is inside the first enclosure, rounding inside both. Where a kink
lies in the box, the enclosure holds the derivatives of both sides, and the theorem still holds (Clarke, Optimization and
Nonsmooth Analysis, 1983, theorem 2.3.7). A pair of enclosures too wide to tell a wrong gradient is counted as undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.testing.cases.arguments import random_values
from opc.testing.cases.calls import Case, Maker
from opc.testing.cases.derived import derived_inputs, gradient_names, seed_names
from opc.testing.oracle.bounds import Array, Bounds, between
from opc.testing.oracle.evaluation import Bounded, DomainError, EmptyReductionError, evaluate
from opc.testing.oracle.frame import UndecidedError

Point = tuple[dict[str, Array | None], dict[str, Any]]
"""Inputs, the floating ones in float64, and attributes."""

STEP = 2.0**-26
"""Half the length of a segment for values near 1: truncation and rounding of a difference weigh about the same there."""

SHARP = 2.0**-12
"""A difference decides when its enclosures are narrower than this part of the sum of its terms' magnitudes."""

SMALL = 1500
"""The number of points the largest loop may have where a gradient is proved."""

FEW = 4
"""At how many points a sample of calls proves gradients."""

MOST_ELEMENTS = 600
"""The number of elements that the inputs may have together where a gradient is proved."""


@dataclass(frozen=True, slots=True)
class GradientResult:
    """The outcome of one gradient proof: points that decided, points too vague to decide, and what failed first.

    `ratio` is the worst distance between the middles of the two enclosures over the sum of their half widths.
    """

    name: str
    decided: int
    undecided: int
    ratio: float
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing failed and at least one point decided."""
        return not self.message


class _Tally:
    """Counts the points of one proof."""

    def __init__(self, name: str) -> None:
        self.name, self.decided, self.undecided, self.ratio, self.message = name, 0, 0, 0.0, ""

    def meet(self, left: Bounds, right: Bounds, scale: float, label: str) -> None:
        """Record whether two enclosures of the same number meet, when they are sharp enough to tell."""
        ends = [float(v) for v in (left.low, left.high, right.low, right.high)]
        if not np.isfinite(ends).all() or bool(left.nan | right.nan):
            self.undecided += 1
            return
        width = (ends[1] - ends[0] + ends[3] - ends[2]) / 2
        distance = abs(ends[0] + ends[1] - ends[2] - ends[3]) / 2
        if not width <= SHARP * scale:
            self.undecided += 1
            return
        self.decided += 1
        ratio = distance / width if width > 0 else (0.0 if distance == 0 else np.inf)
        self.ratio = max(self.ratio, ratio)
        if (ends[0] > ends[3] or ends[2] > ends[1]) and not self.message:
            middles = f"{(ends[0] + ends[1]) / 2:.9g} against {(ends[2] + ends[3]) / 2:.9g}"
            self.message = f"{label}: {middles}, bound {width:.3g}"

    def without_value(self, reason: Exception, label: str) -> None:
        """Record that a derived op has no value where the op it is derived from has one."""
        self.message = self.message or f"{label}: no value: {reason}"

    def result(self) -> GradientResult:
        """Return the outcome; a proof in which nothing decided has failed."""
        message = self.message
        if not message and not self.decided and self.undecided:
            message = "no point was sharp enough to decide"
        return GradientResult(self.name, self.decided, self.undecided, self.ratio, message)


def _dot(pairs: list[tuple[Array, Bounds]]) -> tuple[Bounds, float]:
    """Return an enclosure of the sum of products of exact numbers with sets, and the sum of the magnitudes.

    Computed in long double with an error bound of (n + 2) roundoffs of the magnitudes, Higham (2002), section 3.1.
    """
    kind = np.longdouble
    low, high, size, terms, nan = kind(0), kind(0), kind(0), 2, False
    for weight, values in pairs:
        w = weight.astype(kind)
        first, last = w * values.low.astype(kind), w * values.high.astype(kind)
        low, high = low + np.minimum(first, last).sum(), high + np.maximum(first, last).sum()
        size += np.maximum(np.abs(first), np.abs(last)).sum()
        terms += weight.size
        nan = nan or bool(values.nan.any())
    error = size * terms * kind(np.finfo(kind).eps)
    ends = np.nextafter(np.float64(low - error), -np.inf), np.nextafter(np.float64(high + error), np.inf)
    return between(np.asarray(ends[0]), np.asarray(ends[1]), np.asarray(nan)), float(size)


def _binding(op: Op) -> dict[str, DType]:
    """Return a binding with every type variable floating that can be, float64 where it can."""
    return {t.name: next((d for d in reversed(t.dtypes) if d.is_floating), t.dtypes[0]) for t in op.types}


def points(op: Op, count: int = 14) -> Iterator[Case]:
    """Yield small calls of an op to differentiate at: every attribute value and choice of optional inputs, some sizes."""
    kinds: dict[str, int] = {}
    found = 0
    for case in Maker(op, limit=SMALL).table():
        if case is None:
            continue
        kind = case.name.split("/")[1].split("-", 1)[1].rsplit("-", 1)[0]
        size = sum(a.data.size for a in case.inputs.values() if a is not None)
        plain = kind.split("-")[0] in ("sizes", "attribute", "attributes", "without", "axis", "broadcast")
        if "special" in kind or not plain or not 0 < size <= MOST_ELEMENTS or kinds.get(kind, 0) >= 2:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        found += 1
        yield case
        if found >= count and not kind.startswith(("attribute", "without", "axis")):
            return


def _inputs(op: Op, case: Case, rng: np.random.Generator) -> dict[str, Array | None]:
    """Return a case's inputs with the floating ones as ordinary float64 values."""
    result: dict[str, Array | None] = {}
    for name, array in case.arrays().items():
        if array is not None and np.dtype(array.dtype).kind not in "iub":
            array = random_values(rng, array.shape, DType.FLOAT64)
        result[name] = array
    return result


def check_vjp(name: str, op: Op, backward: Op, cases: list[Point]) -> GradientResult:
    """Prove the vjp `backward` of `op` at points: floating inputs in float64, and attributes."""
    tally = _Tally(name)
    rng = np.random.default_rng(7)
    binding = _binding(op)
    active = list(dict.fromkeys(gradient_names(backward).values()))
    seeds = seed_names(backward)
    for inputs, attributes in cases:
        moved = [n for n in active if inputs.get(n) is not None]
        directions = [dict.fromkeys(moved, 1.0)] + ([{n: 1.0} for n in moved] if len(moved) > 1 else [])
        for chosen in directions:
            first, last = dict(inputs), dict(inputs)
            for n in chosen:
                x = np.asarray(inputs[n])
                step = STEP * np.maximum(np.abs(x), 1) * rng.uniform(-1, 1, x.shape)
                first[n], last[n] = x - step, x + step
            box = {n: _segment(first[n], last[n]) if n in chosen else v for n, v in inputs.items()}
            label = f"{', '.join(chosen)} {_describe(inputs, attributes)}"
            try:
                low, high = (evaluate(op, v, attributes, binding=binding, precise=True) for v in (first, last))
                over = evaluate(op, box, attributes, binding=binding, precise=True)
            except (DomainError, ShapeError):
                continue
            cotangents = {o: rng.standard_normal(v.shape) for o, v in low.items() if o in seeds}
            try:
                given = derived_inputs(backward, box, over, {**cotangents})
                found = evaluate(backward, given, attributes, binding=binding, precise=True)
            except (EmptyReductionError, UndecidedError):
                continue  # an output without elements needs no maximum; its gradient may, and is refused
            except (DomainError, ShapeError) as reason:
                tally.without_value(reason, label)
                continue
            rise, _ = _dot([(sign * u, end[o].bounds) for sign, end in ((1, high), (-1, low)) for o, u in cotangents.items()])
            lengths = {n: np.asarray(last[n]) - np.asarray(first[n]) for n in chosen}
            names = gradient_names(backward)
            slope, scale = _dot([(lengths[of], found[g].bounds) for g, of in names.items() if of in chosen])
            tally.meet(rise, slope, scale, label)
    return tally.result()


def _segment(a: Array | None, b: Array | None) -> Bounds:
    first, last = np.asarray(a), np.asarray(b)
    return between(np.minimum(first, last), np.maximum(first, last))


def _describe(inputs: Mapping[str, Array | None], attributes: Mapping[str, Any]) -> str:
    shapes = ", ".join(f"{n}{list(v.shape)}" for n, v in inputs.items() if v is not None)
    return f"at {shapes}{f' with {dict(attributes)}' if attributes else ''}"


def check_jvp(name: str, op: Op, forward_mode: Op, backward: Op, cases: list[Point]) -> GradientResult:
    """Prove the jvp of `op` by <u, J v> = <J^T u, v> with its vjp, for random u and v."""
    tally = _Tally(name)
    rng = np.random.default_rng(11)
    binding = _binding(op)
    for inputs, attributes in cases:
        try:
            outputs = evaluate(op, inputs, attributes, binding=binding, precise=True)
        except (DomainError, ShapeError):
            continue
        u = {o: rng.standard_normal(outputs[o].shape) for o in seed_names(backward) if o in outputs}
        given = {n: x for n in seed_names(forward_mode) if (x := inputs.get(n)) is not None}
        v = {n: rng.standard_normal(x.shape) for n, x in given.items()}
        try:
            pull = derived_inputs(backward, inputs, outputs, {**u})
            pulled = evaluate(backward, pull, attributes, binding=binding, precise=True)
            push = derived_inputs(forward_mode, inputs, outputs, {**v})
            pushed = evaluate(forward_mode, push, attributes, binding=binding, precise=True)
        except (EmptyReductionError, UndecidedError):
            continue
        except (DomainError, ShapeError) as reason:
            tally.without_value(reason, _describe(inputs, attributes))
            continue
        left, scale = _dot(
            [(u[of], pushed[t].bounds) for t, of in gradient_names(forward_mode).items() if t in pushed and of in u]
        )
        names = gradient_names(backward)
        right, _ = _dot([(v[of], pulled[g].bounds) for g, of in names.items() if g in pulled and of in v])
        tally.meet(left, right, scale, _describe(inputs, attributes))
    return tally.result()


def check_same(name: str, op: Op, explicit: Op, automatic: Op, cases: list[Point]) -> GradientResult:
    """Prove that an explicit gradient equals the automatic one, element by element."""
    tally = _Tally(name)
    rng = np.random.default_rng(13)
    binding = _binding(op)
    for inputs, attributes in cases:
        try:
            outputs = evaluate(op, inputs, attributes, binding=binding, precise=True)
        except (DomainError, ShapeError):
            continue
        cotangents = {o: rng.standard_normal(v.shape) for o, v in outputs.items()}
        both: list[dict[str, Bounded]] = []
        try:
            for gradient in (explicit, automatic):
                given = derived_inputs(gradient, inputs, outputs, {**cotangents})
                found = evaluate(gradient, given, attributes, binding=binding, precise=True)
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
            _compare_elements(tally, value, both[1][of], f"gradient of {of} {_describe(inputs, attributes)}")
    return tally.result()


def _compare_elements(tally: _Tally, a: Bounded, b: Bounded, label: str) -> None:
    scale = float(np.max(np.abs(np.where(np.isfinite(a.value), a.value, 0)), initial=0.0))
    for index in np.ndindex(a.shape):
        left, right = a.bounds.map(lambda v, i=index: v[i]), b.bounds.map(lambda v, i=index: v[i])  # type: ignore[misc]  # a default binds the loop's value
        tally.meet(left, right, scale, f"{label}, element {list(index)}")


def second_order_points(op: Op, backward: Op, cases: list[Point]) -> list[Point]:
    """Return points of the backward op: a forward point's inputs, its outputs where they are saved, and random cotangents."""
    rng = np.random.default_rng(17)
    binding = _binding(op)
    result: list[Point] = []
    for inputs, attributes in cases:
        try:
            outputs = evaluate(op, inputs, attributes, binding=binding, precise=True)
        except (DomainError, ShapeError):
            continue
        values = {n: v.value for n, v in outputs.items()}
        cotangents = {n: rng.standard_normal(v.shape) for n, v in values.items()}
        given = derived_inputs(backward, inputs, {**values}, {**cotangents})
        result.append(({n: None if v is None else np.asarray(v) for n, v in given.items()}, attributes))
    return result


def check_family(family: Family, chosen: Iterable[Case] | None = None) -> list[GradientResult]:
    """Prove every derived op of a family; empty for an op without gradient.

    `chosen` are the calls of the forward op to differentiate at, by default `points`.
    """
    forward, backward = family.forward, family.backward
    if backward is None:
        return []
    rng = np.random.default_rng(3)
    cases = [(_inputs(forward, c, rng), dict(c.attributes)) for c in (points(forward) if chosen is None else chosen)]
    results = [check_vjp("gradient against differences", forward, backward, cases)]
    if family.explicit_backward and not forward.opaque:
        from opc.transform.autodiff import vjp

        automatic = vjp(forward)
        if automatic is not None:
            results.append(check_same("explicit gradient against automatic", forward, backward, automatic, cases))
    if family.jvp is not None:
        results.append(check_jvp("jvp against gradient", forward, family.jvp, backward, cases))
    seconds = second_order_points(forward, backward, cases)
    if family.backward_backward is not None:
        results.append(check_vjp("second gradient against differences", backward, family.backward_backward, seconds))
        if family.backward_jvp is not None:
            results.append(check_jvp("jvp of gradient", backward, family.backward_jvp, family.backward_backward, seconds))
    return results


def check_sample(family: Family, count: int = FEW) -> list[GradientResult]:
    """Prove every derived op of a family at a few points, or, where these are too vague to decide, at those of `check_family`."""
    found = check_family(family, islice(points(family.forward, count), count))
    return found if all(result.ok for result in found) else check_family(family)


__all__ = ["GradientResult", "check_family", "check_jvp", "check_same", "check_sample", "check_vjp", "points"]
