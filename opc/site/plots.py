"""Plots of elementwise functions and their derivatives, as SVG that takes its colours from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opc.emit.mathml.statements import is_elementwise
from opc.ir.dtypes import DType, candidates
from opc.ir.op import AttributeKind, Family, Op, Role
from opc.records import dataclass
from opc.site.texts import words
from opc.testing.oracle.evaluation import evaluate

LEAST, MOST, POINTS = -4.0, 4.0, 801
"""Where functions are plotted: from the least to the most, at so many points."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 360, 52, 16, 16, 40
_HIGHEST = 8.0
"""Values beyond it are not shown: they would make what matters flat."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curves:
    """A function of one number, and its derivative, where it has one: values at the same points, NaN where there is none."""

    x: Values
    y: Values
    slope: Values | None
    attributes: Mapping[str, Any]


def curves(family: Family) -> Curves | None:
    """Return what an op computes of one number, by the oracle in float64; None of an op that is no such function.

    Attributes have their defaults; where some have none, those of the spec's first example.
    """
    op = family.forward
    if op.opaque or len(op.inputs) != 1 or len(op.outputs) != 1 or not is_elementwise(op):
        return None
    if not all(o.dims and any(d.is_floating for d in candidates(o.type)) for o in (*op.inputs, *op.outputs)):
        return None
    attributes = attributes_of(family)
    # What only moves elements is no function of a number.
    if attributes is None or any(o.permuted for o in (*op.inputs, *op.outputs)):
        return None
    x = np.linspace(LEAST, MOST, POINTS)
    source, result = op.inputs[0].name, op.outputs[0].name
    y = _evaluated(op, {source: x}, attributes)[result]
    slope = None
    if (backward := family.backward) is not None and backward.derivation is not None:
        given = {Role.INPUT: x, Role.OUTPUT: y, Role.COTANGENT: np.ones_like(x)}
        roles = zip(backward.inputs, backward.derivation.inputs, strict=True)
        slope = _evaluated(backward, {o.name: given[role] for o, (role, _) in roles}, attributes)[backward.outputs[0].name]
    return Curves(x, y, slope, attributes)


def attributes_of(family: Family) -> dict[str, Any] | None:
    """Return a value for each attribute that places no axis: its default, or that of the spec's first example.

    None where one has neither, or binds a type.
    """
    shown = dict(family.examples[0].values) if family.examples else {}
    found: dict[str, Any] = {}
    for a in family.forward.attributes:
        if a.kind is AttributeKind.AXIS:
            continue
        if a.kind is AttributeKind.DTYPE or (a.required and a.name not in shown):
            return None
        found[a.name] = shown[a.name] if a.required else a.default
    return found


def _evaluated(op: Op, inputs: Mapping[str, Values], attributes: Mapping[str, Any]) -> dict[str, Values]:
    floating = {t.name: [d for d in t.dtypes if d.is_floating] for t in op.types}
    binding = {t.name: DType.FLOAT64 if DType.FLOAT64 in t.dtypes else (floating[t.name] or t.dtypes)[0] for t in op.types}
    found = evaluate(op, inputs, attributes, binding=binding, precise=True)
    values = {name: b.value.astype(np.float64) for name, b in found.items()}
    return {name: np.broadcast_to(np.where(np.isfinite(v), v, np.nan), (POINTS,)) for name, v in values.items()}


def svg(family: Family, of: Curves) -> str:
    """Return the plot as one line of SVG, with a title and a description for screen readers."""
    names = family.forward.inputs[0].name, family.forward.outputs[0].name
    lines = [("opc-function", names[1], of.y)]
    if of.slope is not None:
        lines.append(("opc-derivative", f"d{names[1]}/d{names[0]}", of.slope))
    low, high = _range([values for *_, values in lines])
    frame = _Frame(low, high)
    parts = [frame.axes(*names)]
    for place, (kind, title, values) in enumerate(lines):
        parts.append(f'<path class="opc-curve {kind}" d="{frame.path(of.x, values)}"/>')
        x, y = _LEFT + 12, _TOP + 16 + 20 * place
        parts.append(f'<path class="opc-curve {kind}" d="M{x} {y}h28"/><text x="{x + 36}" y="{y + 4}">{words(title)}</text>')
    title = f"{family.name} and its derivative" if of.slope is not None else family.name
    label = f"plot-{family.name}"
    return (
        f'<svg class="opc-plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{label}-title {label}-desc"'
        f' xmlns="http://www.w3.org/2000/svg"><title id="{label}-title">{words(title)}</title>'
        f'<desc id="{label}-desc">{words(_described(of, lines))}</desc>{"".join(parts)}</svg>'
    )


def _described(of: Curves, lines: Sequence[tuple[str, str, Values]]) -> str:
    """Return what can be read off the plot in words: the value of each curve at a few points."""
    told = []
    for _, title, values in lines:
        at = [(x, values[int(np.argmin(np.abs(of.x - x)))]) for x in (-4, -2, -1, 0, 1, 2, 4)]
        told.append(f"{title}: " + ", ".join(f"{v:.3g} at {x}" if math.isfinite(v) else f"none at {x}" for x, v in at))
    return "; ".join(told)


def _range(lines: Sequence[Values]) -> tuple[float, float]:
    """Return the least and the greatest value to show, with a margin; zero is among them."""
    values = np.concatenate([v[np.isfinite(v)] for v in lines] + [np.zeros(1)])
    low, high = max(float(values.min()), -_HIGHEST), min(float(values.max()), _HIGHEST)
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def _steps(low: float, high: float) -> list[float]:
    """Return round numbers between two."""
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


class _Frame:
    """Where values stand in the picture."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        return _LEFT + (value - LEAST) / (MOST - LEAST) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (self.high - value) / (self.high - self.low) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, across: str, up: str) -> str:
        """Return the grid with its numbers, and what stands along the axes."""
        left, right, top, bottom = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
        parts = []
        for v in _steps(LEAST, MOST):
            x = f"{self.x(v):.1f}"
            parts.append(f'<path class="{"opc-axis" if v == 0 else "opc-grid"}" d="M{x} {top}V{bottom}"/>')
            parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{_text(v)}</text>')
        for v in _steps(self.low, self.high):
            y = self.y(v)
            parts.append(f'<path class="{"opc-axis" if v == 0 else "opc-grid"}" d="M{left} {y:.1f}H{right}"/>')
            parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{_text(v)}</text>')
        parts.append(f'<text x="{(left + right) / 2:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{words(across)}</text>')
        middle = f"{(top + bottom) / 2:.1f}"
        parts.append(f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{words(up)}</text>')
        return "".join(parts)

    def path(self, x: Values, y: Values) -> str:
        """Return a curve, with a gap where it leaves the picture, has no value, or jumps."""
        steps = np.abs(np.diff(y))
        calm = np.maximum(np.r_[0, steps[:-1]], np.r_[steps[1:], 0])
        jumps = np.r_[False, (steps > 0.02 * (self.high - self.low)) & (steps > 4 * calm)]
        parts, drawing = [], False
        for i in range(len(x)):
            if not (math.isfinite(y[i]) and self.low <= y[i] <= self.high):
                drawing = False
                continue
            parts.append(f"{'L' if drawing and not jumps[i] else 'M'}{self.x(x[i]):.1f} {self.y(y[i]):.1f}")
            drawing = True
        return "".join(parts)


def _text(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")
