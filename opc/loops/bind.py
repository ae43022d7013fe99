"""Binding of loops to a device: rows to teams of threads, points of a row to the threads of a team, or points to all threads.

A value that the threads of a team add up in parts is joined when the loop is over, and every thread gets it. What is computed
once a row is computed by each thread, and stored by one.
"""

from __future__ import annotations

from collections.abc import Callable

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Expr, IndexValue, children, with_children
from opc.loops.nodes import Accumulate, Body, Buffer, Do, GroupPoints, How, If, Let, Loop, PassGroup, Statement, Store, map_values
from opc.loops.row_loops import reductions_of
from opc.loops.values import Intrinsic, Local, Member, Word, call, number, variable
from opc.records import replace

TILE = Word("tile")
"""The argument of a kernel's function that describes a stage."""

NEST = Word("nest")
"""The argument of one that describes a nest."""


def bind(loop: Loop) -> Loop:
    """Return a loop over rows, whose body is pointers and then groups, bound to a device."""
    body = tuple(PassGroup(_group(s.body)) if isinstance(s, PassGroup) else s for s in loop.body)
    return replace(loop, how=How.TEAMS, body=body)


def _group(body: Body) -> Body:
    found: list[Statement] = []
    for s in body:
        match s:
            case Loop():
                found.append(replace(s, how=How.THREADS))
                for name, f in reductions_of(s).items():
                    own = Local(name, f.target.type)
                    joined = call("team_reduce", TILE, own, type=own.type, types=(f"opc::joins_{f.kind}", own.type))
                    found.append(Store(own, joined))
            case Store() | Accumulate() if s.target.index == number(0):
                found.append(If(call("first_of_team", TILE, type=DType.BOOL), (s,)))
            case If():
                found.append(replace(s, then=_group(s.then)))
            case _:
                found.append(s)
    return tuple(found)


def bind_row(loop: Loop) -> Body:
    """Return a loop over rows of which there is one, whose body is pointers and then groups: its points go to all threads."""
    row = number(0)
    body = tuple(PassGroup(_points(s.body)) if isinstance(s, PassGroup) else s for s in loop.body)
    return map_values(body, _in_place_of(loop.index, row))


def _points(body: Body) -> Body:
    return tuple(replace(s, how=How.GRID) if isinstance(s, Loop) else s for s in body)


def _in_place_of(index: str, value: Expr) -> Callable[[Expr], Expr]:
    def rule(e: Expr) -> Expr:
        if isinstance(e, IndexValue) and e.value.index == index:
            return value
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    return rule


def bind_points(body: Body, located: Intrinsic | None, shared: bool) -> Body:
    """Return a loop over points, what stands before it included, that all threads of a grid run in steps, or where the terms at a
    point are `shared` teams of them.

    A thread finds the position of each of its points by `located`; None where there is nothing to find.
    """
    found: list[Statement] = []
    for s in body:
        match s:
            case Loop():
                inside = s.body if located is None else (Do(located), *s.body)
                how, index, count = How.GRID, s.index, "points"
                if shared:
                    *rest, store = inside
                    stores = call("stores_point", NEST, type=DType.BOOL)
                    point = Let(s.index, Weak.INT, call("point_of", NEST, variable("@work")))
                    how, index, count = How.TEAMS, "@work", "work"
                    inside = (point, *rest, If(stores, (store,)))
                found.append(
                    replace(s, how=how, index=index, low=number(0), high=Member("@nest", count), after=None, body=inside)
                )
            case Do():
                continue
            case Buffer() if located is None:
                continue
            case _:
                found.append(s)
    return tuple(found)


def to_threads(loop: Loop | GroupPoints) -> Loop | GroupPoints:
    """Return a loop over the terms at a point, which the threads of a team take in turns."""
    first = call("first_term", NEST, variable("@work"))
    if isinstance(loop, GroupPoints):
        return replace(loop, over=(*loop.over, first, call("term_step", NEST)))
    end = call("terms_end", NEST, loop.high)
    return replace(loop, low=first, high=end, step=call("term_step", NEST))
