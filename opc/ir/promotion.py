"""How value types mix, and what the types of functions' results are."""

from __future__ import annotations

from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, ValueType, Weak, candidates, is_bool, is_floating, is_integer
from opc.ir.function import Function
from opc.ir.node import memoised


@memoised
def join(a: ValueType, b: ValueType) -> ValueType | None:
    """Return the value type of an operation on `a` and `b`, or None when they do not mix.

    A weak type takes the other's; a weak float does not become an integer; T and acc(T) mix, as acc(T), when T is floating: their
    values are then computed in the same type. acc(T) of an integer T is int64 or uint64.
    """
    a, b = _known(a), _known(b)
    if a == b:
        return a
    if isinstance(a, Weak) and isinstance(b, Weak):
        return Weak.FLOAT
    if isinstance(a, Weak):
        return join(b, a)
    if isinstance(b, Weak):
        if is_bool(a) or (b is Weak.FLOAT and not is_floating(a)):
            return None
        return a
    if (wider := _wider(a, b)) is not None:
        return wider
    if is_floating(a) and is_floating(b) and _base(a) == _base(b):
        return a if not hasattr(a, "of") else b
    # A type variable that can be nothing but int64 mixes with what is int64; so with uint64.
    return _single(a) if _single(a) is not None and _single(a) == _single(b) else None


def _known(t: ValueType) -> ValueType:
    """Return the dtype of an accumulator type of integers that can be nothing else."""
    return _single(t) or t if isinstance(t, Acc) else t


def _single(t: ElementType) -> DType | None:
    """Return int64 or uint64, which whole numbers are accumulated in, where `t` can be nothing else."""
    found = candidates(t)
    return found[0] if len(found) == 1 and found[0].is_integer and found[0].accumulator is found[0] else None


def _wider(a: ElementType, b: ElementType) -> ElementType | None:
    """Return the one of two types over one variable that may be all that the other may be: a side that asks has fewer dtypes."""
    one, other = _base(a), _base(b)
    if not isinstance(one, TypeVar) or not isinstance(other, TypeVar) or one.name != other.name or a.__class__ is not b.__class__:
        return None
    return a if set(other.dtypes) <= set(one.dtypes) else b if set(one.dtypes) <= set(other.dtypes) else None


def _base(t: ValueType) -> ValueType:
    return t.of if hasattr(t, "of") else t


def result_type(fn: Function, args: tuple[ValueType, ...]) -> ValueType | None:
    """Return the value type of `fn` applied to arguments of these types, or None when it does not take them."""
    joined: ValueType | None = args[0]
    for a in args[1:]:
        joined = None if joined is None else join(joined, a)
    if joined is None:
        return None
    match fn.types:
        case "float":
            if joined is Weak.INT:
                return Weak.FLOAT
            return joined if is_floating(joined) or (fn.whole and is_integer(joined)) else None
        case "number":
            return joined if is_floating(joined) or is_integer(joined) or not is_bool(joined) else None
        case "integer":
            return joined if is_integer(joined) else None
        case "compare":
            return DType.BOOL
        case "logic":
            return DType.BOOL if is_bool(joined) else None
        case _:
            return DType.BOOL if is_floating(joined) else None
