"""A small interpreter of expressions at one point, for tests: Python numbers, operands as nested NumPy arrays, no groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from opc.ir.affine import AttrInt, Dim, Index, Symbol
from opc.ir.expr import Affine, Axis, Call, Cast, Const, Expr, IndexValue, Read, Reduce, Select

Number = Any


def _divide(a: Number, b: Number) -> Number:
    if b == 0 and not isinstance(b, Fraction):
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "neg": lambda a: -a,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "pow": lambda a, b: a**b,
}


class Point:
    """Values of operands and of the symbols of affine expressions at one point."""

    def __init__(self, operands: Mapping[str, Any], symbols: Mapping[str, int]) -> None:
        self.operands = operands
        self.symbols = dict(symbols)

    def affine(self, a: Affine) -> int:
        return a.evaluate(self._symbol)

    def _symbol(self, s: Symbol) -> int:
        assert isinstance(s, Index | Dim | AttrInt)
        return self.symbols[s.name]

    def value(self, e: Expr) -> Number:
        match e:
            case Const():
                return e.value
            case IndexValue():
                return self.affine(e.value)
            case Read():
                return self.read(e)
            case Select():
                return self.value(e.then) if self.value(e.cond) else self.value(e.other)
            case Cast():
                return self.value(e.arg)
            case Call():
                return FUNCTIONS[e.fn](*(self.value(a) for a in e.args))
            case Reduce(kind="sum"):
                axes = [a for a in e.axes if isinstance(a, Axis)]
                assert len(axes) == len(e.axes)
                total: Number = 0
                for at in itertools.product(*(range(self.affine(a.extent)) for a in axes)):
                    inner = Point(self.operands, self.symbols | {a.index: i for a, i in zip(axes, at)})
                    total = total + inner.value(e.body)
                return total
            case _:
                raise NotImplementedError(f"not evaluated here: {e}")

    def read(self, e: Read) -> Number:
        data = self.operands[e.operand]
        at = tuple(self.affine(i) if isinstance(i, Affine) else int(self.value(i)) for i in e.indices)
        shape = np.shape(data)
        inside = all(0 <= i < n for i, n in zip(at, shape, strict=True))
        if not inside:
            # A read outside is an error unless it is padded: this is what makes the tests see a missing guard.
            assert e.pad is not None, f"{e.operand}{list(at)} is outside {shape}"
            return self.value(e.pad)
        return np.asarray(data, dtype=object)[at]
