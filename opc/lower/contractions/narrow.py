"""Factors of contractions that are read narrower than they are multiplied.

Of whole numbers: how large their values can be, so that products may be added up in 32 bits. Of floats: integers of 8 bits.
"""

from __future__ import annotations

from opc.ir.dtypes import DType, ValueType, Weak, candidates, is_floating
from opc.ir.expr import Call, Cast, Const, Expr, Read, Select
from opc.ir.op import Op

STORED = frozenset((DType.INT8, DType.UINT8))
"""What factors are read as, beside temporaries of int16."""

STEP = 640
"""How many products are added up in 32 bits; see `inner_block` in opc/contraction/plan.h."""

MOST = (2**31 - 1) // STEP
"""The largest magnitude of a product."""

_WIDE = (DType.INT32, DType.INT64)


def interval(op: Op, e: Expr) -> tuple[int, int] | None:
    """Return the least and the largest value that `e` may have at any point; None where that is not known, or may wrap."""
    match e:
        case Const(type=Weak.INT):
            found = int(e.value), int(e.value)
        case Read(type=kind) if not isinstance(kind, Weak) and is_stored(kind):
            return min(d.least for d in candidates(kind)), max(d.most for d in candidates(kind))
        case Read() if (most := op.operand(e.operand).most) is not None:
            return -most, most
        case Read(pad=pad) if e.operand in op.assignments:
            defined = interval(op, op.assignments[e.operand].value)
            beyond = defined if pad is None else interval(op, pad)
            if defined is None or beyond is None:
                return None
            found = min(defined[0], beyond[0]), max(defined[1], beyond[1])
        case Cast(arg=arg) | Call(fn="neg", args=(arg,)):
            inner = interval(op, arg)
            if inner is None:
                return None
            found = inner if isinstance(e, Cast) else (-inner[1], -inner[0])
        case Call(fn="add" | "sub" | "mul" | "maximum" | "minimum", args=(left, right)):
            a, b = interval(op, left), interval(op, right)
            if a is None or b is None:
                return None
            found = _of_two(e.fn, a, b)
        case Select(then=then, other=other):
            a, b = interval(op, then), interval(op, other)
            if a is None or b is None:
                return None
            found = min(a[0], b[0]), max(a[1], b[1])
        case _:
            return None
    return found if _holds(e.type, found) else None


def _of_two(fn: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    match fn:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            products = [x * y for x in a for y in b]
            return min(products), max(products)
        case "maximum":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return min(a[0], b[0]), min(a[1], b[1])


def _holds(t: ValueType, values: tuple[int, int]) -> bool:
    """Whether a type has all values of an interval."""
    if isinstance(t, Weak):
        return t is Weak.INT
    return all(d.is_integer and d.holds(values[0]) and d.holds(values[1]) for d in candidates(t))


def magnitude(op: Op, e: Expr) -> int | None:
    """Return the largest magnitude of a value that int16 holds; None where it is not known or larger."""
    found = interval(op, e)
    most = None if found is None else max(-found[0], found[1])
    return most if most is not None and most < 2**15 else None


def narrow(op: Op, e: Expr) -> Read | None:
    """Return what a factor is read from, which a cast makes wide enough for any product; None for any other value."""
    match e:
        case Cast(arg=Read() as read, type=kind) if kind in _WIDE and magnitude(op, read) is not None:
            return read
        case _:
            return None


def as_stored(e: Expr) -> Read | None:
    """Return what a factor of floats is read from: a value of a floating type, or a cast of integers of 8 bits to one that holds
    them; None for any other value."""
    match e:
        case Read():
            return e
        case Cast(arg=Read(type=kind) as read, type=of) if is_floating(of) and is_stored(kind) and _holds_bytes(of):
            return read
        case _:
            return None


def _holds_bytes(t: ValueType) -> bool:
    """Whether a floating type has all integers of 8 bits exactly."""
    return isinstance(t, Weak) or all(d.row.minifloat is None or d.row.minifloat.fraction >= 7 for d in candidates(t))


def is_stored(t: ValueType) -> bool:
    """Whether factors of this type are read as they are: integers of 8 bits."""
    return not isinstance(t, Weak) and STORED.issuperset(candidates(t))


def fit(op: Op, left: Read, right: Read) -> bool:
    """Whether the products of two factors can be added up in 32 bits."""
    a, b = magnitude(op, left), magnitude(op, right)
    return a is not None and b is not None and a * b <= MOST


__all__ = ["MOST", "STEP", "STORED", "as_stored", "fit", "interval", "is_stored", "magnitude", "narrow"]
