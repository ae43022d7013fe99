"""The loops of a reduction on a device: over the terms that count, which a team of threads may take in turns.

Conditions that are affine in the index of a loop narrow its range, so that a window is not tested inside and a sum over windows
goes over those alone that hold an element. A search starts from the least value and the first position, as the CPU's does, so
that threads can search terms of their own and then join what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    IndexValue,
    Reduce,
    ReduceAxis,
    Select,
    children,
    walk,
    with_children,
)
from opc.loops.bind import WORK
from opc.loops.nodes import Body, Do, If, Let, Loop, Statement, Store, Var, map_values, own_values, statements
from opc.loops.values import Block, Intrinsic, Local, Product, call, compare, number, ref, sum_of, variable, variables
from opc.lower.build.context import NEST
from opc.lower.guards import IDENTITY, peel
from opc.records import replace

Widths: TypeAlias = tuple[tuple[Affine, ...], ...]
"""For each axis of a reduction, numbers of points that there are no more of."""


def extents_of(e: Reduce) -> tuple[Affine, ...] | None:
    """Return the number of points along each axis of a reduction, None where one depends on another or on an operand."""
    if any(isinstance(a, BroadcastAxis) or (isinstance(a, Axis) and a.extent.indices()) for a in e.axes):
        return None
    return tuple(a.extent if isinstance(a, Axis) else Affine.of(GroupSize(a.name)) for a in e.axes)


def terms_that_count(
    e: Reduce,
    sizes: Callable[[str], tuple[Affine, ...]],
    bounded: Mapping[Affine, Affine],
    positive: Callable[[Affine], bool],
) -> tuple[tuple[Affine, ...], Expr]:
    """Return the affine expressions that are not negative where a term counts, and the term under the other conditions."""
    kind = e.kind.removeprefix("arg")
    found, body = peel(kind, e.body, sizes, bounded, positive)
    if not any(isinstance(g, Affine) for g in found):
        return (), e.body
    for g in reversed(found):
        if not isinstance(g, Affine):
            body = Select(g, body, Const(IDENTITY[kind], body.type), body.type)
    return tuple(g for g in found if isinstance(g, Affine)), body


def narrowed(
    heads: Sequence[tuple[ReduceAxis, Loop]], guards: Sequence[Affine], inner: Body, fresh: Callable[[str], str]
) -> Body:
    """Return loops within one another around a body, each over the range in which the guards hold that are affine in its index.

    A range that is the same in all iterations of the loops around it is found ahead of them.
    """
    own = frozenset(a.index for a, _ in heads if isinstance(a, Axis))
    ahead: list[Statement] = []

    def within(n: int, guards: tuple[Affine, ...], opened: frozenset[str]) -> Body:
        if n == len(heads):
            return inner
        axis, loop = heads[n]
        index = axis.index if isinstance(axis, Axis) else ""
        opened |= {index}
        due = tuple(g for g in guards if g.indices() & own <= opened)
        ranges = tuple(g for g in due if index in g.indices() and g.coefficient(index) is not None)
        body = within(n + 1, tuple(g for g in guards if g not in due), opened)
        for g in reversed([g for g in due if g not in ranges]):
            body = (If(compare("ge", IndexValue(g), number(0)), body),)
        if not ranges:
            return (replace(loop, body=body),)
        low, high = fresh("low"), fresh("high")
        bounds = Var(low, Weak.INT, number(0)), Var(high, Weak.INT, loop.high), *(_narrow(g, index, low, high) for g in ranges)
        loop = replace(loop, low=variable(low), high=variable(high), body=body)
        used = frozenset().union(*(g.indices() for g in ranges)) | (axis.extent.indices() if isinstance(axis, Axis) else set())
        if used & own <= {index}:
            ahead.extend(bounds)
            return (loop,)
        return *bounds, loop

    body = within(0, tuple(guards), frozenset())
    return *ahead, *body


def widths(axis: ReduceAxis, guards: Sequence[Affine], positive: Callable[[Affine], bool]) -> tuple[Affine, ...]:
    """Return how many points along an axis lie between guards that bound it from both sides, whatever the other indices are."""
    found: list[Affine] = []
    if not isinstance(axis, Axis):
        return ()
    for low in guards:
        step = low.coefficient(axis.index)
        if step is None or not step.terms or not positive(step):
            continue
        between = (low + high for high in guards if high.coefficient(axis.index) == -step)
        found += [both // step + 1 for both in between if not both.indices()]
    return tuple(dict.fromkeys(found))


def _narrow(g: Affine, index: str, low: str, high: str) -> Statement:
    coefficient = g.coefficient(index)
    assert coefficient is not None, "it is affine in the index"
    rest = g - coefficient * Affine.of(Index(index))
    return Do(call("narrow_range", ref(low), ref(high), IndexValue(coefficient), IndexValue(rest)))


def nothing_along(extents: Iterable[Affine], positive: Callable[[Affine], bool]) -> Expr | None:
    """Return the condition that an axis has no points, None where each is known to have some."""
    found = [compare("le", IndexValue(extent), number(0)) for extent in extents if not positive(extent)]
    if not found:
        return None
    total, *rest = found
    for other in rest:
        total = Call("or", (total, other), DType.BOOL)
    return total


def better(kind: str, here: Local, best: Local) -> Expr:
    """Return whether a value comes before the best of those before it: it is ahead, or the first NaN."""
    nan = Call("and", (Call("ne", (here, here), DType.BOOL), Call("eq", (best, best), DType.BOOL)), DType.BOOL)
    ahead = Call("gt" if kind == "argmax" else "lt", (here, best), DType.BOOL)
    return Call("or", (ahead, nan), DType.BOOL)


def position_of(indices: Sequence[str], extents: Sequence[Affine]) -> Expr:
    """Return the position of a term, in row-major order of the axes."""
    terms = []
    for n, index in enumerate(indices):
        behind = [IndexValue(x) for x in extents[n + 1 :]]
        terms.append(Product((variable(index), *behind)) if behind else variable(index))
    return sum_of(terms)


def search_step(e: Reduce, value: Expr, position: Expr, best: str, result: str, here: str) -> Body:
    """Return what takes a term into a search."""
    of = e.body.type
    found = Store(Local(best, of), Local(here, of)), Store(Local(result, e.type), position)
    return Let(here, of, value), If(better(e.kind, Local(here, of), Local(best, of)), found)


def joined_search(e: Reduce, best: str, result: str) -> Statement:
    """Return what joins the positions that the threads of a team have found."""
    own, of = Local(result, e.type), e.body.type
    types = (f"opc::finds_{e.kind.removeprefix('arg')}", of)
    return Store(own, call("join_search", NEST, variable(WORK), Local(best, of), own, type=e.type, types=types))


def with_offsets_ahead(body: Body, fresh: Callable[[str], str]) -> Body:
    """Return the loops of a reduction with the offsets of places in axis groups that don't change along them ahead of them.

    A compiler takes no loop out of another, and such an offset is one over the axes of a group.
    """
    declared = frozenset(_declared(body))
    found: dict[Expr, str] = {}

    def rule(e: Expr) -> Expr:
        if isinstance(e, Intrinsic) and e.name == "group_offset" and not declared.intersection(variables(e)):
            if e not in found:
                found[e] = fresh("offset")
            return variable(found[e])
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    first = next((n for n, s in enumerate(body) if isinstance(s, Loop)), len(body))
    loops = map_values(body[first:], rule)
    return *body[:first], *(Let(name, Weak.INT, e) for e, name in found.items()), *loops


def _declared(body: Body) -> Iterator[str]:
    """Yield the variables that are declared in a body, those of values' own statements among them."""
    for s in statements(body):
        if isinstance(s, Loop):
            yield s.index
        elif isinstance(s, Let | Var):
            yield s.name
        for v in own_values(s):
            for e in walk(v):
                if isinstance(e, Block):
                    yield from _declared(e.body)
