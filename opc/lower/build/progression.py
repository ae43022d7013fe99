"""Loops over the points that a division leaves nothing of: the gradient of what moves by strides is made of every so many."""

from __future__ import annotations

from collections.abc import Callable

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index, Mod, minimum
from opc.ir.expr import Call, Expr, IndexValue
from opc.lower.guards import FAR, Guard
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Progression:
    """A guard that every so many points of a loop fulfil, the first of them, and how far apart they are."""

    guard: Guard
    first: Expr
    step: Expr


def progression(g: Guard, index: str, low: Expr, positive: Callable[[Affine], bool]) -> Progression | None:
    """Return what a guard says of a loop over an index from `low` on, where it says what the index leaves when it is divided."""
    if not isinstance(g, Call) or g.fn != "eq" or not isinstance(low, IndexValue):
        return None
    for rest, zero in (g.args, g.args[::-1]):
        left = affine_of(rest)
        if left is None or affine_of(zero) != Affine.of(0):
            continue
        atom = left.single
        if not isinstance(atom, Mod) or index in atom.denominator.indices() or not positive(atom.denominator):
            continue
        way = atom.numerator.coefficient(index)
        if way is None or way.constant not in (1, -1):
            continue
        others = atom.numerator - way * Index(index)
        away = ((others if way.constant == -1 else -others) - low.value) % atom.denominator
        # What attributes say may be as far as integers go: a step beyond every range is as good.
        first, step = (e if e.constant is not None else minimum(e, Affine.of(FAR)) for e in (away, atom.denominator))
        return Progression(g, IndexValue(low.value + first), IndexValue(step))
    return None
