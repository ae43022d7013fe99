"""Offsets of places in axis groups, each found once where its place is known.

Such an offset is a loop over the axes of a group, which a compiler neither takes out of a value nor out of another loop, and of
which it finds no two to be the same. Of an operand that is absent it is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from opc.ir.dtypes import Weak
from opc.ir.expr import STATEMENTS, Expr, children, traits, with_children
from opc.loops.nodes import (
    Body,
    Let,
    Loop,
    Statement,
    Var,
    Yield,
    bodies,
    declared_in,
    map_values,
    own_values,
    statements,
    values_of,
    with_bodies,
)
from opc.loops.values import Block, Intrinsic, Local, Named, call, group_offsets, number, variable, variables
from opc.records import replace


def with_offsets_once(body: Body) -> Body:
    """Return a body in which an offset that stands in several values, or in a loop, is a variable, declared as soon as its place
    is known."""
    numbers = count(1)
    return _within(body, lambda: f"offset#once{next(numbers)}")


def _within(body: Body, fresh: Callable[[], str]) -> Body:
    """As `with_offsets_once` says, of a body and what stands in it."""
    uses = Counter([e for v in values_of(body) for e in group_offsets(v)])
    if not uses:
        return body
    own = {s.name: n for n, s in enumerate(body) if isinstance(s, Let | Var)}
    inside = frozenset(name for n, s in enumerate(body) for name in declared_in((s,)) if own.get(name) != n)
    alike = Counter(e.args[3:] for e in uses if e.args[2] == e.args[4])
    looped = {e for s in body if isinstance(s, Loop) for v in values_of(s.body) for e in group_offsets(v)}
    shared: dict[Expr, str] = {}
    behind: dict[int, list[Intrinsic]] = {}
    for e, times in uses.items():
        used = variables(e)
        if (times > 1 or e in looped or alike[e.args[3:]] > 1) and not inside.intersection(used):
            shared[e] = fresh()
            place = max((own[name] for name in used if name in own), default=-1)
            behind.setdefault(place, []).append(e)
    same = {variable(s.name): s.value for s in statements(body) if isinstance(s, Let) and s.value in shared}

    def rule(e: Expr) -> Expr:
        if not same and not group_offsets(e):
            return e
        e = same.get(e, e)
        if e in shared:
            return variable(shared[e])
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    declared = {place: tuple(_found_together(offsets, shared, fresh)) for place, offsets in behind.items()}
    found: list[Statement] = [*declared.get(-1, ())]
    for n, s in enumerate(body):
        if not (isinstance(s, Let) and s.value in shared):
            found += _without_copies(map_values((s,), rule) if shared else (s,), frozenset(shared.values()))
        found += declared.get(n, ())
    return tuple(_deeper(s, fresh) for s in found)


def _found_together(offsets: Sequence[Intrinsic], names: Mapping[Expr, str], fresh: Callable[[], str]) -> Iterator[Let]:
    """Yield the variables of offsets; the digits of a place are found once for all operands whose own axes these are."""
    alike: dict[tuple[Expr, Expr], list[Intrinsic]] = {}
    for e in offsets:
        _, _, own, place, whole = e.args
        if own == whole:
            alike.setdefault((place, whole), []).append(e)
    together = {e for found in alike.values() if len(found) > 1 for e in found}
    yield from (Let(names[e], Weak.INT, e) for e in offsets if e not in together)
    for (place, whole), found in alike.items():
        if len(found) > 1:
            all_of = fresh()
            strides = (call("strides_of", e.args[0], e.args[1]) for e in found)
            yield Let(all_of, Named("auto"), call("group_offsets", place, whole, *strides))
            yield from (Let(names[e], Weak.INT, Local(all_of, Weak.INT, number(n), "at")) for n, e in enumerate(found))


def _without_copies(body: Body, shared: frozenset[str]) -> Body:
    """Return a body without variables that are the same as one of an offset, which nothing reads any more."""
    copied = frozenset(map(variable, shared))
    left = (s for s in body if not (isinstance(s, Let) and s.value in copied))
    return tuple(with_bodies(s, tuple(_without_copies(b, shared) for b in bodies(s))) for s in left)


def _deeper(s: Statement, fresh: Callable[[], str]) -> Statement:
    """Return a statement with the offsets in its own bodies found once in these."""

    def rule(e: Expr) -> Expr:
        if not group_offsets(e):
            return e
        if isinstance(e, Block):
            *rest, last = _within((*e.body, Yield(e.value)), fresh)
            assert isinstance(last, Yield), "what a block comes to stands last"
            return replace(e, body=tuple(rest), value=last.value)
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    s = with_bodies(s, tuple(_within(b, fresh) for b in bodies(s)))
    if not any(traits(v) & STATEMENTS for v in own_values(s)):
        return s
    inner = bodies(s)
    (changed,) = map_values((with_bodies(s, tuple(() for _ in inner)),), rule)
    return with_bodies(changed, inner)
