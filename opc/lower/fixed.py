"""Values that a call fixes, such as `rsqrt(D) if scale == 0 else scale`: computed once a row instead of at each point."""

from __future__ import annotations

from dataclasses import replace

from opc.ir.expr import Call, Cast, Expr, IndexValue, Place, Read, Reduce, Select, StrConst, children, walk, with_children
from opc.ir.op import Assign
from opc.lower.loop_ir import Fold, Keep, Let, Pass, Put, RowStage
from opc.transform.indices import Namer


def with_fixed_values(stage: RowStage, taken: set[str]) -> RowStage:
    """Return a row stage whose loops read what is the same at all points from values computed ahead of them.

    `taken` are names the values must not have.
    """
    names = {a.name for p in stage.passes for a in (*p.prologue, *p.body)} | {o.name for o in stage.operands}
    hoister = _Hoister(Namer(taken | names))
    return replace(stage, passes=tuple(hoister.run(p) for p in stage.passes))


class _Hoister:
    def __init__(self, namer: Namer) -> None:
        self.namer = namer
        self.values: dict[Expr, Read] = {}
        self.lets: list[Let] = []

    def run(self, p: Pass) -> Pass:
        """Return a pass with such values among its prologue."""
        self.lets, self.values = [], {}
        body = tuple(self._action(a) for a in p.body)
        return replace(p, prologue=(*p.prologue, *self.lets), body=body)

    def _action(self, action: Let | Keep | Fold | Put) -> Let | Keep | Fold | Put:
        return replace(action, value=self._value(action.value, action.source))

    def _value(self, e: Expr, source: Assign) -> Expr:
        if _is_fixed(e) and isinstance(e, Call | Select | Cast) and _costs(e):
            if e not in self.values:
                name = self.namer.fresh("fixed")
                self.lets.append(Let(name, e.type, e, source))
                self.values[e] = Read(name, (), e.type, span=e.span)
            return self.values[e]
        return with_children(e, tuple(self._value(c, source) for c in children(e)))


def _is_fixed(e: Expr) -> bool:
    """Whether an expression is the same at all points of a call."""
    return not any(isinstance(n, Read | Reduce | Place) or (isinstance(n, IndexValue) and n.value.indices()) for n in walk(e))


def _costs(e: Expr) -> bool:
    """Whether a compiler would not find the value by itself: functions and choices, other than by name."""
    nodes = list(walk(e))
    cheap = ("neg", "mul", "add", "sub", "not", "and", "or")
    costly = any(isinstance(n, Select) or (isinstance(n, Call) and n.fn not in cheap) for n in nodes)
    return costly and not any(isinstance(n, StrConst) for n in nodes)
