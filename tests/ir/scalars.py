"""What tests of the function table share: rows, samples of their domains, the truth, expressions on numbers of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

from opc.ir import scalar_functions
from opc.ir.expr import Call, Const, Expr, Read, Select
from opc.ir.function import Function
from opc.ir.functions import FUNCTIONS

mpmath.mp.prec = 120
ROWS = [f for f in FUNCTIONS.values() if f.types != "integer"]
"""Those of floating numbers and bools; `tests/emit/test_bits.py` holds those of integers alone against Python's own."""
NUMERIC = [f for f in ROWS if f.types in ("float", "number")]


def ids(f: Function) -> str:
    return f.name


def numbers(text: str) -> Callable[..., Any]:
    """Return an expression of mpmath as a function."""
    names = {"mp": mpmath, **vars(scalar_functions)}
    made: Callable[..., Any] = eval(f"lambda x, y=None: {text.format('x', 'y')}", names)
    return made


TRUTH: Mapping[str, Callable[..., Any]] = {f.name: numbers(f.mp) for f in ROWS}


def truth(f: Function, arguments: tuple[Any, ...]) -> Any:
    return TRUTH[f.name](*(bool(a) if f.types == "logic" else mpmath.mpf(float(a)) for a in arguments))


def inside(f: Function, count: int, kind: type) -> tuple[np.ndarray, ...]:
    """Return points of the row's sample domain."""
    rng = np.random.default_rng(5)
    if f.types == "logic":
        return tuple(a.ravel() for a in np.meshgrid(*([np.array([False, True])] * f.arity)))
    return tuple(
        rng.uniform(low, high, count).astype(kind) for low, high in (f.samples * f.arity if len(f.samples) == 1 else f.samples)
    )


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
