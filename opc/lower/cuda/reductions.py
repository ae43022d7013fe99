"""The loops of a reduction on a device: over the terms that count, which a team of threads may take in turns.

Conditions that are affine in the index of a loop narrow its range, so that a window is not tested inside and a sum over windows
goes over those alone that hold an element. A search starts from the least value and the first position, as the CPU's does, so
that threads can search terms of their own and then join what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index, Mod
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    SEARCHES,
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
    with_children,
)
from opc.ir.identity import IDENTITY
from opc.loops.bind import WORK
from opc.loops.nodes import Body, Do, How, If, Let, Loop, Statement, Store, Var, declared_in, map_values
from opc.loops.values import (
    Intrinsic,
    Local,
    Product,
    call,
    compare,
    group_offsets,
    number,
    product_of,
    ref,
    sum_of,
    variable,
    variables,
)
from opc.lower.build.context import NEST
from opc.lower.guards import in_parts, peel
from opc.records import dataclass, replace
from opc.transform.indices import substitute

Widths: TypeAlias = tuple[tuple[Affine, ...], ...]
"""For each axis of a reduction, numbers of points that there are no more of."""


def extents_of(e: Reduce) -> tuple[Affine, ...] | None:
    """Return the number of points along each axis of a reduction, None where one depends on another or on an operand."""
    own = set(e.extents)
    if any(isinstance(a, BroadcastAxis) or (isinstance(a, Axis) and a.extent.indices() & own) for a in e.axes):
        return None
    return tuple(a.size for a in e.axes)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Where the terms of a reduction count: affine expressions that are not negative there, and remainders that are 0 there, by
    the innermost index in each."""

    guards: tuple[Affine, ...] = ()
    steps: Mapping[str, Mod] = field(default_factory=dict)
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For each of these indices, the variables that hold the first that counts and the number of steps from there."""


def terms_that_count(
    e: Reduce,
    sizes: Callable[[str], tuple[Affine, ...]],
    bounded: Mapping[Affine, Affine],
    positive: Callable[[Affine], bool],
    fresh: Callable[[str], str],
) -> tuple[Ranges, Expr]:
    """Return where the terms of a reduction count, and the term under the other conditions; `fresh` names variables."""
    kind = e.kind.removeprefix("arg")
    found, body = peel(kind, e.body, sizes, bounded, positive)
    steps: dict[str, Mod] = {}
    left: list[Expr] = []
    own = set(e.extents)
    apart = {i for g in found if isinstance(g, Affine) and len(g.indices() & own) > 1 for i in g.indices()}
    for g in found:
        if isinstance(g, Affine):
            continue
        step = _step(g, e, positive) if e.kind not in SEARCHES else None
        if step is not None and step[0] not in steps and not apart.intersection(step[1].numerator.indices()):
            steps[step[0]] = step[1]
        else:
            left.append(g)
    names = {index: (fresh("low"), fresh("taken")) for index in steps}
    ranges = Ranges(tuple(g for g in found if isinstance(g, Affine)), steps, names)
    if not ranges.guards and not ranges.steps:
        return ranges, e.body
    for g in reversed(left):
        body = Select(g, body, Const(IDENTITY[kind], body.type), body.type)
    at = {i: Affine.of(Index(first)) + steps[i].denominator * Index(taken) for i, (first, taken) in names.items()}
    return ranges, substitute(body, at)


def _step(g: Expr, e: Reduce, positive: Callable[[Affine], bool]) -> tuple[str, Mod] | None:
    """Return the innermost index that a condition on a remainder asks for, and the remainder, where it fixes the index's own."""
    if not isinstance(g, Call) or g.fn != "eq":
        return None
    a, b = map(affine_of, g.args)
    terms = (a - b).terms if a is not None and b is not None else ()
    if len(terms) != 1 or len(terms[0][0]) != 1 or abs(terms[0][1]) != 1:
        return None
    (of,) = terms[0][0]
    own = [x.index for x in e.axes if isinstance(x, Axis)]
    if not isinstance(of, Mod) or of.denominator.indices() & set(own) or not positive(of.denominator):
        return None
    index = next((i for i in reversed(own) if i in of.numerator.indices()), None)
    if (
        index is None
        or len(of.numerator.indices().intersection(own)) > 1
        or of.numerator.coefficient(index) not in (Affine.of(1), Affine.of(-1))
    ):
        return None
    return index, of


def _first(of: Mod, index: str, low: str, high: str) -> Statement:
    """Return what moves the start of a loop on to the first index whose remainder is 0, at most to its end."""
    rises = of.numerator.coefficient(index) == Affine.of(1)
    rest = of.numerator - Index(index) if rises else of.numerator + Index(index)
    ahead = ((-rest if rises else rest) - Index(low)) % of.denominator
    return Do(call("skip_ahead", ref(low), ref(high), IndexValue(ahead)))


