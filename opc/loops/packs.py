"""Packs: a loop along rows takes several neighbours at once from memory, and the rest of the points one by one.

The loop becomes two, over the columns that the call has in packs and over those behind them. The first goes in chunks, in which
each thread has a few packs, its pieces: it brings the pieces of all rows that are read before it computes with any, so that it
waits for memory once. What several loops read, and what they keep, stays in registers where a row is a single chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import Expr, children, walk, with_children
from opc.loops.nodes import (
    Body,
    Do,
    How,
    If,
    Let,
    Loop,
    PassGroup,
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

PIECES = "pieces"
"""The variable that holds how many packs of a row each thread has in a chunk."""

CHUNK = "chunk"
"""The variable that holds how many columns a chunk has."""

PLAIN = "Plain"
"""The parameter of a kernel's template that says whether its rows are all in packs, as one chunk each."""

_TILE = Word("tile")
_SHARED = (How.THREADS, How.GRID)


@dataclass(frozen=True, slots=True)
class PackedRow:
    """A row that a loop goes along: of which operand, whether it is written, and whether all rows of the stage share this one."""

    operand: int
    written: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Packed:
    """A body in packs, and how many packs a piece has in registers at once: of stored elements, and of computed ones."""

    body: Body
    stored: int
    computed: int


def with_packs(body: Body, rows: Mapping[str, PackedRow], kept: Mapping[str, ValueType], fresh: Callable[[str], str]) -> Packed:
    """Return a body whose loops over points take packs of the rows that pointers are to, and single points at their offsets.

    `kept` are the arrays of each row's own in which loops keep what they compute for those after them.
    """
    packs = _Packs(rows, kept, fresh)
    found = packs.body(body)
    return Packed(found, len(packs.held) + packs.most, len(packs.kept))


