"""Sums and products in any order of their terms and factors: what comes of partial results that overflow, or lose their digits.

A set that is computed in the order an expression is written in holds what rounding does in every other, but not what overflow
does: `(a * b) * c` overflows where `a * b` does, `a * (b * c)` where `b * c` does. So beside its set an expression carries what
bounds its partial results: its factors, and the sum of its terms on either side of zero. Only where these pass the limit is a
set wider. Its ends are unrounded as long as it is part of a larger sum or product: in another order it is not rounded by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from typing import Final

import numpy as np

from opc.ir.dtypes import DType
from opc.testing.oracle.arithmetic import add, multiply, negate, square
from opc.testing.oracle.bounds import Array, Bounds, Precision, choose, holds, some
from opc.testing.oracle.rounding import narrow

COARSE = 2.0**32
"""Below it one bound for all elements will do: it takes a factor or a number of terms of 2^96 to overflow."""

Masses = tuple[Array, Array]
"""Bounds on the partial results above zero and on those below, as magnitudes; a single number bounds all elements."""

_NOTHING: Masses = np.zeros(()), np.zeros(())


@dataclass(slots=True, eq=False)
class Ways:
    """What an expression may be, and what its partial results may be in another order.

    `precision` is that of a sum or product, whose set has unrounded ends; None of anything else. `factors` are those of a
    product, whatever brackets they stand in; `addends` the two of a sum, or `masses` what more come to; `terms` how many
    reductions add, else 1.
    """

    bounds: Final[Bounds]
    precision: Final[Precision | None] = None
    factors: Final[tuple[Bounds, ...]] = ()
    addends: Final[tuple[Bounds, ...]] = ()
    masses: Final[Masses | None] = None
    terms: Final[int] = 1

    @property
    def settled(self) -> Bounds:
        """The set of what is rounded by itself: what is beyond the largest number is infinite."""
        b, p = self.bounds, self.precision
        if p is None or not b.is_float or _is_held(b, p):
            return b
        low, high = b.low, b.high
        if p.dtype is DType.FLOAT64:
            # An end that float64 can't hold is its largest number.
            low = np.where((low == p.most) & (high == np.inf), np.inf, low)
            high = np.where((high == -p.most) & (b.low == -np.inf), -np.inf, high)
        return Bounds(np.where(low >= p.overflow, np.inf, low), np.where(high <= -p.overflow, -np.inf, high), b.nan)

    @property
    def parts(self) -> tuple[Bounds, ...]:
        """The factors it is made of: one, unless it is a product. A sum may be multiplied term by term."""
        if self.factors or self.terms == 1 or self.masses is None:
            return self.factors or (self.bounds,)
        return (_between(self.masses, self.bounds),)

    @property
    def most(self) -> Array | None:
        """The largest magnitude of a partial result, one for all elements where it is small; None where it is the value's."""
        if self.precision is None or (not self.factors and self.terms == 1):
            return None
        peak = math.prod(map(_peak, self.parts))
        return np.asarray(peak) if peak < COARSE else np.maximum(*_product(self.parts, 1.0, self.precision))

    def of(self, bounds: Bounds) -> Ways:
        """Return the same of a set that the expression is converted to, or moved by roundings."""
        if bounds is self.bounds:
            return self
        return Ways(bounds, self.precision, self.factors, self.addends, self.masses, self.terms)

    def negative(self) -> Ways:
        """Return what `-e` may be."""
        factors = (negate(self.factors[0]), *self.factors[1:]) if self.factors else ()
        addends = tuple(negate(a) for a in self.addends)
        return Ways(negate(self.bounds), self.precision, factors, addends, self.masses and self.masses[::-1], self.terms)

    def come_to(self) -> Masses:
        """Return the sum of its terms."""
        return self.masses or reduce(_plus, map(_masses, self.addends or (self.bounds,)))


def _is_held(b: Bounds, p: Precision) -> bool:
    """Whether no set lies beyond the numbers of the type, nor begins or ends there with the largest."""
    return not b.low.size or bool(np.maximum.reduce(b.low, None) < p.most and np.minimum.reduce(b.high, None) > -p.most)


def reaching(bounds: Bounds, most: Array | None, p: Precision) -> Ways:
    """Return what was computed before may be: its set, and as `most` what its partial results came to."""
    if most is None:
        return Ways(bounds, p)
    low, high = np.where(bounds.low > 0, bounds.low, -most), np.where(bounds.high < 0, bounds.high, most)
    return Ways(bounds, p, (Bounds(low, high, bounds.nan),))


def product(a: Ways, b: Ways, p: Precision, same: bool = False) -> Ways:
    """Return what `a * b` may be; `same` where both are one number."""
    bounds = square(a.bounds, p, fused=True) if same else multiply(a.bounds, b.bounds, p, fused=True)
    factors = (*a.parts, *b.parts)
    steps = (len(factors) - 1) * a.terms * b.terms
    if steps > 1:
        bounds = in_any_order(bounds, factors, steps, p)
    return Ways(bounds, p, factors, terms=max(a.terms, b.terms))


