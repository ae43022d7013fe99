"""Weighted windows: sums, in rows, of elements of one operand times weights that are the same at all lanes.

A convolution that keeps channels apart is one. Its lanes can keep their sums in registers while they go over the window, since
of each place in it they read neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, FloorDiv, Index, Mod
from opc.ir.dtypes import ValueType, is_floating
from opc.ir.expr import Axis, Call, Const, Expr, Read, Reduce, free_indices, map_affine
from opc.ir.op import Op
from opc.lower.guards import Guard, inside, peel
from opc.lower.nests.flat import is_short

MOST_AXES = 3
MOST_GUARDS = 8
"""What the runtime has room for; see opc/nest_taps.h."""


@dataclass(frozen=True, slots=True)
class TapGuard:
    """A place counts where `condition`, which moves with the lane and at most one axis of the window, is not negative."""

    axis: int
    condition: Affine


@dataclass(frozen=True, slots=True)
class Taps:
    """A sum of `weight * element` over the `axes` of a window; where it is `padded`, places outside of it hold zeros.

    It is one where all of `ones` are 1: strides, by which a gradient divides.
    """

    axes: tuple[Axis, ...]
    weight: Read
    element: Read
    padded: bool
    guards: tuple[TapGuard, ...]
    ones: tuple[Affine, ...]


def taps_of(
    op: Op,
    e: Reduce,
    lane: str,
    under: tuple[Guard, ...],
    sizes: Callable[[str], tuple[Affine, ...]],
    bounded: dict[Affine, Affine],
    positive: Callable[[Affine], bool],
) -> Taps | None:
    """Return a reduction as a weighted window along a lane, None when it is none.

    `under` are further conditions under which it counts; `bounded` tells indices that are within an extent, `positive` whether a
    divisor is.
    """
    axes = tuple(a for a in e.axes if isinstance(a, Axis))
    if e.kind != "sum" or len(axes) != len(e.axes) or not 0 < len(axes) <= MOST_AXES or not is_floating(e.type):
        return None
    if not all(is_short(op, a.extent) and not a.extent.indices() for a in axes):
        return None
    found, body = peel("sum", e.body, sizes, bounded, positive)
    product = _product(body, lane)
    if product is None:
        return None
    weight, element = product
    padded = element.pad is not None
    ones: dict[Affine, None] = {}
    conditions = [*under, *found, *(inside(element, sizes(element.operand), bounded) if padded else ())]
    known = [c for c in (_undivided_guard(c, ones) for c in conditions) if c is not True]
    guards = [_guard(c, axes, lane) for c in known]
    element = replace(element, indices=tuple(_undivided(i, ones) if isinstance(i, Affine) else i for i in element.indices))
    if len(guards) > MOST_GUARDS or any(g is None for g in guards) or any(d.indices() for d in ones):
        return None
    if any(r.type != e.type or not _is_even(r, axes, lane) for r in (weight, element)):
        return None
    guarded = tuple(g for g in guards if g is not None)
    return Taps(axes, weight, replace(element, pad=None), padded, guarded, tuple(ones))


def _undivided(a: Affine, ones: dict[Affine, None]) -> Affine:
    """Return an expression as it is where the divisors in it are 1, which are added to `ones`."""
    total = Affine.of(0)
    for monomial, coefficient in a.terms:
        product = Affine.of(coefficient)
        for atom in monomial:
            if isinstance(atom, FloorDiv | Mod) and atom.numerator.indices():
                ones[atom.denominator] = None
                product = product * (_undivided(atom.numerator, ones) if isinstance(atom, FloorDiv) else Affine.of(0))
            else:
                product = product * Affine.of(atom)
        total = total + product
    return total


def _undivided_guard(condition: Guard, ones: dict[Affine, None]) -> Guard | bool:
    """Return a condition where the divisors in it are 1: True where it then always holds."""
    if isinstance(condition, Affine):
        return _undivided(condition, ones)
    condition = map_affine(condition, lambda a: _undivided(a, ones))
    if isinstance(condition, Call) and condition.fn == "eq":
        a, b = (affine_of(x) for x in condition.args)
        if a is not None and a == b:
            return True
    return condition


def _product(body: Expr, lane: str) -> tuple[Read, Read] | None:
    """Return the weight and the element of a product, the one that is the same at all lanes first."""
    if not isinstance(body, Call) or body.fn != "mul":
        return None
    first, second = body.args
    if not isinstance(first, Read) or not isinstance(second, Read):
        return None
    if lane in free_indices(first):
        first, second = second, first
    along = [n for n, i in enumerate(second.indices) if not isinstance(i, Affine) or lane in i.indices()]
    zero = second.pad is None or (isinstance(second.pad, Const) and second.pad.value == 0)
    plain = first.pad is None and not first.checked and not second.checked and lane not in free_indices(first)
    return (first, second) if plain and zero and along == [len(second.indices) - 1] else None


def _is_even(r: Read, axes: tuple[Axis, ...], lane: str) -> bool:
    """Whether a read moves by the same distance with each point of the axes of a window and of the lane."""
    for index in r.indices:
        for name in (*(a.index for a in axes), lane):
            step = index.coefficient(name) if isinstance(index, Affine) else None
            if step is None or step.indices():
                return False
    return True


def _guard(condition: Guard | bool, axes: tuple[Axis, ...], lane: str) -> TapGuard | None:
    if not isinstance(condition, Affine):
        return None
    moving = []
    for n, name in enumerate((*(a.index for a in axes), lane)):
        step = condition.coefficient(name)
        if step is None or step.indices():
            return None
        if step.terms and n < len(axes):
            moving.append(n)
    return TapGuard(moving[0] if moving else 0, condition) if len(moving) < 2 else None


def is_product(e: Expr, kind: ValueType, lane: str) -> bool:
    """Whether an expression is a product of two elements of this type, both of which move along their last axis with a lane."""
    if not isinstance(e, Call) or e.fn != "mul" or e.type != kind or not is_floating(kind):
        return False
    for r in e.args:
        if not isinstance(r, Read) or r.checked or r.type != kind or not r.indices:
            return False
        step = r.indices[-1].coefficient(lane) if isinstance(r.indices[-1], Affine) else None
        if step is None or not step.terms or any(not isinstance(i, Affine) or lane in i.indices() for i in r.indices[:-1]):
            return False
    return True


def at_origin(e: Affine, axes: tuple[Axis, ...], lane: str) -> Affine:
    """Return an expression at the first place of a window and at lane 0."""
    names = {a.index for a in axes} | {lane}
    return e.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in names else None)