def narrowed(
    heads: Sequence[tuple[ReduceAxis, Loop]],
    found: Ranges,
    inner: Body,
    fresh: Callable[[str], str],
    positive: Callable[[Affine], bool],
) -> Body:
    """Return loops within one another around a body, each over the range in which the guards hold that are affine in its index,
    in steps where it has a remainder.

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
        step = found.steps.get(index)
        if not ranges and step is None:
            return (replace(loop, body=body),)
        low, high = found.names[index][0] if step is not None else fresh("low"), fresh("high")
        bounds = (
            Var(low, Weak.INT, number(0)),
            Var(high, Weak.INT, loop.high),
            *(_narrow(g, index, low, high, positive) for g in ranges),
        )
        # A window has few terms.
        loop = replace(loop, how=How.ROLLED, low=variable(low), high=variable(high), body=body)
        if step is not None:
            count = fresh("count")
            counted = call("count_terms", variable(low), variable(high), IndexValue(step.denominator))
            bounds = *bounds, _first(step, index, low, high), Let(count, Weak.INT, counted)
            loop = replace(loop, index=found.names[index][1], low=number(0), high=variable(count))
            ranges = *ranges, step.numerator
        used = frozenset().union(*(g.indices() for g in ranges)) | (axis.extent.indices() if isinstance(axis, Axis) else set())
        if used & own <= {index}:
            ahead.extend(bounds)
            return (loop,)
        return *bounds, loop

    body = within(0, found.guards, frozenset())
    return *ahead, *body


def widths(axis: ReduceAxis, found: Ranges, positive: Callable[[Affine], bool]) -> tuple[Affine, ...]:
    """Return how many terms there are at most along an axis, whatever the other indices are: between guards that bound it from
    both sides, and in steps."""
    if not isinstance(axis, Axis):
        return ()
    apart: list[Affine] = []
    for low in found.guards:
        factor = low.coefficient(axis.index)
        if factor is None or not factor.terms or not positive(factor):
            continue
        between = (low + high for high in found.guards if high.coefficient(axis.index) == -factor)
        apart += [both // factor for both in between if not both.indices()]
    if axis.index in found.steps:
        step = found.steps[axis.index].denominator
        apart = [] if step.indices() or axis.extent.indices() else [x // step for x in (axis.extent - 1, *apart)]
    return tuple(dict.fromkeys(x + 1 for x in apart))


def _narrow(g: Affine, index: str, low: str, high: str, positive: Callable[[Affine], bool]) -> Statement:
    coefficient = g.coefficient(index)
    assert coefficient is not None, "it is affine in the index"
    own, cut = in_parts(g, positive)
    said = [product_of(number(factor), call("far", IndexValue(e))) for factor, e in cut]
    rest = sum_of([IndexValue(own - coefficient * Affine.of(Index(index))), *said])
    # Where the sign is known, so is which end moves.
    if positive(coefficient):
        return Do(call("narrow_low", ref(low), ref(high), IndexValue(coefficient), rest))
    if positive(-coefficient):
        return Do(call("narrow_high", ref(low), ref(high), IndexValue(-coefficient), rest))
    return Do(call("narrow_range", ref(low), ref(high), IndexValue(coefficient), rest))


def nothing_along(extents: Iterable[Affine], positive: Callable[[Affine], bool]) -> Expr | None:
    """Return the condition that an axis has no points, None where each is known to have some."""
    found = [compare("le", IndexValue(extent), number(0)) for extent in extents if not positive(extent)]
    if not found:
        return None
    total, *rest = found
    for other in rest:
        total = Call("or", (total, other), DType.BOOL)
    return total


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
    leads = call("leads", Local(here, of), Local(best, of), type=DType.BOOL, types=(_finds(e), of))
    return Let(here, of, value), If(leads, found)


def joined_search(e: Reduce, best: str, result: str) -> Statement:
    """Return what joins the positions that the threads of a team have found."""
    own, of = Local(result, e.type), e.body.type
    types = _finds(e), of
    return Store(own, call("join_search", NEST, variable(WORK), Local(best, of), own, type=e.type, types=types))


def _finds(e: Reduce) -> str:
    return f"opc::finds_{e.kind.removeprefix('arg')}"


def with_offsets_ahead(body: Body, fresh: Callable[[str], str], is_optional: Callable[[str], bool]) -> Body:
    """Return the loops of a reduction with the offsets of places in axis groups that don't change along them ahead of them.

    A compiler takes no loop out of another, and such an offset is one over the axes of a group. What may be absent has no axes
    then: its offset stays behind the test.
    """
    declared = frozenset(declared_in(body))
    found: dict[Expr, str] = {}

    def rule(e: Expr) -> Expr:
        if not group_offsets(e):
            return e
        if _is_offset(e, is_optional) and not declared.intersection(variables(e)):
            if e not in found:
                found[e] = fresh("offset")
            return variable(found[e])
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    first = next((n for n, s in enumerate(body) if isinstance(s, Loop)), len(body))
    loops = map_values(body[first:], rule)
    return *body[:first], *(Let(name, Weak.INT, e) for e, name in found.items()), *loops


def _is_offset(e: Expr, is_optional: Callable[[str], bool]) -> bool:
    """Whether a value is the offset of a place in a group of an operand that is there."""
    if not isinstance(e, Intrinsic) or e.name != "group_offset":
        return False
    return isinstance(e.args[0], Local) and not is_optional(e.args[0].name)