class _Packs:
    def __init__(self, rows: Mapping[str, PackedRow], kept: Mapping[str, ValueType], fresh: Callable[[str], str]) -> None:
        self.rows, self.fresh = rows, fresh
        self.kept = {name: (fresh(_word(name, "_kept") + "_held"), kind) for name, kind in kept.items()}
        self.held: dict[str, str] = {}
        """The pieces of rows that several loops read."""
        self.loaded: set[str] = set()
        """Those of which a loop before this one has brought the only chunk."""
        self.most = 0
        """How many rows one loop reads for itself alone."""
        self.certain = True
        """Whether what is made runs in each row."""

    def body(self, body: Body) -> Body:
        """Return a body in packs."""
        found: list[Statement] = []
        for s in body:
            if isinstance(s, Loop) and s.how in _SHARED:
                found += self.loop(s)
            elif isinstance(s, Loop) and s.how is How.TEAMS:
                found.append(replace(s, body=self.row(s.body)))
            else:
                before, self.certain = self.certain, self.certain and not isinstance(s, If)
                found.append(with_bodies(s, tuple(map(self.body, bodies(s)))))
                self.certain = before
        return tuple(found)

    def row(self, body: Body) -> Body:
        """Return the body of a loop over rows: pointers, and passes. What is held is declared between them."""
        loops = [s for s in statements(body) if isinstance(s, Loop) and s.how in _SHARED]
        reads = [self._read(s) for s in loops]
        self.held = {
            name: self.fresh(_word(name, "_row") + "_held")
            for name, row in self.rows.items()
            if not row.shared and sum(name in names for names in reads) > 1
        }
        first = next((n for n, s in enumerate(body) if isinstance(s, PassGroup)), len(body))
        held = [Var(h, Named("auto"), call("new_pieces", ref(name), types=(COUNT, PIECES))) for name, h in self.held.items()]
        held += [Var(h, Named("auto"), call("new_values", types=(kind, COUNT, PIECES))) for h, kind in self.kept.values()]
        return (*body[:first], *held, *self.body(body[first:]))

    def loop(self, loop: Loop) -> Iterator[Statement]:
        """Yield the two loops."""
        # Where no row is used, points go to the same threads all the same: each keeps values for itself.
        at_index = _used(values_of(loop.body), loop.index)
        used = [name for name in self.rows if name in at_index]
        kept = {name: self.kept[name][0] for name in self.kept if name in at_index}
        base, piece, first, lane = (self.fresh(n) for n in ("base", "piece", "first", "lane"))
        packs = {name: self.fresh(_word(name, "_row") + "_pack") for name in used}
        packs |= {name: self.fresh(_word(name, "_kept") + "_pack") for name in kept}
        # Rows of packs have numbers of 32 bits for columns, points of a grid have not.
        along = loop.how is How.THREADS
        column = "int32_t" if along else "int64_t"
        types, at = (COUNT, PIECES, column), (_TILE, variable(base))
        ahead: list[Statement] = []
        inside: list[Statement] = []
        spread: list[Statement] = []
        offsets = {n: call("pack_offset", _TILE, number(self.rows[n].operand), ref(n), variable(first)) for n in used}
        own = 0
        for name in self._read(loop):
            if self.rows[name].shared:
                # It is near, in a cache: registers would hold it for too long.
                near = self.fresh(_word(name, "_row") + "_near")
                inside.append(Let(near, Named("auto"), call("load_raw", ref(name), offsets[name], types=(COUNT,))))
                spread.append(Let(packs[name], Named("auto"), call("spread", ref(name), ref(near), types=(COUNT,))))
                continue
            source = (ref(name), number(self.rows[name].operand))
            if name in self.held:
                pieces = self.held[name]
                bring = "reload_pieces" if name in self.loaded else "load_pieces"
                ahead.append(Do(call(bring, *at, *source, ref(pieces), types=types)))
                if self.certain:
                    self.loaded.add(name)
            else:
                own, pieces = own + 1, self.fresh(_word(name, "_row") + "_pieces")
                ahead.append(Let(pieces, Named("auto"), call("read_pieces", *at, *source, types=types)))
            own_piece = Local(pieces, Weak.INT, variable(piece))
            spread.append(Let(packs[name], Named("auto"), call("spread", ref(name), own_piece, types=(COUNT,))))
        inside += spread
        self.most = max(self.most, own)
        stores = {s.target.name for s in statements(loop.body) if isinstance(s, Store) and isinstance(s.target, Local)}
        for name, pieces in kept.items():
            if name not in stores:
                ahead.append(Do(call("recall_pieces", *at, ref(name), ref(pieces), types=types)))
            inside.append(Var(packs[name], Named("auto &"), Local(pieces, Weak.INT, variable(piece))))
        read_here = _used(_read_values(loop.body), loop.index)
        written = [name for name in used if self.rows[name].written]
        for name in written:
            old = call("load_pack", ref(name), offsets[name], types=(COUNT,))
            new = call("new_pack", ref(name), types=(COUNT,))
            inside.append(Var(packs[name], Named("auto"), old if name in read_here else new))
        inside.append(Loop(How.UNROLLED, lane, number(0), Word(COUNT), self._along(loop, packs, first, lane)))
        inside += [Do(call("store_pack", ref(n), offsets[n], ref(packs[n]), types=(COUNT,))) for n in written]
        inside += [
            Do(call("keep_pack", _TILE, ref(name), variable(first), ref(packs[name]), types=(COUNT, PIECES)))
            for name in kept
            if name in stores
        ]
        place = Let(first, Named(column), call("column_of_piece", *at, variable(piece), types=(COUNT, column)))
        has = call("has_pack", _TILE, variable(first), type=DType.BOOL)
        one = Loop(How.UNROLLED, piece, number(0), Word(PIECES), (place, If(has, tuple(inside))))
        end = call("end_of_chunks", _TILE) if along else Member("@tile", "packed")
        yield Loop(How.SERIAL if along else How.TEAMS, base, number(0), end, (*ahead, one), step=Word(CHUNK))
        operands = {n: self.rows[n].operand for n in used}
        rest = replace(loop, low=Member("@tile", "packed"), body=_at_offsets(loop, operands, self.fresh("offsets")))
        yield If(call("has_rest", _TILE, type=DType.BOOL), (rest,))

    def _along(self, loop: Loop, packs: Mapping[str, str], first: str, lane: str) -> Body:
        """Return what a loop does at one lane of a pack."""

        def rule(e: Expr) -> Expr:
            if isinstance(e, Local) and e.name in packs and e.index == variable(loop.index):
                return replace(e, name=packs[e.name], index=variable(lane))
            below = children(e)
            return with_children(e, tuple(map(rule, below))) if below else e

        along = map_values(loop.body, rule)
        if any(loop.index in variables(v) for v in values_of(along)):
            along = (Let(loop.index, Weak.INT, sum_of([variable(first), variable(lane)])), *along)
        return along

    def _read(self, loop: Loop) -> list[str]:
        """Return the rows that a loop reads and nothing writes."""
        found = _used(values_of(loop.body), loop.index)
        return [name for name, row in self.rows.items() if name in found and not row.written]


def _word(name: str, ending: str) -> str:
    return name.partition("#")[0].removesuffix(ending)


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

    found = Let(offsets, Named("auto"), call("column_offsets", _TILE, index))
    return (found, *map_values(loop.body, rule))


def _read_values(body: Body) -> Iterator[Expr]:
    """Yield every value in a body but the targets of stores."""
    for s in statements(body):
        yield from (s.value,) if isinstance(s, Store) else own_values(s)


def _used(values: Iterable[Expr], index: str) -> set[str]:
    """Return the rows whose element at an index values are made of."""
    at = variable(index)
    found = [v for v in values if index in variables(v)]
    return {e.name for v in found for e in walk(v) if isinstance(e, Local) and e.index == at}


__all__ = ["CHUNK", "COUNT", "PIECES", "PLAIN", "Packed", "PackedRow", "with_packs"]
