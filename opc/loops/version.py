"""Versioning: loops with copies for what a call decides, so that inside of each it is a constant.

The step by which reads advance along the vector axis is 1 or 2 in most calls, and the type that a gathered operand is stored in
is one of few: tested once ahead of the loop, it leaves a loop that vectorises. So is whether an operand has no gaps, where a read
of it goes by one position (`opc.lower.dense`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opc.ir.affine import Affine
from opc.ir.expr import Call, Expr, IndexValue, walk
from opc.ir.expr import rewrite as rewrite_value
from opc.ir.function import DEAR
from opc.ir.functions import FUNCTIONS
from opc.loops.nodes import (
    Body,
    CallWithBody,
    How,
    If,
    Let,
    Loop,
    Refuse,
    Statement,
    Var,
    bodies,
    map_values,
    statements,
    values_of,
    with_bodies,
)
from opc.loops.values import Block, IntegerChoice, Load, Product, call, ref, variable, variables
from opc.records import replace


def version(body: Body, fresh: Callable[[str], str], often: bool) -> Body:
    """Return a body with copies of its vector loops.

    `fresh` names new variables; where a function does not run `often`, copies for types are not worth the time to compile them.
    """
    found: list[Statement] = []
    for s in body:
        choice = _choice(s) if isinstance(s, Loop) and s.how is How.VECTOR else None
        if isinstance(s, Loop) and choice is not None:
            found.append(_unswitched(s, choice))
        elif isinstance(s, Loop) and s.how is How.VECTOR and not s.short:
            found.append(_versions(s, fresh, often))
        else:
            found.append(with_bodies(s, tuple(version(b, fresh, often) for b in bodies(s))))
    return tuple(found)


def _choice(loop: Loop) -> IntegerChoice | None:
    """Return a choice between two offsets that is the same at all points of a loop."""
    own = {loop.index, *(s.name for s in _all_statements(loop) if isinstance(s, Let | Var))}
    found = (n for e in _loads(loop) for n in walk(e.offset) if isinstance(n, IntegerChoice))
    return next((n for n in found if own.isdisjoint(variables(n.cond))), None)


def _unswitched(loop: Loop, choice: IntegerChoice) -> Statement:
    """Return a copy of a loop for each side of a choice."""

    def side(then: bool) -> Body:
        def rule(e: Expr) -> Expr:
            return (e.then if then else e.other) if isinstance(e, IntegerChoice) and e.cond == choice.cond else e

        return map_values((loop,), lambda e: rewrite_value(e, rule))

    return If(choice.cond, side(True), side(False))


def _versions(loop: Loop, fresh: Callable[[str], str], often: bool) -> Statement:
    loads = list(_loads(loop))
    steps = {step for e in loads for step in _steps(e)}
    if len(steps) == 1:
        (step,) = steps
        name = fresh("step")

        def named(e: Expr) -> Expr:
            if isinstance(e, Product) and e.factors[1] == IndexValue(step):
                return replace(e, factors=(e.factors[0], variable(name)))
            return e

        (inner,) = map_values((loop,), lambda e: rewrite_value(e, named))
        return CallWithBody(call("with_step", IndexValue(step)), (("auto", name),), (inner,))
    stored = {e.view for e in loads if e.stored}
    if len(stored) == 1 and often:
        (view,) = stored
        # A loop that may have to report a place is no vector loop. Where it takes long, to ask for the type each time does not.
        refuses = any(isinstance(s, Refuse) for s in _all_statements(loop))
        if refuses and any(isinstance(e, Call) and FUNCTIONS[e.fn].cost == DEAR for v in values_of(loop.body) for e in walk(v)):
            return loop
        how = How.UNROLLED if refuses else loop.how
        return CallWithBody(call("with_stored", ref(view)), (("auto", view),), (replace(loop, how=how),), True)
    return loop


def _loads(loop: Loop) -> Iterator[Load]:
    yield from (n for v in values_of(loop.body) for n in walk(v) if isinstance(n, Load))


def _steps(e: Load) -> Iterator[Affine]:
    """Yield the steps along the vector axis that a call decides, of an operand's contiguous axis."""
    for p in walk(e.along) if e.along is not None else ():
        if isinstance(p, Product) and isinstance(p.factors[1], IndexValue):
            step = p.factors[1].value
            if step.constant is None and not step.indices():
                yield step


def _all_statements(loop: Loop) -> Iterator[Statement]:
    yield from statements(loop.body)
    for v in values_of(loop.body):
        for n in walk(v):
            if isinstance(n, Block):
                yield from statements(n.body)