def total(a: Ways, b: Ways, p: Precision) -> Ways:
    """Return what `a + b` may be: in another order those terms come first that have one sign."""
    bounds = add(a.bounds, b.bounds, p, fused=True)
    if not any(w.addends or w.masses for w in (a, b)):
        return Ways(bounds, p, addends=(a.bounds, b.bounds))
    masses = _plus(a.come_to(), b.come_to())
    return Ways(_overflowed(bounds, masses, p), p, masses=masses, terms=a.terms + b.terms if a.terms + b.terms > 2 else 1)


def either(cond: Bounds, then: Ways, other: Ways) -> Ways:
    """Return what `then` or `other` may be, by a condition."""
    bounds, p = choose(cond, then.bounds, other.bounds), then.precision or other.precision
    if p is None:
        return Ways(bounds)
    if p.dtype is DType.FLOAT64 and not _is_held(bounds, p):
        # The largest number, where it is no end that float64 can't hold, must not be taken for one.
        sure, beside = choose(cond, then.settled, other.settled), np.nextafter(p.most, 0)
        low = np.where((bounds.low == p.most) & (sure.low == p.most), beside, bounds.low)
        bounds = Bounds(low, np.where((bounds.high == -p.most) & (sure.high == -p.most), -beside, bounds.high), bounds.nan)
    found = [then.most, other.most]
    if all(m is None for m in found):
        return reaching(bounds, None, p)
    taken, left = (np.maximum(-w.bounds.low, w.bounds.high) if m is None else m for w, m in zip((then, other), found))
    either_way = np.maximum(taken, left)
    # What is not chosen counts as 0.
    decided = bool(cond.low.any()) or not cond.high.all()
    return reaching(bounds, np.where(cond.low, taken, np.where(cond.high, either_way, left)) if decided else either_way, p)


def contraction(
    found: Bounds, bodies: Sequence[Ways], axes: tuple[int, ...], part: Array, settle: Callable[[Array], Array], p: Precision
) -> Ways:
    """Return what a sum over `axes` may be, `found` in the order written; `bodies` are what it adds up, at the points of `part`.

    A factor that is the same along the axes may be multiplied by after the sum. `settle` brings results into the frame of all.
    """
    count = math.prod(bodies[0].bounds.low.shape[a] for a in axes)

    def summed(masses: Masses, shape: tuple[int, ...]) -> Masses:
        if max(m.max(initial=0.0) for m in masses) * count < COARSE:
            return masses[0].max(initial=0.0) * count, masses[1].max(initial=0.0) * count
        up, down = (settle(np.broadcast_to(m, shape).sum(axis=axes, dtype=p.wide)) for m in masses)
        return up, down

    masses = outside = _NOTHING
    factors: tuple[Bounds, ...] = ()
    zero: Array = np.zeros((), np.bool_)
    for body in bodies:
        shape = body.bounds.low.shape
        masses = _plus(masses, summed(_masses(body.bounds), shape))
        same = [all(f.low.shape[a] == 1 for a in axes) for f in body.factors]
        if not any(same):
            continue
        taken = [f.map(lambda v: settle(np.squeeze(v, axes))) for f in compress(body.factors, same)]
        left = [f for f, s in zip(body.factors, same) if not s]
        peak = math.prod(map(_peak, body.factors)) * count
        if peak < COARSE:
            up, down = _product([_hull(f) for f in left], 0.0, p)
            sums: Masses = up * count, down * count
        else:
            up, down = _product(left, 0.0, p)
            inner = np.where(part, up, 0), np.where(part, down, 0)
            outside = _plus(outside, summed(_times(inner, _product([*compress(body.factors, same)], 1.0, p)), shape))
            zero = zero | np.asarray(_least(taken, 0.0) < p.tiny) | reduce(np.logical_or, map(_is_zero, taken))
            sums = summed(inner, shape)
        factors = (*taken, _between(sums, found)) if len(bodies) == 1 else ()
    return Ways(_overflowed(found, outside, p, zero), p, factors, masses=masses, terms=count * len(bodies) + 1)


def in_any_order(found: Bounds, factors: Sequence[Bounds], steps: int, p: Precision) -> Bounds:
    """Return the set of a product, `found` in the order written, in any order of its factors: `steps` multiplications."""
    peak = math.prod(map(_peak, factors))
    if peak < p.overflow and steps * p.tiny * peak < _smallest(found) * 2.0**-60:
        return found
    lost = _least(factors, 0.0) < p.tiny / p.unit
    up, down = _product(factors, 1.0, p)
    if np.any(lost):
        # A partial result that is denormal errs by `tiny`, which later factors enlarge; an exact zero stays.
        error = np.where(lost & ~_is_zero(found), steps * p.wide(p.tiny) * np.maximum(up, down), 0)
        # What is lost altogether meets infinity; a factor that may be 0 by itself has met it as it is written.
        gone = (holds(found, np.inf) | holds(found, -np.inf)) & (_least(factors, 1.0) < p.tiny)
        found = moved(found, error, p, signed=steps < len(factors))
        found = Bounds(found.low, found.high, found.nan | gone)
        # What overflows in the order written is 0 where what makes it small comes first, but for a factor that is infinite.
        fits = reduce(np.logical_and, (np.isfinite(f.low) | np.isfinite(f.high) for f in factors))
        low = np.where(gone & fits & (found.low == np.inf), 0.0, found.low)
        found = Bounds(low, np.where(gone & fits & (found.high == -np.inf), -0.0, found.high), found.nan)
    return _overflowed(found, (up, down), p, holds(found, 0.0))


