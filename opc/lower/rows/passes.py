"""The loops over one row: steps that share points and rows, fused into as few passes as their dependences allow.

A value waits for the reductions it depends on, so its level is the number of reductions in a row before it; all values of one
level share a pass. A value that several passes use is kept in a row buffer when computing it costs more than loading it.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.expr import Call, Expr, Read, reads, walk
from opc.ir.function import DEAR
from opc.ir.functions import FUNCTIONS
from opc.lower.loop_ir import Action, Loop, Pass, RowAccumulate, RowBuffer, RowLet, RowStore, Step
from opc.records import replace
from opc.transform.indices import with_operands

EXPENSIVE = frozenset(name for name, row in FUNCTIONS.items() if row.cost == DEAR)
"""Functions that cost more than a load from cache."""


def build_passes(
    body: list[Step],
    reductions: set[str],
    row: frozenset[Loop],
    stores: list[tuple[str, Step]],
    memory: Mapping[str, str],
    overwriting: frozenset[str] = frozenset(),
) -> tuple[Pass, ...]:
    """Return the passes that compute the steps of `body` and write `stores`.

    `reductions` are the steps that reduce along the row; other reductions of `body` are sums over points, which only their put
    carries out. `memory` names the temporaries that hold steps of earlier stages. Stores `overwriting` take the memory of inputs:
    they are written in the last pass, when nothing reads these any more.
    """
    return _PassBuilder(body, reductions, row, stores, memory, overwriting).run()


class _PassBuilder:
    def __init__(
        self,
        body: list[Step],
        reductions: set[str],
        row: frozenset[Loop],
        stores: list[tuple[str, Step]],
        memory: Mapping[str, str],
        overwriting: frozenset[str],
    ) -> None:
        self.overwriting = overwriting
        self.body, self.reductions, self.row, self.stores = body, reductions, row, stores
        self.step = {s.target: s for s in body}
        self.memory = memory
        self.read_here = {n for s in body for n in self._reads(s)}
        self.level: dict[str, int] = {}
        for s in body:
            after = [self.level[n] + (n in reductions) for n in self._reads(s)]
            self.level[s.target] = max(after, default=0)
        self.end = max([*(self.level[s.target] for s in body), *(self.level[n] for n in reductions)], default=0)
        """The pass that nothing is computed behind."""

    def _reads(self, s: Step) -> list[str]:
        return list(dict.fromkeys(r.operand for r in reads(s.value) if r.operand in self.step))

    def _along_row(self, s: Step) -> bool:
        """Whether the step's value at a point varies along the row."""
        return bool(frozenset(s.domain) & self.row) or s.reduction is not None

    def _is_value(self, name: str) -> bool:
        """Whether a step is a value of each point of the row, which can be computed anew."""
        return self.step[name].reduction is None and self._along_row(self.step[name])

    def run(self) -> tuple[Pass, ...]:
        uses = self._uses()
        keeps: set[str] = set()
        for s in self.body:
            if len(uses.get(s.target, ())) > 1 and self._expensive(s.target, keeps):
                keeps.add(s.target)
        # A kept value is computed where it is first used; what only it needed is not computed again later.
        uses = self._uses(keeps)
        last = max(
            [
                *(self._write_level(s) for _, s in self.stores),
                *(self.level[n] for n in self.reductions),
                *(p for passes in uses.values() for p in passes),
            ],
            default=0,
        )
        passes = [self._pass(p, uses, keeps) for p in range(last + 1)]
        return tuple(_hosted(passes, {n: uses[n] for n in keeps}, self._hosts()))

    def _hosts(self) -> dict[str, Step]:
        """Return the products a kept value may be stored in until they are written: rows of outputs."""
        own = [(name, s) for name, s in self.stores if s.target not in self.overwriting]
        return {name: s for name, s in own if s.reduction is None and self._along_row(s)}

    def _write_level(self, s: Step) -> int:
        """The pass a product is written in; the result of a reduction is there in the next pass's prologue."""
        if s.target in self.overwriting:
            return self.end + (s.target in self.reductions)
        return self.level[s.target] + (s.target in self.reductions)

    def _uses(self, keeps: set[str] | frozenset[str] = frozenset()) -> dict[str, list[int]]:
        """Return the passes in which each value of the row is used, from the roots down."""
        uses: dict[str, set[int]] = {s.target: set() for s in self.body if self._is_value(s.target)}
        for name in self.reductions:
            if name in self.step:
                self._mark(name, self.level[name], uses, keeps)
        for _, s in self.stores:
            if s.target not in self.reductions and self._along_row(s):
                if s.reduction is None:
                    uses[s.target].add(self._write_level(s))
                self._mark(s.target, self._write_level(s), uses, keeps)
        for s in reversed(self.body):
            if s.target in uses:
                passes = sorted(uses[s.target])
                for p in passes[:1] if s.target in keeps else passes:
                    self._mark(s.target, p, uses, keeps)
        return {n: sorted(u) for n, u in uses.items() if u}

    def _mark(self, name: str, at: int, uses: dict[str, set[int]], keeps: set[str] | frozenset[str]) -> None:
        for n in self._reads(self.step[name]):
            if n in uses:
                uses[n].add(at)

    def _expensive(self, name: str, keeps: set[str]) -> bool:
        """Whether computing a value from what is kept costs more than a load."""
        found = any(isinstance(e, Call) and e.fn in EXPENSIVE for e in walk(self.step[name].value))
        reads = (n for n in self._reads(self.step[name]) if n not in keeps)
        return found or any(self._is_value(n) and self._expensive(n, keeps) for n in reads)

    def _pass(self, at: int, uses: Mapping[str, list[int]], keeps: set[str]) -> Pass:
        prologue: list[RowLet | RowStore] = []
        body: list[Action] = []
        writes: list[Action] = []
        value_of = {s.target: self._value(s.value) for s in self.body}
        for s in self.body:
            value = value_of[s.target]
            if not self._along_row(s) and self.level[s.target] == at:
                prologue.append(RowLet(s.target, s.type, value, s.source))
            elif s.target in self.reductions and self.level[s.target] == at and s.reduction is not None:
                body.append(RowAccumulate(s.target, s.reduction.kind, s.type, value, s.source))
            elif at in uses.get(s.target, ()) and not self._is_only_written(s, uses[s.target]):
                if s.target in keeps and uses[s.target][0] == at:
                    body.append(RowBuffer(s.target, s.type, value, s.source))
                elif s.target not in keeps:
                    body.append(RowLet(s.target, s.type, value, s.source))
        for name, s in self.stores:
            if self._write_level(s) != at:
                continue
            if s.reduction is not None and s.target not in self.reductions:
                writes.append(RowStore(name, s.type, value_of[s.target], s.source))
            elif self._along_row(s) and s.target not in self.reductions:
                only = self._is_only_written(s, uses[s.target])
                writes.append(RowStore(name, s.type, value_of[s.target] if only else Read(s.target, (), s.type), s.source))
            else:
                prologue.append(RowStore(name, s.type, Read(s.target, (), s.type), s.source))
        return Pass(tuple(prologue), (*body, *writes))

    def _is_only_written(self, s: Step, uses: list[int]) -> bool:
        """Whether a value is written once and used for nothing else, so that it needs no name."""
        return len(uses) == 1 and s.target not in self.read_here and sum(t is s for _, t in self.stores) == 1

    def _value(self, e: Expr) -> Expr:
        """Return `e` with reads of earlier stages' steps turned to their temporaries."""
        return with_operands(e, {name: memory for name, memory in self.memory.items() if name not in self.step})


def _hosted(passes: list[Pass], uses: Mapping[str, list[int]], hosts: Mapping[str, Step]) -> list[Pass]:
    """Let each kept value live in the row of a product that is written last of all that reads it."""
    taken: dict[str, str] = {}
    for name, where in uses.items():
        last = passes[where[-1]].body
        readers = [a for a in last if any(r.operand == name for r in reads(a.value))]
        kind = next(a.type for p in passes for a in p.body if isinstance(a, RowBuffer) and a.name == name)
        host = readers[-1] if readers and isinstance(readers[-1], RowStore) else None
        if host is not None and host.name in hosts and hosts[host.name].type == kind and host.name not in taken.values():
            taken[name] = host.name
    return [
        replace(p, body=tuple(replace(a, host=taken.get(a.name)) if isinstance(a, RowBuffer) else a for a in p.body))
        for p in passes
    ]
