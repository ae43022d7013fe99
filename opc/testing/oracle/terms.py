"""Which operations a kernel may draw together: sums that are added to one another, and contractions that it takes apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.ir.expr import Axis, Call, Const, Expr, Reduce, Select
from opc.records import replace
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.frame import Frame, affine

REARRANGED = ("mul", "add", "sub", "neg")
"""Operations whose results, as parts of larger ones, may be left unrounded, or not come about in another order."""

ADDING = ("add", "sub", "neg")
"""Operations that may make one sum of several."""


def count_terms(e: Expr, frame: Frame, env: ShapeEnv) -> int:
    """Return how many terms the sums that `e` adds up have together, each term counted twice: it is added and adds something.

    0 when `e` is no sum and adds none.
    """
    match e:
        case Reduce(kind="sum"):
            total = 2
            for axis in e.axes:
                if isinstance(axis, Axis):
                    size = int(affine(axis.extent, frame, env.symbol).max(initial=0))
                    frame = frame.with_index(axis.index, size)
                else:
                    size = math.prod(env.groups.get((axis.name, None), ()))
                total *= size
            return total
        case Call(fn="add" | "sub" | "neg", args=args):
            return sum(count_terms(a, frame, env) for a in args)
        case Select(then=then, other=other):
            return count_terms(then, frame, env) + count_terms(other, frame, env)
        case _:
            return 0


def addends(e: Expr) -> list[tuple[Expr, bool]]:
    """Return the products that `e` adds up, each with whether it is taken off: contractions may be carried out one by one.

    Anything else, such as the difference to a mean, is not taken apart, because it would lose its digits.
    """
    parts = list(_split(e, False))
    return parts if all(_is_product(part) for part, _ in parts) else [(e, False)]


def _split(e: Expr, negative: bool) -> Iterator[tuple[Expr, bool]]:
    match e:
        case Call(fn="add" | "sub", args=(left, right)):
            yield from _split(left, negative)
            yield from _split(right, negative != (e.fn == "sub"))
        case Call(fn="neg", args=(arg,)):
            yield from _split(arg, not negative)
        case Select(then=then, other=Const(value=0)):
            yield from ((replace(e, then=part), off) for part, off in _split(then, negative))
        case Select(then=Const(value=0), other=other):
            yield from ((replace(e, other=part), off) for part, off in _split(other, negative))
        case _:
            yield e, negative


def takes_off_a_sum(e: Expr) -> bool:
    """Whether a sum stands in `e` behind a minus: of zeros, `-(a + b)` has not the sign of `-a - b`."""
    match e:
        case Call(fn="add" | "sub" | "neg", args=args):
            mirrored = () if e.fn == "add" else args[-1:]
            return any(map(takes_off_a_sum, args)) or any(isinstance(a, Call) and a.fn in ("add", "sub") for a in mirrored)
        case Select(then=then, other=Const(value=0)) | Select(then=Const(value=0), other=then):
            return takes_off_a_sum(then)
        case _:
            return False


def guarded(e: Expr) -> tuple[Expr, bool, Expr] | None:
    """Return the condition of a term, whether it counts where that holds, and what it is there; None if it always counts."""
    match e:
        case Select(cond=cond, then=then, other=Const(value=0)):
            return cond, True, then
        case Select(cond=cond, then=Const(value=0), other=other):
            return cond, False, other
        case _:
            return None


def _is_product(e: Expr) -> bool:
    match e:
        case Call(fn="mul"):
            return True
        case Select(then=then, other=other):
            return _is_product(then) or _is_product(other)
        case _:
            return False


def joined(sets: list[Bounds], axis: int) -> Bounds:
    """Return sets over one domain one after the other along an axis."""
    shape = np.broadcast_shapes(*(s.low.shape for s in sets))

    def join(arrays: list[Array]) -> Array:
        return np.concatenate([np.broadcast_to(a, shape) for a in arrays], axis)

    return Bounds(join([s.low for s in sets]), join([s.high for s in sets]), join([s.nan for s in sets]))
