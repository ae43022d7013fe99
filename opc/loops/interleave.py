"""Row interleaving: several rows go through a pass before the next pass begins.

A loop over rows, each of which goes through several passes, becomes one over blocks of rows, in it a loop over the rows of the
block for each pass: strip-mining, loop fission, and arrays for what a pass leaves of a row for later ones (scalar expansion).
What finds a row is computed again in each loop. The second pass prefetches the row one block behind, which the first pass
would else wait for: by then everything it needs of its own row is in the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import Expr, IndexValue
from opc.loops.nodes import (
    Body,
    Buffer,
    Do,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Statement,
    Store,
    Var,
    own_values,
    values_of,
)
from opc.loops.values import Intrinsic, Local, Pointer, Sum, call, ref, variable, variables
from opc.records import replace

MOST_FETCHED = 4
"""The most rows that are fetched ahead: more streams than that the processor follows badly."""


def interleave(loop: Loop, fresh: Callable[[str], str], fetch: bool) -> Body:
    """Return a loop over rows, whose body is pointers and then groups, interleaved.

    `fresh` names new variables. With `fetch` the second pass along the row fetches what the first reads of rows to come.
    """
    return _Interleaver(loop, fresh).run(fetch)


class _Interleaver:
    def __init__(self, loop: Loop, fresh: Callable[[str], str]) -> None:
        self.loop, self.fresh = loop, fresh
        self.before = [s for s in loop.body if isinstance(s, Let)]
        self.groups = [s for s in loop.body if isinstance(s, PassGroup)]
        self.made = [dict(_made(g)) for g in self.groups]
        self.used = [set(_used(g.body)) for g in self.groups]

    def run(self, fetch: bool) -> Body:
        """Return the loops."""
        interleaved, first, end = (self.fresh(n) for n in ("interleaved", "first", "end"))
        arrays: dict[str, tuple[str, ValueType]] = {}
        for n, made in enumerate(self.made):
            later = set().union(*self.used[n + 1 :])
            arrays |= {name: (self.fresh(f"{name}_of"), of) for name, of in made.items() if name in later}
        at = IndexValue(Affine.of(Index(self.loop.index)) - Index(first))
        body: list[Statement] = [
            Let(end, Weak.INT, call("minimum", Sum((variable(first), variable(interleaved))), self.loop.high))
        ]
        body += [Buffer(array, of, "opc::max_interleaved_rows") for array, of in arrays.values()]
        second = [n for n, g in enumerate(self.groups) if any(isinstance(s, Loop) for s in g.body)][1]
        for n, g in enumerate(self.groups):
            known = {name for made in self.made[:n] for name in made}
            inner: list[Statement] = [*self._rematerialised(self.used[n])]
            handed = [name for name in arrays if name in known and name in self.used[n]]
            inner += [Let(name, arrays[name][1], Local(arrays[name][0], arrays[name][1], at)) for name in handed]
            if fetch and n == second:
                ahead, g = self._fetching(g, interleaved)
                inner += ahead
            inner.append(g)
            passed = [name for name in self.made[n] if name in arrays]
            inner += [Store(Local(*arrays[name], at), Local(name, arrays[name][1])) for name in passed]
            body.append(replace(self.loop, low=variable(first), high=variable(end), body=tuple(inner)))
        blocks = replace(self.loop, index=first, body=tuple(body), step=variable(interleaved))
        return Let(interleaved, Weak.INT, call("interleaved_rows", _columns(self.groups))), blocks

    def _rematerialised(self, used: set[str]) -> list[Statement]:
        """Return what finds the rows and values that some statements use."""
        kept: list[Statement] = []
        wanted = set(used)
        for s in reversed(self.before):
            if s.name in wanted:
                wanted |= {v for value in own_values(s) for v in variables(value)}
                kept.insert(0, s)
        return kept

    def _fetching(self, g: PassGroup, interleaved: str) -> tuple[list[Statement], PassGroup]:
        """Return what fetches the rows of later blocks that the first pass reads, and a pass that calls it."""
        first = next(s for g in self.groups for s in g.body if isinstance(s, Loop))
        read = set(_used((first,)))
        rows = [s for s in self.before if s.name in read and isinstance(s.kind, Pointer) and s.kind.constant][:MOST_FETCHED]
        if not rows or not any(isinstance(s, Loop) for s in g.body):
            return [], g
        lines: list[Statement] = []
        fetches: list[Statement] = []
        index = self.fresh(first.index)
        for s in rows:
            assert isinstance(s.value, Intrinsic), "a pointer to a row is found by the runtime"
            name = self.fresh(f"{s.name.removesuffix('#0').removesuffix('_row')}_ahead")
            lines.append(Let(name, s.kind, replace(s.value, name="row_ahead", args=(*s.value.args, variable(interleaved)))))
            fetches.append(Do(call("prefetch", Sum((ref(name), variable(index))))))
        ahead = self.fresh("ahead")
        lines.append(LocalFunction(ahead, (("int64_t", index),), tuple(fetches), inlined=True))
        body = tuple(replace(s, ahead=ahead) if isinstance(s, Loop) else s for s in g.body)
        return lines, PassGroup(body)


def _made(g: PassGroup) -> Iterator[tuple[str, ValueType]]:
    """Yield the values of the row that a pass makes, with their types."""
    for s in g.body:
        if isinstance(s, Let | Var) and not isinstance(s.kind, Pointer):
            yield s.name, s.kind  # type: ignore[misc]  # values of the row have value types


def _used(body: Body) -> Iterator[str]:
    for v in values_of(body):
        yield from variables(v)


def _columns(groups: list[PassGroup]) -> Expr:
    """Return the number of points of a row."""
    return next(s.high for g in groups for s in g.body if isinstance(s, Loop))
