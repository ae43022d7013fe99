"""Runs: the part of a range that counts where conditions compare its index with data, as `begins[b] <= n and n < ends[b]` do.

Sums over runs are those of ragged rows, segments and packed sequences. All runs together are mostly about as long as the range,
and no run has more than a small part of it.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Index
from opc.ir.comparisons import OPPOSITE
from opc.ir.dtypes import DType, TypeVar, Weak, candidates
from opc.ir.expr import READ, REDUCTION, Call, Expr, IndexValue, free_indices, may_refuse, reads, traits
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """What data says of an index: that plus `rest` is no less than `value` (`below`), or less than it."""

    value: Expr
    rest: Affine
    below: bool


def bound_on(g: Affine | Expr, index: str) -> Bound | None:
    """Return what a condition that compares an index with a whole number that is data says of it, None for any other guard."""
    holds = True
    while isinstance(g, Call) and g.fn == "not":
        g, holds = g.args[0], not holds
    if not isinstance(g, Call) or g.fn not in _MIRRORED:
        return None
    left, right = g.args
    for place, value, fn in ((left, right, g.fn), (right, left, _MIRRORED[g.fn])):
        if not isinstance(place, IndexValue) or place.value.coefficient(index) != Affine.of(1):
            continue
        known = not traits(value) & REDUCTION and not may_refuse(value) and index not in free_indices(value)
        if not known or not traits(value) & READ or not _is_counted(value):
            return None
        fn = fn if holds else OPPOSITE[fn]
        rest = place.value - Index(index)
        return Bound(value, rest - 1 if fn in ("gt", "le") else rest, fn in ("gt", "ge"))
    return None


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _is_counted(e: Expr) -> bool:
    """Whether a value is a whole number that an int64 holds."""
    if isinstance(e.type, Weak):
        return e.type is Weak.INT
    return isinstance(e.type, DType | TypeVar) and all(d.is_integer and d is not DType.UINT64 for d in candidates(e.type))


def is_mostly_idle(e: Expr, conditions: tuple[Expr, ...]) -> bool:
    """Whether conditions leave `e` few of the points of two indices, runs along one for each of the other, and it reads nothing
    that has both."""
    free = free_indices(e)
    for c in conditions:
        for index in free:
            bound = bound_on(c, index)
            others = free & free_indices(bound.value) if bound is not None else frozenset[str]()
            if others and not any(others | {index} <= free_indices(r) for r in reads(e)):
                return True
    return False
