"""Binding of loops to a device: rows to blocks of threads, points of a row to the threads of a block.

A value that the threads of a block add up in parts is joined when the loop is over, and every thread gets it. What is computed
once a row is computed by each thread, and stored by one.
"""

from __future__ import annotations

from opc.ir.dtypes import DType
from opc.loops.nodes import Accumulate, Body, Buffer, Do, How, If, Loop, PassGroup, Statement, Store
from opc.loops.row_loops import reductions_of
from opc.loops.values import Intrinsic, Local, Member, call, number
from opc.records import replace


def bind(loop: Loop) -> Loop:
    """Return a loop over rows, whose body is pointers and then groups, bound to a device."""
    body = tuple(PassGroup(_group(s.body)) if isinstance(s, PassGroup) else s for s in loop.body)
    return replace(loop, how=How.BLOCKS, body=body)


def _group(body: Body) -> Body:
    found: list[Statement] = []
    for s in body:
        match s:
            case Loop():
                found.append(replace(s, how=How.THREADS))
                for name, f in reductions_of(s).items():
                    own = Local(name, f.target.type)
                    joined = call("block_reduce", own, type=own.type, types=(f"opc::joins_{f.kind}", own.type))
                    found.append(Store(own, joined))
            case Store() | Accumulate() if s.target.index == number(0):
                found.append(If(call("first_thread", type=DType.BOOL), (s,)))
            case _:
                found.append(s)
    return tuple(found)


def bind_points(body: Body, located: Intrinsic | None) -> Body:
    """Return a loop over points, what stands before it included, that all threads of a grid run in steps.

    A thread finds the position of each of its points by `located`; None where there is nothing to find.
    """
    found: list[Statement] = []
    for s in body:
        match s:
            case Loop():
                inside = s.body if located is None else (Do(located), *s.body)
                points = Member("@nest", "points")
                found.append(replace(s, how=How.GRID, low=number(0), high=points, after=None, body=inside))
            case Do():
                continue
            case Buffer() if located is None:
                continue
            case _:
                found.append(s)
    return tuple(found)