def moved(a: Bounds, error: Array, p: Precision, signed: bool) -> Bounds:
    """Return the set with its finite ends moved outward by `error`, not across zero where `signed`."""
    low, high = a.low.astype(p.wide), a.high.astype(p.wide)
    down, up = low - error, high + error
    if signed:
        down = np.where(low >= 0, np.maximum(down, 0), down)
        up = np.where(high <= 0, np.minimum(up, 0), up)
    return narrow(np.where((error == 0) | np.isinf(low), low, down), np.where((error == 0) | np.isinf(high), high, up), a.nan)


def _overflowed(found: Bounds, masses: Masses, p: Precision, zero: Array | None = None) -> Bounds:
    """Return the set with the infinities of partial results that overflow; they may meet one another, or a 0 where `zero`."""
    up, down = (m >= p.overflow for m in masses)
    if not (some(np.asarray(up)) or some(np.asarray(down))):
        return found
    low, high, nan = found.low, found.high, found.nan | (up & down)
    if zero is not None:
        nan = nan | ((up | down) & zero)
        # Nothing but 0 or NaN comes of a factor that is 0.
        up, down = up & ~_is_zero(found), down & ~_is_zero(found)
    # Between the largest number and infinity lies what is infinite; here the number itself may be the result.
    low = np.where(up & (low == p.most) & (high < np.inf), np.nextafter(low, 0), low)
    high = np.where(down & (high == -p.most) & (found.low > -np.inf), np.nextafter(high, 0), high)
    return narrow(np.where(down & (low < np.inf), -np.inf, low), np.where(up & (high > -np.inf), np.inf, high), nan)


def _is_zero(a: Bounds) -> Array:
    return np.asarray((a.low == 0) & (a.high == 0))


def _masses(a: Bounds) -> Masses:
    """Return the sum of terms; one number for all elements where they are small."""
    top, bottom = a.high.max(initial=0.0), -a.low.min(initial=0.0)
    if top < COARSE and bottom < COARSE:
        return np.asarray(top), np.asarray(bottom)
    return np.where(a.high > 0, a.high, 0.0), np.where(a.low < 0, -a.low, 0.0)


def _plus(a: Masses, b: Masses) -> Masses:
    return a[0] + b[0], a[1] + b[1]


def _times(a: Masses, b: Masses) -> Masses:
    def both(x: Array, y: Array) -> Array:
        return np.where((x == 0) | (y == 0), 0.0, x * y)

    return both(a[0], b[0]) + both(a[1], b[1]), both(a[0], b[1]) + both(a[1], b[0])


def _peak(f: Bounds) -> float:
    """Return the largest magnitude of a factor, 1 if it is less."""
    return max(float(f.high.max(initial=1.0)), -float(f.low.min(initial=-1.0)))


def _hull(f: Bounds) -> Bounds:
    """Return one set that holds those of all elements, and 0."""
    return Bounds(np.asarray(f.low.min(initial=0.0)), np.asarray(f.high.max(initial=0.0)), np.asarray(False))


def _smallest(a: Bounds) -> float:
    """Return a bound below the magnitudes of the ends, but those of sets that are 0."""
    ends = np.abs(a.low * a.high)
    least = ends.min(initial=np.inf)
    if least == 0:
        least = ends[(a.low != 0) | (a.high != 0)].min(initial=np.inf)
    return float(least) / _peak(a)


def _product(factors: Sequence[Bounds], least: float, p: Precision) -> Masses:
    """Return the products of the factors, those below `least` counted as that: later factors may be larger."""
    found: Masses = np.ones((), p.wide), np.zeros((), p.wide)
    for f in factors:
        up = np.where((f.high > 0) | _is_zero(f), np.maximum(f.high, least), 0.0)
        found = _times(found, (up, np.where(f.low < 0, np.maximum(-f.low, least), 0.0)))
    return found


def _least(factors: Sequence[Bounds], uncertain: float) -> Array:
    """Return the least magnitude of a partial product; `uncertain` is what a factor counts that may be 0, 1 one that is.

    A factor that is 0 gives exactly 0.
    """
    least: Array = np.ones(())
    for f in factors:
        ends = np.where((f.low <= 0) & (f.high >= 0), uncertain, np.minimum(np.abs(f.low), np.abs(f.high)))
        least = least * np.minimum(np.where(_is_zero(f), 1.0, ends), 1.0)
    return least


def _between(masses: Masses, like: Bounds) -> Bounds:
    """Return the set of partial results, with as many axes as another."""
    up, down = (m if m.ndim else m.reshape((1,) * like.low.ndim) for m in masses)
    return Bounds(-down, up, np.zeros((1,) * up.ndim, np.bool_))
