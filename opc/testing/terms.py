"""Which operations a kernel may draw into a sum: products by fused multiply and add, and sums that are added to one another."""

from __future__ import annotations

import numpy as np

from opc.analysis.shape import ShapeEnv
from opc.ir.expr import Axis, Call, Expr, Reduce, Select
from opc.testing.frame import Frame, affine

FUSED = ("mul", "add", "sub", "neg")
"""Operations whose results may go into a sum unrounded."""

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
                    size = int(np.prod(env.groups.get((axis.name, None), ()), dtype=np.int64))
                total *= size
            return total
        case Call(fn="add" | "sub" | "neg", args=args):
            return sum(count_terms(a, frame, env) for a in args)
        case Select(then=then, other=other):
            return count_terms(then, frame, env) + count_terms(other, frame, env)
        case _:
            return 0
