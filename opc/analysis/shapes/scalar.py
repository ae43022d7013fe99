"""Evaluates the scalar conditions of a spec (`check`, `require`) in plain Python, with the meaning kernels give them.

Floating arithmetic is IEEE 754 double: nothing overflows into an exception, a domain error gives NaN, and comparisons with NaN
are false. Integer division by zero has no value: the condition that needs it does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from opc.ir.affine import Symbol
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst

Scalar: TypeAlias = int | float | bool | str


def _ieee(fn: Callable[[float], float], overflow: float = math.inf) -> Callable[[float], float]:
    """Return `fn` with NaN for a domain error and `overflow` for a result too large."""

    def call(x: float) -> float:
        try:
            return fn(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return overflow

    return call


def divide(x: float, y: float) -> float:
    """Return x / y as IEEE 754 has it: an infinity or NaN where y is zero."""
    if y == 0:
        return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def power(x: float, y: float) -> float:
    """Return x ** y as C's pow has it."""
    try:
        return math.pow(x, y)
    except ValueError:
        return math.inf if x == 0 else math.nan
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


def _log(fn: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else _ieee(fn)(x)


def _nan_or(choose: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    return lambda x, y: x if x != x else y if y != y else choose(x, y)


def _rounded(fn: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(fn(x)) if math.isfinite(x) else x


FUNCTIONS: Mapping[str, Callable[..., Scalar]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": divide,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "pow": power,
    "neg": lambda x: -x,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "not": lambda x: not x,
    "maximum": _nan_or(lambda x, y: max(x, y)),
    "minimum": _nan_or(lambda x, y: min(x, y)),
    "abs": abs,
    "sign": lambda x: x if x != x else (x > 0) - (x < 0),
    "sqrt": _ieee(math.sqrt),
    "rsqrt": lambda x: divide(1.0, _ieee(math.sqrt)(x)),
    "exp": _ieee(math.exp),
    "expm1": _ieee(math.expm1),
    "exp2": lambda x: power(2.0, x),
    "log": _log(math.log),
    "log1p": lambda x: -math.inf if x == -1 else _ieee(math.log1p)(x),
    "log2": _log(math.log2),
    "log10": _log(math.log10),
    "sin": _ieee(math.sin),
    "cos": _ieee(math.cos),
    "tan": _ieee(math.tan),
    "asin": _ieee(math.asin),
    "acos": _ieee(math.acos),
    "atan": math.atan,
    "sinh": lambda x: math.copysign(_ieee(math.sinh)(abs(x)), x),
    "cosh": _ieee(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": _ieee(math.acosh),
    "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else _ieee(math.atanh)(x),
    "erf": math.erf,
    "erfc": math.erfc,
    "sigmoid": lambda x: divide(1.0, 1.0 + _ieee(math.exp)(-x)),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "trunc": _rounded(math.trunc),
    "round": _rounded(round),
    "stop_gradient": lambda x: x,
    "isnan": math.isnan,
    "isinf": math.isinf,
}
"""Every function of the function table but `and` and `or`, which are lazy, on Python scalars."""


def evaluate(
    e: Expr,
    symbol: Callable[[Symbol], int],
    attribute: Callable[[str, int], Scalar],
    present: Callable[[str], bool] = lambda _: True,
) -> Scalar:
    """Return the value of a scalar expression.

    `symbol` gives the value of a dimension, group size or integer attribute, `attribute` that of an attribute's element (-1 for a
    scalar attribute), `present` whether an optional operand was given.

    Raises:
        ZeroDivisionError: when an integer is divided by zero.
        TypeError: when the expression reads a tensor, which no condition may.
    """

    def value(node: Expr) -> Scalar:
        match node:
            case Const() | StrConst():
                return node.value
            case AttrRef():
                return attribute(node.name, node.element)
            case IndexValue():
                return node.value.evaluate(symbol)
            case Present():
                return present(node.operand)
            case Cast():
                return value(node.arg)
            case Select():
                return value(node.then) if value(node.cond) else value(node.other)
            case Call(fn="and"):
                return bool(value(node.args[0])) and bool(value(node.args[1]))
            case Call(fn="or"):
                return bool(value(node.args[0])) or bool(value(node.args[1]))
            case Call():
                return FUNCTIONS[node.fn](*(value(a) for a in node.args))
            case _:
                raise TypeError(f"a condition may not read tensors: {node}")

    return value(e)
