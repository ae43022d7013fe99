"""Counts what the points of a gradient's proof decide: where two enclosures of one number meet, and where they are too wide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opc.testing.oracle.bounds import Array, Bounds, between
from opc.testing.oracle.evaluation import Bounded
from opc.testing.references.sharpness import EXACT, SHARP

VAGUE = "no point was sharp enough to decide"
"""What a proof says in which no point decided."""


@dataclass(frozen=True, slots=True)
class GradientResult:
    """The outcome of one gradient proof: points that decided, points too vague to decide, and what failed first.

    There are neither where the op refuses all points that were drawn.

    Of those that decided, at the `flat` ones the derivative is 0. `ratio` is the worst distance between the middles of the two
    enclosures over the sum of their half widths.
    """

    name: str
    decided: int
    undecided: int
    ratio: float
    message: str = ""
    flat: int = 0

    @property
    def vague(self) -> bool:
        """Whether no point decided, and none failed."""
        return not self.decided and self.undecided > 0 and self.message in ("", VAGUE)

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and at least one point decided where there were any."""
        return not self.message


class Tally:
    """Counts the points of one proof."""

    def __init__(self, name: str) -> None:
        self.name, self.decided, self.undecided, self.flat, self.ratio, self.message = name, 0, 0, 0, 0.0, ""

    def meet(self, left: Bounds, right: Bounds, scale: float, label: str) -> None:
        """Record whether two enclosures of the same number overlap, when they are sharp enough to decide."""
        ends = [float(v) for v in (left.low, left.high, right.low, right.high)]
        if not decides(left, right, scale):
            self.undecided += 1
            return
        width = (ends[1] - ends[0] + ends[3] - ends[2]) / 2
        distance = abs(ends[0] + ends[1] - ends[2] - ends[3]) / 2
        self.decided += 1
        self.flat += max(-ends[2], ends[3]) <= EXACT
        ratio = distance / width if width > 0 else (0.0 if distance == 0 else np.inf)
        self.ratio = max(self.ratio, ratio)
        if are_apart(left, right) and not self.message:
            middles = f"{(ends[0] + ends[1]) / 2:.9g} against {(ends[2] + ends[3]) / 2:.9g}"
            self.message = f"{label}: {middles}, bound {width:.3g}"

    def add(self, other: Tally) -> None:
        """Record what another tally of the same proof has."""
        self.decided += other.decided
        self.undecided += other.undecided
        self.flat += other.flat
        self.ratio, self.message = max(self.ratio, other.ratio), self.message or other.message

    def meet_elements(self, a: Bounded, b: Bounded, label: str) -> None:
        """Record for each element of two results whether its enclosures overlap."""
        scale = float(np.max(np.abs(np.where(np.isfinite(a.value), a.value, 0)), initial=0.0))
        for index in np.ndindex(a.shape):
            left, right = a.bounds.map(lambda v, i=index: v[i]), b.bounds.map(lambda v, i=index: v[i])  # type: ignore[misc]  # a default binds the loop's value
            self.meet(left, right, scale, f"{label}, element {list(index)}")

    def without_value(self, reason: Exception, label: str) -> None:
        """Record that a derived op has no value where the op it is derived from has one."""
        self.message = self.message or f"{label}: no value: {reason}"

    def result(self) -> GradientResult:
        """Return the outcome; a proof in which nothing decided has failed."""
        message = self.message
        if not message and not self.decided and self.undecided:
            message = VAGUE
        return GradientResult(self.name, self.decided, self.undecided, self.ratio, message, self.flat)


def are_apart(left: Bounds, right: Bounds) -> bool:
    """Whether two enclosures have no number in common."""
    return bool(left.low > right.high or right.low > left.high)


def decides(left: Bounds, right: Bounds, scale: float) -> bool:
    """Return whether two enclosures of one number are sharp enough to tell a wrong gradient."""
    ends = [float(v) for v in (left.low, left.high, right.low, right.high)]
    if not np.isfinite(ends).all() or bool(left.nan | right.nan):
        return False
    return (ends[1] - ends[0] + ends[3] - ends[2]) / 2 <= max(SHARP * scale, EXACT)


def dot(pairs: list[tuple[Array, Bounds]]) -> tuple[Bounds, float]:
    """Return an enclosure of the sum of products of exact numbers with sets, and the sum of the magnitudes.

    Computed in long double with an error bound of (n + 2) roundoffs of the magnitudes, Higham (2002), section 3.1.
    """
    kind = np.longdouble
    low, high, size, terms, nan = kind(0), kind(0), kind(0), 2, False
    for weight, values in pairs:
        # What has no weight does not count, even where it has no value.
        counts = weight != 0
        w = weight.astype(kind)
        first, last = (np.where(counts, w * np.where(counts, v, 0).astype(kind), 0) for v in (values.low, values.high))
        low, high = low + np.minimum(first, last).sum(), high + np.maximum(first, last).sum()
        size += np.maximum(np.abs(first), np.abs(last)).sum()
        terms += weight.size
        nan = nan or bool((values.nan & counts).any())
    error = size * terms * kind(np.finfo(kind).eps)
    ends = np.nextafter(np.float64(low - error), -np.inf), np.nextafter(np.float64(high + error), np.inf)
    return between(np.asarray(ends[0]), np.asarray(ends[1]), np.asarray(nan)), float(size)
