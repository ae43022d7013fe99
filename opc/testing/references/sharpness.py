"""What to leave out of a gradient proof at a point, so that the rest is sharp enough to decide.

A body such as a linear interpolation is smooth inside the cells of a grid. A place that is computed to lie on a line of the grid,
where `floor` may give either cell, has every value of both cells in its enclosure, and one such element makes a sum over all of
them too wide to decide. Its cotangent is 0 then, and inputs whose gradients are wide for another reason stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opc.testing.oracle.bounds import Array, Bounds

STEP = 2.0**-26
"""Half the length of a segment for values near 1: truncation and rounding of a difference weigh about the same there."""

SHARP = 2.0**-12
"""A difference decides when its enclosures are narrower than this part of the sum of its terms' magnitudes."""

EXACT = float(np.finfo(np.float64).tiny)
"""Enclosures as narrow as this are those of numbers that nothing was rounded in, such as gradients that are 0."""


def narrow(values: Bounds) -> Array:
    """Return where a finite set at a point is narrow enough that a difference over a step can show in it."""
    size = np.maximum(np.abs(values.low), np.abs(values.high))
    known = np.isfinite(size) & ~values.nan
    most = float(np.max(size, where=known, initial=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(known & (values.high - values.low <= max(SHARP * STEP * most, EXACT)))


def sharpest(terms: Sequence[tuple[Array, Bounds]]) -> list[Array]:
    """Return which products of exact numbers with sets are kept so that their sum is sharp: of the narrowest, as many as can be.

    None is kept where no product among them is more than 0: such a sum decides nothing of the others.
    """
    widths = [np.abs(w * np.where(w != 0, v.high - v.low, 0.0)) for w, v in terms]
    sizes = [np.abs(w * np.where(w != 0, np.maximum(np.abs(v.low), np.abs(v.high)), 0.0)) for w, v in terms]
    width, size = (np.concatenate([np.ravel(a) for a in arrays]) for arrays in (widths, sizes))
    order = np.argsort(width, kind="stable")
    fits = np.cumsum(width[order]) <= SHARP / 2 * np.cumsum(size[order])
    count = int(np.max(np.flatnonzero(fits), initial=-1)) + 1
    kept = np.zeros(width.size, np.bool_)
    kept[order[:count]] = True
    if not np.any(size[kept] > EXACT):
        kept[:] = False
    ends = np.cumsum([a.size for a in widths])
    return [part.reshape(a.shape) for part, a in zip(np.split(kept, ends[:-1]), widths)]


__all__ = ["EXACT", "SHARP", "STEP", "narrow", "sharpest"]
