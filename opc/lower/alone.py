"""What is found of a statement by itself, once for all ops in which it stands.

Passes change few statements of an op, the cases of its attributes differ in few, and the ops of a family have many in common.
What lowering asks of one statement at a time has mostly been asked before, with other statements around. The answer may depend on
the declarations of what the statement reads and writes, on the rules of the op, and on the names in the statement, and on nothing
else: names that are new in it keep clear of
`opc.transform.indices.statement_names`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from opc.analysis.bounds.knowledge import rules_of
from opc.ir.affine import Affine, Dim
from opc.ir.expr import NUMBER, REFUSAL, Const, Expr, GroupRef, affines, asked_for, children, operands_read, reads, traits
from opc.ir.node import remembered
from opc.ir.op import Assign, Op, Operand
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Answers = dict[tuple[object, ...], Any]


@functools.lru_cache(maxsize=64)
def _answers(*rules: object) -> _Answers:
    """Return what has been found of statements where all this holds."""
    return {}


@remembered("_alone")
def _found(op: Op) -> tuple[_Answers, Mapping[str, tuple[str, Operand]], _Answers]:
    """Return what has been found of statements in ops with these rules; each operand with what it is one of; and what has been
    found in this op."""
    kinds = ("input", op.inputs), ("output", op.outputs), ("temporary", op.temporaries)
    # The place of a point in a group that operands broadcast to depends on all of them.
    shared = op.inputs if op.broadcast else ()
    rules = rules_of(op), shared, op.types, op.scatter, op.ties, op.derivation is None, runs_often(op)
    return _answers(*rules), {o.name: (kind, o) for kind, operands in kinds for o in operands}, {}


@remembered("_literals")
def literals(e: Expr) -> tuple[str, ...]:
    """Return the numbers in `e` as they are written: those of other types, and zeros of either sign, compare equal."""
    if not traits(e) & NUMBER:
        return ()
    return (repr(e.value),) if isinstance(e, Const) else tuple([text for c in children(e) for text in literals(c)])


@remembered("_touched")
def _touched(e: Expr) -> tuple[frozenset[str], bool]:
    """Return the operands that a value asks for, and whether a call may be refused for it, with a message that names the op."""
    data = any(not isinstance(i, Affine | GroupRef) for r in reads(e) for i in r.indices)
    return operands_read(e) | asked_for(e), data or traits(e) & REFUSAL != 0


def known_at(op: Op, assign: Assign) -> Op:
    """Return an op with what is known where a statement stands: that there is a step, in statements that name it alone."""
    if not any(r.step for r in op.require):
        return op
    named = {s.name for a in affines(assign.value) for s in a.atoms() if isinstance(s, Dim)}
    return replace(op, require=tuple(r for r in op.require if not r.step or r.step in named))


def of_statement(compute: Callable[Concatenate[Op, Assign, _P], _R]) -> Callable[Concatenate[Op, Assign, _P], _R]:
    """Have a function of an op's declarations, of one statement and of what else it is asked compute its answer once."""

    @functools.wraps(compute)
    def ask(op: Op, assign: Assign, /, *more: _P.args, **named: _P.kwargs) -> _R:
        shared, operands, own = _found(op)
        key = compute, assign, literals(assign.value), more, tuple(named.items())
        if key in own:
            found: _R = own[key]
            return found
        names, refuses = _touched(assign.value)
        sums = [s.sum for s in more if isinstance(s, NestStage) and s.sum is not None]
        declared = frozenset([operands.get(name) for name in (assign.target, *names, *sums)])
        wide = *key, declared, op.name if refuses else ""
        if wide not in shared:
            shared[wide] = compute(op, assign, *more, **named)
        answer: _R = shared[wide]
        own[key] = answer
        return answer

    return ask
