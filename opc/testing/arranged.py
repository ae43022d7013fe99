"""Arrays and points of mixed and thinned operands, as their declarations have their axes and as callers do.

See `opc.ir.arrangement`; every other operand is the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.ir.arrangement import arrangement, order
from opc.ir.op import Operand

Point = tuple[int, ...]


def _order(env: ShapeEnv, o: Operand) -> tuple[int, ...] | None:
    """Return for each axis of a mixed operand's declaration which one it is to callers; None of any other operand."""
    how = arrangement(env.op)
    if how is None or not how.is_mixed(o):
        return None
    rank = len(env.shape_of(o))
    return order(env.picked(rank), rank, how.picked_first(o))


def declared(env: ShapeEnv, o: Operand, array: Any) -> Any:
    """Return an array of a caller's with the axes of its operand's declaration."""
    axes = _order(env, o)
    return array.reshape(env.shape_of(o)) if axes is None else array.transpose(axes)


def seen(env: ShapeEnv, o: Operand, array: Any) -> Any:
    """Return an array with the axes of its operand's declaration as callers see it."""
    axes = _order(env, o)
    return array.reshape(env.seen_shape_of(o)) if axes is None else array.transpose(np.argsort(axes))


def declared_point(env: ShapeEnv, o: Operand, at: Sequence[int]) -> Point:
    """Return the place of an element by the axes of the declaration."""
    axes = _order(env, o)
    if axes is not None:
        return tuple(at[a] for a in axes)
    if len(at) == len(env.shape_of(o)):
        return tuple(at)
    listed = env.picked(len(at))
    return tuple(i for a, i in enumerate(at) if a not in listed)


def seen_point(env: ShapeEnv, o: Operand, at: Sequence[int]) -> Point:
    """Return the place of an element as callers see it."""
    axes = _order(env, o)
    if axes is not None:
        return tuple(at[axes.index(a)] for a in range(len(axes)))
    rank = len(env.seen_shape_of(o))
    if len(at) == rank:
        return tuple(at)
    listed, rest = env.picked(rank), iter(at)
    return tuple(0 if a in listed else next(rest) for a in range(rank))
