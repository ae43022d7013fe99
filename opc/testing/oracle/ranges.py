"""Reductions whose ranges vary by point, in the box that holds them all: which of its points count, and their positions."""

from __future__ import annotations

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.ir.expr import Axis, Reduce
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.frame import Frame, affine


def numbered(e: Reduce, frame: Frame, env: ShapeEnv, sizes: list[int], found: Bounds) -> Bounds:
    """Return positions in a box of these sizes as positions in what the ranges at each point span, in row-major order."""
    if len(e.axes) == 1 or not any(isinstance(a, Axis) and a.extent.indices() for a in e.axes[1:]):
        return found
    spans: list[Array] = []
    for axis in e.axes:
        if isinstance(axis, Axis):
            spans.append(affine(axis.extent, frame, env.symbol))
        else:
            spans += map(np.asarray, env.groups.get((axis.name, None), ()))

    def moved(position: Array) -> Array:
        total, weight, scale = np.zeros_like(position), 1, np.ones_like(position)
        for size, span in zip(reversed(sizes), reversed(spans), strict=True):
            total = total + position // weight % max(size, 1) * scale
            weight, scale = weight * max(size, 1), scale * span
        return total

    return found.map(moved)


def part_of(e: Reduce, inner: Frame, env: ShapeEnv) -> Array:
    """Return which points of `inner`, where each axis has its greatest extent, a reduction runs over."""
    part: Array = np.ones((1,) * inner.rank, np.bool_)
    for axis in e.axes:
        # An axis that is equally long everywhere is part of it as a whole.
        if isinstance(axis, Axis) and (axis.extent.indices() or not inner.sizes[inner.index[axis.index]]):
            part = part & (inner.positions(axis.index) < affine(axis.extent, inner, env.symbol))
    return part
