"""Evaluates expressions without reductions on numbers of any kind, for tests of the function table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opc.ir.expr import Call, Const, Expr, Read, Select


def evaluate(e: Expr, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
    match e:
        case Const():
            return e.value
        case Read():
            return values[e.operand]
        case Call():
            return functions[e.fn](*(evaluate(a, values, functions) for a in e.args))
        case Select():
            return evaluate(e.then if evaluate(e.cond, values, functions) else e.other, values, functions)
        case _:
            raise NotImplementedError(f"not a scalar expression: {e}")
