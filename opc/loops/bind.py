"""Binding of loops to a device: rows to teams of threads, points of a row to the threads of a team, or points to all threads.

A value that the threads of a team add up in parts is joined when the loop is over, and every thread gets it. What is computed
once a row is computed by each thread, and stored by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Expr, IndexValue, children, with_children
from opc.loops.nodes import Accumulate, Body, How, If, Let, Loop, PassGroup, Statement, Store, Var, map_values, values_of
from opc.loops.row_loops import reductions_of
from opc.loops.values import Local, Member, Named, Pointer, Product, Sum, Word, call, number, variable, variables
from opc.records import replace

TILE = Word("tile")
"""The argument of a kernel's function that describes a stage."""

NEST = Word("nest")
"""The argument of one that describes a nest."""

WORK = "@work"
"""The piece of work that a team has: a point, or a part of the terms at one."""


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


def bind_points(loop: Loop, shared: bool) -> Loop:
    """Return a loop over points that all threads of a grid take in turns, or where they have `shared` terms, teams of threads.

    The last statement of its body stores the point; of a team one thread does.
    """
    if not shared:
        return replace(loop, how=How.GRID)
    point = Let(loop.index, Weak.INT, call("point_of", NEST, variable(WORK)))
    body = (point, *_stored_once(loop.body))
    return replace(loop, how=How.TEAMS, index=WORK, high=Member("@nest", "work"), body=body)


def _stored_once(body: Body) -> Body:
    """Return a body whose last statement, or that of the loop that stands last, one thread of a team runs."""
    *rest, last = body
    if isinstance(last, Loop):
        return (*rest, replace(last, body=_stored_once(last.body)))
    return (*rest, If(call("stores_point", NEST, type=DType.BOOL), (last,)))


def share_terms(body: Body, kinds: Mapping[str, str], depth: int) -> Body:
    """Return the `depth` loops of a reduction at a point, of which a team's threads take one in turns: which, a call decides.

    `kinds` are the variables that a thread reduces its own terms to, each by a kind, which are joined when the loop is over.
    """
    found: list[Statement] = []
    for s in body:
        if not isinstance(s, Loop):
            found.append(s)
            continue
        found += _shared_loop(s, 0, depth)
        for v in (v for v in body if isinstance(v, Var) and v.name in kinds):
            assert not isinstance(v.kind, Named | Pointer), "it has the type of a value"
            own = Local(v.name, v.kind)
            types = (f"opc::joins_{kinds[v.name]}", v.kind)
            found.append(Store(own, call("join_terms", NEST, variable(WORK), own, type=own.type, types=types)))
    return tuple(found)


def _shared_loop(s: Loop, level: int, depth: int) -> Body:
    """Return one of the loops of a reduction, and those in it: a call decides by their levels which one threads share.

    A thread counts its own terms, so that a compiler knows how often the loop runs and reads ahead for several terms at once.
    """
    first: Expr = call("first_term", NEST, variable(WORK), number(level))
    step: Expr = call("term_step", NEST, number(level))
    low = first if s.low == number(0) else Sum((s.low, first))
    names = tuple(f"{word}#{s.index}" for word in ("first", "step", "terms", "term"))
    own, by, count, term = map(variable, names)
    body = _inner_loops(s.body, level + 1, depth) if level + 1 < depth else s.body
    used = any(s.index in variables(v) for v in values_of(body))
    index = (Let(s.index, Weak.INT, Sum((own, Product((term, by))))),) if used else ()
    ahead, body = _same_each_time((*index, *body), frozenset((s.index, names[3])))
    return (
        *ahead,
        Let(names[0], Weak.INT, low),
        *((Let(names[1], Weak.INT, step),) if used else ()),
        Let(names[2], Weak.INT, call("count_own_terms", NEST, own, s.high, number(level))),
        replace(s, index=names[3], low=number(0), high=count, body=body),
    )


def _same_each_time(body: Body, changing: frozenset[str]) -> tuple[Body, Body]:
    """Return the variables of a loop's body that hold the same each time, of those that count terms, and what is left of it."""
    counting = ("first#", "step#", "terms#")
    ahead, left = list[Statement](), list[Statement]()
    for s in body:
        own = frozenset(variables(s.value)) if isinstance(s, Let) else frozenset()
        if isinstance(s, Let) and s.name.startswith(counting) and not own & changing:
            ahead.append(s)
            continue
        if isinstance(s, Let | Var):
            changing |= {s.name}
        left.append(s)
    return tuple(ahead), tuple(left)


def _inner_loops(body: Body, level: int, depth: int) -> Body:
    """Return what stands in one of the loops: the next one is the last statement, under conditions perhaps."""
    *lines, inner = body
    if isinstance(inner, If):
        return (*lines, replace(inner, then=_inner_loops(inner.then, level, depth)))
    assert isinstance(inner, Loop), "the loops of a reduction lie in each other"
    return (*lines, *_shared_loop(inner, level, depth))
