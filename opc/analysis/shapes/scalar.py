"""Evaluates the scalar conditions of a spec (`check`, `require`) in plain Python, with the meaning kernels give them.

Floating arithmetic is IEEE 754 double: nothing overflows into an exception, a domain error gives NaN, and comparisons with NaN
are false. Integer division by zero has no value: the condition that needs it does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NoReturn, TypeAlias

from opc.ir import scalar_functions
from opc.ir.affine import Symbol
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.ir.functions import FUNCTIONS

Scalar: TypeAlias = int | float | bool | str


def is_never(condition: Expr) -> bool:
    """Whether a condition on sizes, attributes and optional operands is false whatever these are."""

    def unknown(*_: object) -> NoReturn:
        raise KeyError

    try:
        return not evaluate(condition, unknown, unknown, unknown)
    except (KeyError, ZeroDivisionError):
        return False


@cache
def function(name: str) -> Callable[..., Scalar]:
    """Return a function of the table on Python scalars: its text of Python as a function. `and` and `or` are not lazy here."""
    names: dict[str, object] = {"math": math, **vars(scalar_functions)}
    made: Callable[..., Scalar] = eval(f"lambda *args: {FUNCTIONS[name].python.format('args[0]', 'args[1]')}", names)
    return made


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
                return function(node.fn)(*(value(a) for a in node.args))
            case _:
                raise TypeError(f"a condition may not read tensors: {node}")

    return value(e)
