"""Loop-invariant values, such as `rsqrt(D) if scale == 0 else scale`: hoisted out of the loops along a row."""

from __future__ import annotations

from collections.abc import Set

from opc.ir.expr import (
    READ,
    VARYING,
    Call,
    Cast,
    Expr,
    Read,
    Select,
    StrConst,
    children,
    reads,
    traits,
    walk,
    with_children,
)
from opc.ir.op import Assign
from opc.lower.loop_ir import Pass, RowAccumulate, RowBuffer, RowLet, RowStage, RowStore
from opc.records import replace
from opc.transform.indices import Namer


def with_hoisted_values(stage: RowStage, taken: Set[str]) -> RowStage:
    """Return a row stage whose loops read what is the same at all points from values computed ahead of them.

    `taken` are names the values must not have.
    """
    names = {a.name for p in stage.passes for a in (*p.prologue, *p.body)} | {o.name for o in stage.operands}
    passes = _RowHoister(Namer(taken | names), frozenset()).run(stage.passes)
    if stage.once is None:
        return replace(stage, passes=passes)
    invariant = frozenset(o.name for o in stage.once.operands if not o.along_row and not o.written)
    return replace(
        stage, passes=passes, once=replace(stage.once, passes=_RowHoister(Namer(taken | names), invariant).run(stage.once.passes))
    )


class _RowHoister:
    def __init__(self, namer: Namer, invariant: frozenset[str]) -> None:
        self.namer, self.invariant = namer, invariant
        self.values: dict[Expr, Read] = {}
        self.lets: list[RowLet] = []

    def run(self, passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
        """Return passes with such values, and those of operands `invariant` along the row, in their prologues."""
        return tuple(self._pass(p) for p in passes)

    def _pass(self, p: Pass) -> Pass:
        self.lets, self.values = [], {}
        body = tuple(self._action(a) for a in p.body)
        return replace(p, prologue=(*p.prologue, *self.lets), body=body)

    def _action(self, action: RowLet | RowBuffer | RowAccumulate | RowStore) -> RowLet | RowBuffer | RowAccumulate | RowStore:
        return replace(action, value=self._value(action.value, action.source))

    def _value(self, e: Expr, source: Assign) -> Expr:
        if self._is_invariant(e) and isinstance(e, Call | Select | Cast) and _costs(e):
            if e not in self.values:
                name = self.namer.fresh("hoisted")
                self.lets.append(RowLet(name, e.type, e, source))
                self.values[e] = Read(name, (), e.type, span=e.span)
            return self.values[e]
        return with_children(e, tuple(self._value(c, source) for c in children(e)))

    def _is_invariant(self, e: Expr) -> bool:
        """Whether an expression is the same at all points of a call, or of a row."""
        return not traits(e) & (VARYING & ~READ) and all(r.operand in self.invariant for r in reads(e))


def _costs(e: Expr) -> bool:
    """Whether a compiler would not find the value by itself: functions and choices, other than by name."""
    nodes = list(walk(e))
    cheap = ("neg", "mul", "add", "sub", "not", "and", "or")
    costly = any(isinstance(n, Select) or (isinstance(n, Call) and n.fn not in cheap) for n in nodes)
    return costly and not any(isinstance(n, StrConst) for n in nodes)
