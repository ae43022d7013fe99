"""What the solver of accesses asks of index expressions, conditions and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, AttrInt, FloorDiv, Index, Mod, Symbol
from opc.ir.comparisons import excess
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    IndexValue,
    Read,
    Select,
    children,
    free_indices,
    rewrite,
    with_children,
)
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.scalar import ZERO


@dataclass(slots=True)
class Equation:
    """`left == right`, where `left` is a position in the gradient and `right` an index of the read."""

    left: Affine
    right: Affine | Expr
    dim: Affine


def at_position(e: Expr, data: Expr, position: Affine) -> Expr:
    """Return `e` where an index that is data is known to be a position: reads stand at the position, and comparisons ask it."""
    if scalar.rebinds(e, data):
        return e
    e = with_children(e, tuple(at_position(c, data, position) for c in children(e)))
    match e:
        case Read():
            return replace(e, indices=tuple(position if i == data else i for i in e.indices))
        case Call() if e.fn in scalar.COMPARES:
            return replace(e, args=tuple(IndexValue(position) if a == data else a for a in e.args))
        case _:
            return e


def exchanged(e: Expr, old: Expr, new: Expr) -> Expr:
    """Return `e` with every `old` in it replaced."""
    return rewrite(e, lambda node: new if node == old else node)


Conditions: TypeAlias = tuple[tuple[Expr, bool], ...]
"""Conditions, each with the value it must have."""


def fixed_condition(e: Select) -> Conditions:
    """Return the condition of a conditional with a side that is zero, and what it must be for the other side, if it holds only
    attributes and sizes."""
    fixed = not scalar.any_reads(e.cond) and not free_indices(e.cond)
    return ((e.cond, scalar.is_zero(e.other)),) if fixed else ()


def fixed_conditions(e: Expr) -> Iterator[tuple[Expr, bool]]:
    """Yield the conditions on attributes and sizes without which `e` is zero, with the value each must have."""
    while isinstance(e, Select) and (scalar.is_zero(e.other) or scalar.is_zero(e.then)):
        yield from fixed_condition(e)
        e = e.then if scalar.is_zero(e.other) else e.other


def quickly_nonnegative(a: Affine, ranges: dict[str, Affine]) -> bool:
    """Whether `a` >= 0 is seen by putting in the end of each index range where `a` is least."""
    for index in sorted(a.indices()):
        c = a.coefficient(index)
        if c is None or index not in ranges or ranges[index].indices():
            return False
        if sign_of(c) is None:
            return False
        end = Affine.of(0) if sign_of(c) else ranges[index] - 1
        a = a.substitute(lookup({index: end}))
    return sign_of(a) is True


def gap(condition: Expr) -> Affine | None:
    """Return f of a condition that says f >= 0 and nothing else."""
    match condition:
        case Call(fn="ge" | "lt" as fn, args=(IndexValue() | Const() as a, IndexValue() | Const() as b)):
            left, right = affine_of(a), affine_of(b)
            return None if left is None or right is None else excess(fn, left, right)
        case _:
            return None


def is_affine(condition: Expr) -> bool:
    """Whether a condition compares index expressions and nothing else, no fraction among them."""
    return (
        isinstance(condition, Call)
        and condition.fn in scalar.COMPARES
        and all(isinstance(a, IndexValue | Const) and affine_of(a) is not None for a in condition.args)
        and bool(free_indices(condition))
    )


def ordered(loops: list[Axis]) -> list[Axis]:
    """Return the loops in an order in which every extent uses loops before it only."""
    names, done = {a.index for a in loops}, []
    waiting = list(loops)
    placed: set[str] = set()
    while waiting:
        ready = next((a for a in waiting if a.extent.indices() & names <= placed), None)
        if ready is None:
            raise AssertionError("the extents of loops depend on each other in a circle")
        waiting.remove(ready)
        placed.add(ready.index)
        done.append(ready)
    return done


def divisions(a: Affine) -> Iterator[FloorDiv | Mod]:
    """Yield the quotients and remainders that are factors of `a`, in the order of its terms."""
    return (atom for monomial, _ in a.terms for atom in monomial if isinstance(atom, FloorDiv | Mod))


def divided(condition: Expr) -> Mod | None:
    """Return the remainder that a condition says is 0, when it says that and no more."""
    match condition:
        case Call(fn="eq", args=(IndexValue(value=value), Const(value=0))):
            return value.single if isinstance(value.single, Mod) else None
        case _:
            return None


def divides(quotient: FloorDiv) -> Expr:
    """Return the condition that a division leaves no rest, as eliminating a loop writes it."""
    return scalar.compare("eq", scalar.index_value(quotient.numerator % quotient.denominator), ZERO)


def fixed_terms(e: Affine | Expr) -> Affine:
    """Return the terms of an index that hold no index variable."""
    terms = e.terms if isinstance(e, Affine) else ()
    return Affine(tuple(t for t in terms if not Affine((t,)).indices()))


def coefficient_of(equation: Equation, index: str) -> Affine | None:
    """Return the coefficient of a loop in an equation that can be solved for it, else None."""
    if not isinstance(equation.right, Affine) or index in equation.left.indices():
        return None
    c = equation.right.coefficient(index)
    # A coefficient that varies between points could be zero at some of them.
    return None if c is None or c.indices() else c


def sign_of(a: Affine) -> bool | None:
    """Return True when `a` is known not to be negative, False when not positive, None when unknown. Sizes are not negative."""
    known = all(not isinstance(atom, AttrInt | Index | FloorDiv | Mod) for m, _ in a.terms for atom in m)
    if known and all(c > 0 for _, c in a.terms):
        return True
    return False if known and all(c < 0 for _, c in a.terms) else None


def lookup(values: dict[str, Affine]) -> Callable[[Symbol], Affine | None]:
    """Return what gives each index variable its new value."""

    def value(symbol: Symbol) -> Affine | None:
        return values.get(symbol.name) if isinstance(symbol, Index) else None

    return value
