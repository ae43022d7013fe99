"""Stages of points and rows, as steps on whole tensors.

A stage's passes run one after the other along each row. On whole tensors a pass is nothing of its own: what it accumulates is a
reduction, what it stores a result, and a value that several of them use is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opc.ir.expr import Call, Expr, GroupIndex, GroupRef, IndexValue, Read, operands_read, walk
from opc.ir.op import Op
from opc.lower.loop_ir import Action, IndexLoop, Loop, RowAccumulate, RowLet, RowStage, RowStore
from opc.lower.poplar.needs import Needs
from opc.lower.poplar.nodes import Let, Map, Reduce, Refuse, Step, Store, TensorStage, View
from opc.lower.poplar.views import along, check_value, declared_loops, element_type


def row_steps(op: Op, stage: RowStage, needs: Needs) -> TensorStage:
    """Return the steps of a stage.

    Raises:
        UnsupportedForm: when expressions can't compute one of its values.
    """
    return _Rows(op, stage, needs).steps()


class _Rows:
    def __init__(self, op: Op, stage: RowStage, needs: Needs) -> None:
        self.op, self.stage, self.needs = op, stage, needs
        self.loops = _ordered(stage)
        self.row = tuple(n for n, loop in enumerate(self.loops) if loop in stage.row)
        self.products = {o.name: o for o in stage.products}
        self.actions = tuple(_actions(stage))
        self.once = {a.name for p in stage.passes for a in p.prologue if isinstance(a, RowStore)}
        self.uses = Counter(name for a in self.actions for name in operands_read(a.value))

    def steps(self) -> TensorStage:
        """Return the stage."""
        own = {a.name for a in self.actions if not isinstance(a, RowStore)}
        steps: list[Step] = [*self._refusals()]
        for action in self.actions:
            check_value(action.value)
            steps.append(self._step(action))
        read = frozenset[str]().union(*(operands_read(a.value) for a in self.actions)) - own
        views = tuple(
            View(o.name, o.name, along(declared_loops(self.op, o.name, o.loops), self.loops))
            for o in self.stage.operands
            if o.name in read
        )
        indices = dict.fromkeys(found for a in self.actions for found in self._indices(a.value))
        return TensorStage(self.stage.name, self.loops, views, tuple(indices), tuple(steps))

    def _indices(self, e: Expr) -> Iterator[tuple[str, int]]:
        """Yield the loops whose index a value uses as a number."""
        places = {_index_name(loop): n for n, loop in enumerate(self.loops)}
        for node in walk(e):
            if isinstance(node, GroupIndex):
                yield str(GroupRef(node.group)), places[str(GroupRef(node.group))]
            elif isinstance(node, IndexValue):
                yield from ((i, places[i]) for i in sorted(node.value.indices()))

    def _refusals(self) -> Iterator[Refuse]:
        for r in self.stage.refusals:
            users = Needs.outputs_behind(self.op, r.target)
            asked = tuple(dict.fromkeys(self._place(x) for x in r.asked))
            for loop in r.loops:
                place = self._place(loop)
                if place not in asked:
                    name = _index_name(loop)
                    yield Refuse(f"{self.op.name}: {r.kind} over {name} of nothing: its size is 0", (place,), asked, users)

    def _place(self, loop: Loop) -> int:
        return along((loop,), self.loops)[0].loop

    def _step(self, action: Action) -> Step:
        source, value = action.source, action.value
        products = self.stage.needed.get(action.name, frozenset(self.products))
        needed = self.needs.of(products)
        match action:
            case RowAccumulate():
                return Reduce(action.name, action.type, action.kind, value, self.row, source, needed)
            case RowStore():
                o = self.products[action.name]
                axes = along(declared_loops(self.op, o.name, o.loops), self.loops)
                target = View(o.name, o.name, axes)
                over: tuple[int, ...] = ()
                if o.reduction is not None:
                    # What is stored once a row has one point a row.
                    without = {a.loop for a in axes if a.own is None} | set(self.row if action.name in self.once else ())
                    over = tuple(n for n in range(len(self.loops)) if n not in without)
                return Store(target, element_type(o.type), value, source, o.reduction, over, self.needs.of((o.name,)))
            case RowLet() if not self._is_kept(action):
                return Let(action.name, action.type, value, source, needed)
            case _:
                return Map(action.name, action.type, value, source, needed)

    def _is_kept(self, action: RowLet) -> bool:
        """Whether a value is worth memory: several steps use it, and it is more than a choice of operands."""
        return self.uses[action.name] > 1 and any(isinstance(n, Call) for n in walk(action.value)) and not _is_fixed(action.value)


def _actions(stage: RowStage) -> Iterator[Action]:
    """Yield the actions of all passes, once each: later passes compute values of earlier ones again."""
    seen: set[tuple[bool, str]] = set()
    for p in stage.passes:
        for action in (*p.prologue, *p.body):
            key = isinstance(action, RowStore), action.name
            if key not in seen:
                seen.add(key)
                yield action


def _ordered(stage: RowStage) -> tuple[Loop, ...]:
    """Return the loops of a stage in the order of the axes of one of its tensors, so that this one needs no transposition."""
    every = (*stage.outer, *stage.row)
    best: tuple[Loop, ...] = ()
    for o in (*stage.products, *stage.operands):
        own = tuple(x for x in o.loops if x in every)
        if len(own) > len(best):
            best = own
    named = {x: x for x in every}
    return (*(x for x in every if x not in best), *(named[x] for x in best))


def _index_name(loop: Loop) -> str:
    return loop.index if isinstance(loop, IndexLoop) else str(loop)


def _is_fixed(e: Expr) -> bool:
    """Whether a call fixes a value."""
    return not any(isinstance(n, Read | GroupIndex) or (isinstance(n, IndexValue) and n.value.indices()) for n in walk(e))
