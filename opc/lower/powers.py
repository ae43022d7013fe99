"""Exponents that a call fixes: `x ** gamma`, for which the default of the attribute makes a power of a few multiplications.

Most calls leave an attribute as it is, and a power of any exponent takes a logarithm and an exponential.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from opc.ir.dtypes import is_floating, is_integer
from opc.ir.expr import ATTRIBUTE, READ, AttrRef, Call, Cast, Const, Expr, IndexValue, traits, walk
from opc.ir.op import AttributeKind, Op

_LARGEST_POWER = 3
"""The largest exponent that is worth a case of its own."""

_WHOLE = range(-8, 9)
"""Whole numbers that are the same in every type."""

_ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def exponents(op: Op) -> Iterator[tuple[str, int | float]]:
    """Yield the attributes that alone decide the exponent of a power, with the defaults that make it a small whole number."""
    defaults = {
        a.name: a.default
        for a in op.attributes
        if a.kind in (AttributeKind.INT, AttributeKind.FLOAT) and isinstance(a.default, int | float)
    }
    if not defaults:
        return
    for statement in op.body:
        for e in _powers(statement.value):
            names = {n.name for n in walk(e.args[1]) if isinstance(n, AttrRef)}
            if len(names) == 1 and (number := defaults.get(name := names.pop())) is not None:
                exponent = power_at(e, name, number)
                if exponent is not None and abs(exponent) <= _LARGEST_POWER:
                    yield name, number


def _powers(value: Expr) -> Iterator[Call]:
    """Yield the powers of operands with exponents that attributes take part in."""
    if traits(value) & ATTRIBUTE:
        for e in walk(value):
            if isinstance(e, Call) and e.fn == "pow" and traits(e.args[0]) & READ and traits(e.args[1]) & ATTRIBUTE:
                yield e


def power_at(e: Call, name: str, number: int | float) -> int | None:
    """Return the whole number that the exponent of a power is where an attribute is `number`, None where it is none.

    Whole numbers have powers of negative exponents by a rule of their own.
    """
    power = _whole(e.args[1], name, number)
    return power if power is None or power >= 0 or is_floating(e.type) else None


def _whole(e: Expr, name: str, number: int | float) -> int | None:
    """Return the small whole number that `e` is, which arithmetic in any type agrees with, None where it is none."""
    value: int | float
    match e:
        case AttrRef(name=found, element=-1) if found == name:
            value = number
        case Const(value=int() | float() as literal):
            value = literal
        case IndexValue(value=f) if f.constant is not None:
            value = f.constant
        case Cast(arg=arg):
            cast = _whole(arg, name, number)
            return cast if cast is not None and (is_floating(e.type) or (is_integer(e.type) and cast >= 0)) else None
        case Call(fn="neg", args=(a,)):
            power = _whole(a, name, number)
            return None if power is None else -power
        case Call(fn="add" | "sub" | "mul" as fn, args=(a, b)):
            left, right = _whole(a, name, number), _whole(b, name, number)
            if left is None or right is None:
                return None
            value = _ARITHMETIC[fn](left, right)
        case _:
            return None
    return int(value) if value in _WHOLE else None
