"""Literals, and what operators on them come to: numbers of 64 bits, and doubles, of which one that no type holds is refused."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from opc.analysis.shapes.scalar import function
from opc.diagnostics import Span
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Cast, Const, Expr
from opc.ir.node import memoised
from opc.lang.tree import Apply, Item, Literal, Name, Operation, parts

INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)
_LOW_BITS = frozenset(2**n - 1 for n in range(1, 63))
"""The numbers that choose bits from the lowest on."""
_OF_LITERALS: dict[str, Callable[[int, int], int]] = {
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}

_OPERATORS = frozenset({"add", "sub", "mul", "div", "pow", "neg"})


@memoised
def number_of(e: Expr) -> float | None:
    """Return the number that literals and operators make up, as a double; None for anything else."""
    match e:
        case Const(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case Call(fn=fn) if fn in _OPERATORS:
            parts = [number_of(a) for a in e.args]
            return None if None in parts else float(function(fn)(*(p for p in parts if p is not None)))
        case _:
            return None


def is_beyond(e: Expr) -> bool:
    """Whether an operator on finite literals has a result that is none; infinity is what a division by 0 says."""
    if not isinstance(e, Call) or number_of(e) is None or math.isfinite(number_of(e) or 0.0):
        return False
    parts = [number_of(a) for a in e.args]
    return all(p is not None and math.isfinite(p) for p in parts) and not (e.fn == "div" and parts[-1] == 0)


def whole_number(value: int, span: Span) -> Expr:
    """Return a whole number as a literal; one that uint64 alone holds has that type."""
    if value in INT64:
        return Const(value, Weak.INT, span)
    # A conversion wraps: every target has the number of 64 bits that is negative as an int64.
    return Cast(Const(value - UINT64.stop, Weak.INT, span), DType.UINT64, span)


def fold_bits(fn: str, a: Affine, b: Affine) -> Affine | None:
    """Return an operator on bits as an index expression: of two numbers, or where it multiplies or divides by a power of two."""
    left, right = a.constant, b.constant
    if fn == "bit_and" and left is not None and right is None:
        return fold_bits(fn, b, a)
    if right is None or fn not in _OF_LITERALS:
        return None
    if left is not None:
        # No memory holds what Python makes of a large count.
        return Affine.of(_OF_LITERALS[fn](left, min(right, 64) if fn.startswith("shift") else right))
    match fn:
        case "bit_and" if right in _LOW_BITS:
            return a % (right + 1)  # of a negative number too
        case "shift_left" if right < 63:
            return a * (1 << right)
        case "shift_right" if right < 63:
            return a // (1 << right)
        case _:
            return None


def fraction_hint(tree: Item) -> str | None:
    """Return what to write where a whole number is asked for, by what makes a fraction of a tree; None where nothing shows."""
    if isinstance(tree, Apply) and tree.fn.id in ("ceil", "floor") and len(tree.args) == 1:
        match tree.args[0]:
            case Operation(op="div", args=(Name(id=a), Name(id=b))):
                return f"write ({a} + {b} - 1) // {b}" if tree.fn.id == "ceil" else f"write {a} // {b}"
            case _:
                return "write (a + b - 1) // b" if tree.fn.id == "ceil" else "write a // b"
    if isinstance(tree, Operation) and tree.op == "div":
        return "`//` divides whole numbers"
    if isinstance(tree, Operation) and tree.op == "pow":
        return "a power is whole with an exponent from 0 to 8: write the number out, or cast(int64, ...) of data"
    if isinstance(tree, Literal) and isinstance(tree.value, float):
        return f"write {int(tree.value)}" if tree.value.is_integer() else "`//` divides whole numbers"
    return next((hint for part in parts(tree) if (hint := fraction_hint(part)) is not None), None)


__all__ = ["INT64", "UINT64", "fold_bits", "fraction_hint", "is_beyond", "number_of", "whole_number"]
