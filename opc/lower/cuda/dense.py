"""Loop versioning: a loop over the terms at a point has a copy for operands that are stored densely.

There a place in an axis group is as many steps of the group's last axis, and the copy has no loop over the group's axes: a
compiler then reads ahead for several terms at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Expr, children, walk, with_children
from opc.loops.nodes import (
    Body,
    How,
    If,
    Let,
    Loop,
    Statement,
    Var,
    bodies,
    map_values,
    statements,
    values_of,
    with_bodies,
)
from opc.loops.values import Intrinsic, Product, call, variable, variables


def with_dense_versions(body: Body) -> Body:
    """Return a body in which innermost serial loops that find an offset for each term have a version for dense operands."""
    numbers = count(1)
    return tuple(s for before in body for s in _versions(before, numbers))


def _versions(s: Statement, numbers: Iterator[int]) -> Iterator[Statement]:
    within = (inner for inner in statements(s.body) if isinstance(inner, Loop)) if isinstance(s, Loop) else iter(())
    if not isinstance(s, Loop) or s.how is not How.SERIAL or any(inner.how is not How.UNROLLED for inner in within):
        yield with_bodies(s, tuple(tuple(v for inner in b for v in _versions(inner, numbers)) for b in bodies(s)))
        return
    own = _own(s)
    places = dict.fromkeys(e for v in values_of(s.body) for e in _places(v) if own.intersection(variables(e.args[3])))
    if not places or any(own.intersection(variables(a)) for e in places for a in e.args[:3]):
        yield s
        return
    steps = {e.args[:3]: f"step#dense{next(numbers)}" for e in places}

    def rule(e: Expr) -> Expr:
        below = children(e)
        e = with_children(e, tuple(map(rule, below))) if below else e
        if not isinstance(e, Intrinsic) or not _is_place(e) or e.args[:3] not in steps:
            return e
        return Product((e.args[3], variable(steps[e.args[:3]])))

    lets = tuple(Let(name, Weak.INT, call("dense_step", *args)) for args, name in steps.items())
    dense = call("are_dense", *dict.fromkeys(e.args[0] for e in places), type=DType.BOOL)
    yield If(dense, (*lets, *map_values((s,), rule)), (s,))


def _own(s: Loop) -> frozenset[str]:
    """Return the variables that change with a loop."""
    return frozenset((s.index, *(v.name for v in statements(s.body) if isinstance(v, Let | Var))))


def _places(value: Expr) -> Iterator[Intrinsic]:
    """Yield the offsets in a value of places in a group that nothing is broadcast along."""
    yield from (e for e in walk(value) if isinstance(e, Intrinsic) and _is_place(e))


def _is_place(e: Intrinsic) -> bool:
    return e.name == "group_offset" and e.args[2] == e.args[4]


__all__ = ["with_dense_versions"]
