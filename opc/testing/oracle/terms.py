"""Which operations a kernel may draw into a sum: products by fused multiply and add, and sums that are added to one another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.ir.expr import Axis, Call, Expr, Reduce, Select
from opc.testing.oracle.bounds import Array, Bounds, Precision
from opc.testing.oracle.frame import Frame, affine

FUSED = ("mul", "add", "sub", "neg")
"""Operations whose results may go into a sum unrounded."""

ADDING = ("add", "sub", "neg")
"""Operations that may make one sum of several."""


class Masses:
    """What the terms of sums that are added come to, those above and those below zero each by themselves.

    The terms may come in any order. Where those of one sign overflow by themselves, a partial sum may, though no sum alone does.
    """

    def __init__(self) -> None:
        self.up: Array = np.zeros(())
        self.down: Array = np.zeros(())
        self._negative = False

    @contextlib.contextmanager
    def signed(self, negative: bool) -> Iterator[None]:
        """Count what is added meanwhile with the other sign where `negative`."""
        self._negative ^= negative
        yield
        self._negative ^= negative

    def add(self, terms: Bounds, axes: tuple[int, ...], settle: Callable[[Array], Array]) -> None:
        """Count the terms of a sum over `axes`; `settle` brings what it comes to into the frame of all."""
        up = settle(np.where(terms.high > 0, terms.high, 0.0).sum(axis=axes))
        down = settle(np.where(terms.low < 0, -terms.low, 0.0).sum(axis=axes))
        if self._negative:
            up, down = down, up
        self.up, self.down = self.up + up, self.down + down

    def overflow(self, total: Bounds, p: Precision) -> Bounds:
        """Return the set of the sum of all, with what comes of partial sums that overflow."""
        up, down = self.up >= p.overflow, self.down >= p.overflow
        low = np.where(down & (total.low < np.inf), -np.inf, total.low)
        high = np.where(up & (total.high > -np.inf), np.inf, total.high)
        return Bounds(low, high, total.nan | (up & down))


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
        case _:
            yield e, negative


def _is_product(e: Expr) -> bool:
    match e:
        case Call(fn="mul"):
            return True
        case Select(then=then, other=other):
            return _is_product(then) or _is_product(other)
        case _:
            return False


def is_product(e: Expr) -> bool:
    """Whether an expression multiplies."""
    return isinstance(e, Call) and e.fn == "mul"


def is_product_of_products(e: Expr) -> bool:
    """Whether a product has three factors or more."""
    return isinstance(e, Call) and e.fn == "mul" and any(map(is_product, e.args))


def in_any_order(product: Bounds, factors: list[Bounds], p: Precision) -> Bounds:
    """Return the set of a product whose factors may be multiplied in any order: any value where some order overflows, or loses
    its digits to what is denormal, on the way."""
    most: Array = np.ones(())
    least: Array = np.ones(())
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for f in factors:
            ends = np.abs(f.low), np.abs(f.high)
            large, small = np.maximum(*ends), np.minimum(*ends)
            most = most * np.where(np.isfinite(large), np.maximum(large, 1), 1)
            least = least * np.where((small > 0) & (f.low * f.high > 0), np.minimum(small, 1), 1)
        lost = (most >= float(p.overflow)) | (least < p.tiny / (2 * p.unit))
    if not np.any(lost):
        return product
    return Bounds(np.where(lost, -np.inf, product.low), np.where(lost, np.inf, product.high), product.nan | lost)


def joined(sets: list[Bounds], axis: int) -> Bounds:
    """Return sets over one domain one after the other along an axis."""
    shape = np.broadcast_shapes(*(s.low.shape for s in sets))

    def join(arrays: list[Array]) -> Array:
        return np.concatenate([np.broadcast_to(a, shape) for a in arrays], axis)

    return Bounds(join([s.low for s in sets]), join([s.high for s in sets]), join([s.nan for s in sets]))
