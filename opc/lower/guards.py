"""Conditions under which an element of a loop nest counts: what a loop's range can hold, and what must be tested.

A condition that compares integers is an affine expression that must not be negative. Where that is affine in the index of a loop,
the loop runs over the range in which it holds, and nothing is tested inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from opc.analysis.patterns import conjunction
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Atom, Dim, FloorDiv, GroupSize, Index, minimum
from opc.ir.comparisons import MOST_PARTS, digits, excess, is_number, said_by_attributes
from opc.ir.dtypes import DType, TypeVar, candidates
from opc.ir.expr import (
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Select,
    children,
    free_indices,
    may_refuse,
    with_children,
)
from opc.ir.identity import is_identity
from opc.ir.rules import unwidened
from opc.records import replace
from opc.transform.scalar import negation

Guard: TypeAlias = Affine | Expr
"""An affine expression that must not be negative, or a condition."""

_WIDE = frozenset({DType.INT32, DType.INT64})
"""Integers that count any axis."""


def guards(condition: Expr, positive: Callable[[Affine], bool]) -> tuple[Guard, ...]:
    """Return a condition as guards that must all hold; `positive` tells whether a divisor is known to be.

    Guards are asked in any order, so that a part which may refuse the call is none alone, but with all that follow it.
    """
    parts = conjuncts(condition)
    if len(parts) > 1:
        free = list(itertools.takewhile(lambda part: not may_refuse(part), parts))
        last = [conjunction(parts[len(free) :])] if free != parts else []
        return (*(g for part in free for g in guards(part, positive)), *last)
    (condition,) = parts
    if isinstance(condition, Call) and condition.fn in ("lt", "le", "gt", "ge"):
        a, b = (affine_of(x) for x in condition.args)
        if a is not None and b is not None:
            over = excess(condition.fn, a, b)
            if not over.indices() and any(map(is_number, over.atoms())):
                return (condition,)  # it bounds no loop, and attributes may be further apart than a number can say
            if said_by_attributes(over).indices() and all(said_by_attributes(e).terms for e in (a, b)):
                return (condition,)  # nor is it known how far a factor of an index is from what the other side says
            return (without_division(over, positive),)
    return (condition,)


def conjuncts(e: Expr) -> list[Expr]:
    """Return conditions that hold together just where `e` does."""
    return _parts(e, "and", "or")


def disjuncts(e: Expr) -> list[Expr]:
    """Return conditions of which one holds just where `e` does."""
    return _parts(e, "or", "and")


def _parts(e: Expr, fn: str, dual: str) -> list[Expr]:
    if isinstance(e, Call) and e.fn == fn:
        return [c for a in e.args for c in _parts(a, fn, dual)]
    if isinstance(e, Call) and e.fn == "not" and isinstance(e.args[0], Call) and e.args[0].fn == dual:
        return [c for a in e.args[0].args for c in _parts(negation(a), fn, dual)]
    if isinstance(e, Call) and e.fn == "not" and isinstance(e.args[0], Call) and e.args[0].fn == "ne":
        return [replace(e.args[0], fn="eq")]
    return [e]


def without_division(f: Affine, positive: Callable[[Affine], bool]) -> Affine:
    """Return an expression that is not negative just where `f` is, without the one division in it where that can be."""
    for monomial, c in f.terms:
        if len(monomial) != 1 or abs(c) != 1 or not isinstance(monomial[0], FloorDiv):
            continue
        n, d = monomial[0].numerator, monomial[0].denominator
        rest = f - Affine(((monomial, c),))
        numbers = rest if n.indices() else n  # an attribute times the divisor may be no number of 64 bits
        if not positive(d) or any(map(is_number, numbers.atoms())):
            continue
        # n // d >= -rest just where n >= -rest * d, and n // d <= rest just where n <= rest * d + d - 1.
        return without_division(n + rest * d if c == 1 else rest * d + d - 1 - n, positive)
    return f


def bounded(g: Affine, positive: Callable[[Affine], bool] | None = None) -> Affine:
    """Return an expression of the sign that `g` has, whose value is far from the ends of 64 bits whatever attributes say.

    `i <= n` is `n - i >= 0`, and a loop over i ends before `n + 1`, with any n. So what attributes make up of it is cut to what
    is more than indices and sizes come to; where an attribute is the factor of an index, it is none of those that a loop has.
    """
    rest, cut = in_parts(g, positive)
    return rest + sum((_cut(e) * factor for factor, e in cut), Affine.of(0))


def in_parts(g: Affine, positive: Callable[[Affine], bool] | None = None) -> tuple[Affine, tuple[tuple[int, Affine], ...]]:
    """Return `g` as a sum: what is far from the ends of 64 bits, and what attributes say, with the factors of these.

    The latter may be cut to what is more than indices and sizes come to. `positive` tells what is known to be.
    """
    said = said_by_attributes(g)
    rest = g - said
    if not said.terms or said.indices() or any(abs(c) >= (_NEAR if m else FAR // 4) for m, c in rest.terms):
        return g, ()
    if len(said.terms) == 1:
        # The least number has no opposite.
        return rest, ((1, said) if said.terms[0][1] > 0 else (-1, -said),)
    if sorted(c for _, c in said.terms) == [-1, 1] and all(_is_size(a, positive) for m, _ in said.terms for a in m):
        return rest, ((1, said),)  # neither of two such numbers is further from the other than from 0
    s, high, low = digits(said, Affine.of(0))
    return (rest + low, ((s, high),)) if s <= MOST_PARTS else (g, ())


def _is_size(a: Atom, positive: Callable[[Affine], bool] | None) -> bool:
    """Whether an atom is known not to be negative."""
    return isinstance(a, Dim | GroupSize) or (positive is not None and positive(Affine.of(a) + 1))


def _cut(e: Affine) -> Affine:
    """Return what is nearest to `e` between -1 - `FAR` and `FAR`."""
    far, last = Affine.of(FAR), Affine.of(-1)
    return last - minimum(last - minimum(e, far), far)


_NEAR = 2**8
FAR = 2**48
"""More than indices and sizes with factors below `_NEAR` come to, and so much less than 2^63 that small multiples fit; as
`opc::far` of "opc/cuda/nest.h"."""


def inside(read: Read, sizes: tuple[Affine, ...], bounded: Mapping[Affine, Affine]) -> tuple[Affine, ...]:
    """Return what must not be negative for a padded read to stand inside; `bounded` tells indices that are within an extent."""
    found = []
    for index, size in zip(read.indices, sizes, strict=True):
        if isinstance(index, Affine) and bounded.get(index) != size:
            found += [index, size - 1 - index]
    return tuple(found)


def is_known_inside(read: Read, sizes: tuple[Affine, ...], bounded: Mapping[Affine, Affine]) -> bool:
    """Whether each index of a read is one that is within the extent of its axis wherever it stands."""
    pairs = zip(read.indices, sizes, strict=True)
    return all(isinstance(i, Affine) and (bounded.get(i) == s or _is_index(i.constant, s.constant)) for i, s in pairs)


def _is_index(index: int | None, size: int | None) -> bool:
    return index is not None and size is not None and 0 <= index < size


def is_zero(e: Expr) -> bool:
    """Whether an expression is a literal zero, whose bits are all zero."""
    return isinstance(e, Const) and e.value == 0 and math.copysign(1, e.value) > 0


def peel(
    kind: str,
    body: Expr,
    sizes: Callable[[str], tuple[Affine, ...]],
    bounded: Mapping[Affine, Affine],
    positive: Callable[[Affine], bool],
) -> tuple[tuple[Guard, ...], Expr]:
    """Return the guards outside of which the body of a reduction is what the reduction ignores, and the body inside of them."""
    found: tuple[Guard, ...] = ()
    while True:
        if found and isinstance(last := found[-1], Expr) and may_refuse(last):
            return found, body  # what is asked next must not be asked before
        match body:
            case Select(cond=cond, then=then, other=other) if is_identity(kind, other, body.type):
                found, body = found + guards(cond, positive), then
            case Select(cond=cond, then=then, other=other) if is_identity(kind, then, body.type):
                found, body = found + guards(negation(cond), positive), other
            case Read(pad=pad) if pad is not None and is_identity(kind, pad) and _is_affine(body):
                found += inside(body, sizes(body.operand), bounded)
                body = Read(body.operand, body.indices, body.type, None, body.checked, body.span)
            case _:
                return found, body


def _is_affine(read: Read) -> bool:
    return all(isinstance(i, Affine) for i in read.indices)


def guard_indices(g: Guard) -> frozenset[str]:
    """Return the index variables of a guard."""
    return g.indices() if isinstance(g, Affine) else free_indices(g)


def replace_node(e: Expr, node: Expr, new: Expr) -> Expr:
    """Return `e` with the one subexpression that is `node` replaced."""
    if e is node:
        return new
    return with_children(e, tuple(replace_node(c, node, new) for c in children(e)))


def one_index(cond: Expr, index: str, is_known: Callable[[Expr], bool]) -> tuple[Affine, Expr] | None:
    """Return what a condition asks of an index where one place alone may hold it: the index plus the first is the second.

    `is_known` tells whether a value can be found ahead of the loop over the index.
    """
    if not isinstance(cond, Call) or cond.fn != "eq":
        return None
    for place, widened in (cond.args, cond.args[::-1]):
        value = unwidened(widened)
        if not isinstance(place, IndexValue) or not is_known(value):
            continue
        wide = isinstance(widened.type, DType | TypeVar) and _WIDE.issuperset(candidates(widened.type))
        if wide and place.value.coefficient(index) == Affine.of(1):
            return place.value - Index(index), value
    return None
