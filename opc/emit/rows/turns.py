"""What the passes of a row stage hand on to each other, and what one fetches for rows to come.

A stage of several passes takes short rows through a pass several at a time: `for` a few rows, one pass; for the same rows the
next. What a pass leaves of a row for later ones then stands in an array, one element a row. The second pass asks memory for the
row behind, which the first pass would else wait for: by then everything it needs of its own row is in the caches.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.dtypes import ValueType
from opc.ir.expr import Expr, reads
from opc.lower.loop_ir import Fold, Keep, Let, Pass, Put, RowStage
from opc.lower.rows.streams import puts

FETCHED = 4
"""The most rows that are fetched ahead: more streams than that the processor follows badly."""


def takes_turns(stage: RowStage) -> bool:
    """Whether rows of the stage may go through one pass before the next begins: a buffer of kept values holds one row."""
    return stage.whole_rows and sum(bool(p.body) for p in stage.passes) > 1 and not stage.keeps


def fetches_ahead(stage: RowStage, p: Pass) -> tuple[str, ...]:
    """Return the operands of which a pass fetches the rows to come: those that the pass before, the first, has read."""
    loops = [q for q in stage.passes if q.body]
    vector_by_vector = any(isinstance(a, Fold) for a in p.body) or (stage.streams and puts(p))
    if not takes_turns(stage) or p is not loops[1] or not vector_by_vector:
        return ()
    used = _read(loops[0])
    return tuple(o.name for o in stage.operands if o.along_row and not o.written and o.name in used)[:FETCHED]


def used_in(stage: RowStage, p: Pass) -> set[str]:
    """Return the operands whose rows or values a pass needs."""
    hosts = {a.name: a.host for q in stage.passes for a in q.body if isinstance(a, Keep) and a.host is not None}
    found = _read(p)
    found |= {hosts[name] for name in found if name in hosts}
    found |= {a.name for a in (*p.prologue, *p.body) if isinstance(a, Put)}
    return found | {a.host for a in p.body if isinstance(a, Keep) and a.host is not None}


def handed_on(stage: RowStage, p: Pass) -> Iterator[tuple[str, ValueType]]:
    """Yield the values of the row, with their types, that a pass makes and later ones use."""
    later = stage.passes[_position(stage, p) + 1 :]
    used = {name for q in later for name in _read(q)}
    yield from ((name, of) for name, of in _made(p) if name in used)


def handed_to(stage: RowStage, p: Pass) -> Iterator[tuple[str, ValueType]]:
    """Yield the values of the row, with their types, that a pass uses and earlier ones made."""
    used = _read(p)
    for q in stage.passes[: _position(stage, p)]:
        yield from ((name, of) for name, of in _made(q) if name in used)


def _made(p: Pass) -> Iterator[tuple[str, ValueType]]:
    yield from ((a.name, a.type) for a in p.prologue if isinstance(a, Let))
    yield from ((a.name, a.type) for a in p.body if isinstance(a, Fold))


def _read(p: Pass) -> set[str]:
    values: list[Expr] = [a.value for a in (*p.prologue, *p.body)]
    return {r.operand for e in (*values, *(() if p.apart is None else (p.apart,))) for r in reads(e)}


def _position(stage: RowStage, p: Pass) -> int:
    return next(i for i, q in enumerate(stage.passes) if q is p)
