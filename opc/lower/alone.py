"""What is found of a statement by itself, once for all ops that declare the same and name the same indices.

Passes change few statements of an op, and the cases of its attributes differ in few. What lowering asks of one statement at a
time has mostly been asked before, with other statements around.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from opc.ir.expr import NUMBER, Const, Expr, children, traits
from opc.ir.node import remembered
from opc.ir.op import Assign, Op
from opc.transform.indices import index_names

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Answers = dict[tuple[object, ...], Any]


@functools.lru_cache(maxsize=64)
def _answers(*declared: object) -> _Answers:
    """Return what has been found of statements where all this is declared."""
    return {}


@remembered("_alone")
def _found(op: Op) -> _Answers:
    operands = op.inputs, op.outputs, op.temporaries
    rules = op.dims, op.require, op.broadcast, op.scatter, op.ties, op.derivation
    return _answers(op.name, op.types, op.attributes, operands, rules, index_names(op))


@remembered("_literals")
def literals(e: Expr) -> tuple[str, ...]:
    """Return the numbers in `e` as they are written: those of other types, and zeros of either sign, compare equal."""
    if not traits(e) & NUMBER:
        return ()
    return (repr(e.value),) if isinstance(e, Const) else tuple([text for c in children(e) for text in literals(c)])


def of_statement(compute: Callable[Concatenate[Op, Assign, _P], _R]) -> Callable[Concatenate[Op, Assign, _P], _R]:
    """Have a function of an op's declarations, of one statement and of what else it is asked compute its answer once."""

    @functools.wraps(compute)
    def ask(op: Op, assign: Assign, /, *more: _P.args, **named: _P.kwargs) -> _R:
        found = _found(op)
        key = compute, assign, literals(assign.value), more, tuple(named.items())
        if key not in found:
            found[key] = compute(op, assign, *more, **named)
        answer: _R = found[key]
        return answer

    return ask
