"""Packs: a loop along rows takes several neighbours at once from memory, and the rest of the points one by one.

The loop becomes two, over the columns that the call has in packs and over those behind them. In the first, rows that are read
are read ahead of the points of a pack, and rows that are written are written behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from opc.ir.dtypes import Weak
from opc.ir.expr import Expr, children, walk, with_children
from opc.loops.nodes import (
    Body,
    Do,
    How,
    Let,
    Loop,
    Statement,
    Store,
    Var,
    bodies,
    map_values,
    own_values,
    statements,
    values_of,
    with_bodies,
)
from opc.loops.values import Local, Member, Named, Word, call, number, ref, sum_of, variable, variables
from opc.records import dataclass, replace

COUNT = "packed_columns"
"""The variable that holds how many neighbours are taken at once."""


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A row that a loop goes along: of which operand of the stage, and whether it is written."""

    operand: int
    written: bool


def with_packs(body: Body, rows: Mapping[str, PackedRow], fresh: Callable[[str], str]) -> Body:
    """Return a body whose loops over points take packs of the rows that pointers are to, and single points at their offsets."""
    found: list[Statement] = []
    for s in body:
        if isinstance(s, Loop) and s.how in (How.THREADS, How.GRID):
            found += _packed(s, rows, fresh)
        else:
            found.append(with_bodies(s, tuple(with_packs(b, rows, fresh) for b in bodies(s))))
    return tuple(found)


def _packed(loop: Loop, rows: Mapping[str, PackedRow], fresh: Callable[[str], str]) -> Iterator[Statement]:
    # Where no row is used, points go to the same threads all the same: each keeps values for itself.
    at_index = _used(values_of(loop.body), loop.index)
    used = [name for name in rows if name in at_index]
    packed, first, lane = Member("@tile", "packed"), fresh("first"), fresh("lane")
    packs = {name: fresh(name.partition("#")[0].removesuffix("_row") + "_pack") for name in used}

    def rule(e: Expr) -> Expr:
        if isinstance(e, Local) and e.name in packs and e.index == variable(loop.index):
            return replace(e, name=packs[e.name], index=variable(lane))
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    along = map_values(loop.body, rule)
    if any(loop.index in variables(v) for v in values_of(along)):
        along = (Let(loop.index, Weak.INT, sum_of([variable(first), variable(lane)])), *along)
    body: list[Statement] = []
    offsets = fresh("offsets")
    if used:
        body.append(Let(offsets, Named("auto"), call("column_offsets", Word("tile"), variable(first))))

    def place(name: str) -> Expr:
        return Local(offsets, Weak.INT, number(rows[name].operand), "at")

    read_here = _used(_read_values(loop.body), loop.index)
    for name in used:
        types = (COUNT,)
        if rows[name].written:
            read = name in read_here
            whole = (ref(name), place(name)) if read else (ref(name),)
            body.append(Var(packs[name], Named("auto"), call("load_pack" if read else "new_pack", *whole, types=types)))
        else:
            body.append(Let(packs[name], Named("auto"), call("load_pack", ref(name), place(name), types=types)))
    body.append(Loop(How.UNROLLED, lane, number(0), Word(COUNT), along))
    body += [Do(call("store_pack", ref(n), place(n), ref(packs[n]), types=(COUNT,))) for n in used if rows[n].written]
    yield replace(loop, index=first, high=packed, step=Word(COUNT), body=tuple(body))
    yield replace(loop, low=packed, body=_at_offsets(loop, {n: rows[n].operand for n in used}, fresh("offsets")))


def _at_offsets(loop: Loop, operands: Mapping[str, int], offsets: str) -> Body:
    """Return the body of a loop in which elements of rows are found by the offsets of the point, which all operands have once."""
    if not operands:
        return loop.body
    index = variable(loop.index)

    def rule(e: Expr) -> Expr:
        if isinstance(e, Local) and e.name in operands and e.index == index:
            return replace(e, index=Local(offsets, Weak.INT, number(operands[e.name]), "at"))
        below = children(e)
        return with_children(e, tuple(map(rule, below))) if below else e

    found = Let(offsets, Named("auto"), call("column_offsets", Word("tile"), index))
    return (found, *map_values(loop.body, rule))


def _read_values(body: Body) -> Iterator[Expr]:
    """Yield every value in a body but the targets of stores."""
    for s in statements(body):
        yield from (s.value,) if isinstance(s, Store) else own_values(s)


def _used(values: Iterable[Expr], index: str) -> set[str]:
    """Return the rows whose element at an index values are made of."""
    at = variable(index)
    return {e.name for v in values for e in walk(v) if isinstance(e, Local) and e.index == at}


__all__ = ["COUNT", "PackedRow", "with_packs"]
