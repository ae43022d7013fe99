"""Typing rules of the IR beside those of the function table: whole numbers, reductions, and storing a value in an operand."""

from __future__ import annotations

from opc.ir.dtypes import (
    Acc,
    DType,
    ElementType,
    TypeVar,
    ValueType,
    Weak,
    accumulated,
    candidates,
    is_bool,
    is_floating,
    is_whole,
)
from opc.ir.expr import Cast, Const, Expr, Select
from opc.ir.node import memoised
from opc.ir.promotion import join


@memoised
def wide_type(t: ElementType) -> ElementType:
    """Return the type in which values of type `t` meet any whole number: int64 for integers, `t`'s own where it is floating."""
    if all(d.is_floating or d is DType.INT64 for d in candidates(t)):
        return t
    if isinstance(t, TypeVar) and any(d.is_floating for d in t.dtypes):
        return Acc(t)
    return DType.INT64


def fits(e: Expr, t: ElementType) -> bool:
    """Whether a weak value is a literal, or a choice between literals, that every integer type among those of `t` has."""
    match e:
        case Const(value=float()):
            return True
        case Const(value=value):
            return all(d.holds(int(value)) for d in candidates(t))
        case Select(then=then, other=other):
            return fits(then, t) and fits(other, t)
        case _:
            return False


@memoised
def common_type(types: tuple[ValueType, ...]) -> ValueType | None:
    """Return the type that values of these types have together, or None where they do not mix."""
    common: ValueType | None = types[0]
    for t in types[1:]:
        common = None if common is None else join(common, t)
    return common


def needs_width(args: tuple[Expr, ...], t: ValueType | None) -> bool:
    """Whether weak values among `args` may not fit `t`, which is their common type."""
    if t is None or isinstance(t, Weak) or is_bool(t) or wide_type(t) == t:
        return False
    return any(isinstance(a.type, Weak) and not fits(a, t) for a in args)


def widened(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return values that are combined, so that none of them is cut to fit.

    Dimensions, indices and attributes are whole numbers of 64 bits. What they meet is converted where it is narrower.
    """
    t = common_type(tuple(a.type for a in args))
    return args if t is None or isinstance(t, Weak) or not needs_width(args, t) else wide(args, t)


def wide(args: tuple[Expr, ...], t: ElementType) -> tuple[Expr, ...]:
    """Return values of type `t` and weak ones, the former in the type in which they meet any whole number.

    There is none for uint64: int64 lacks its upper half, and it has no negative numbers. So what is weak becomes int64 there, and
    the two do not mix.
    """
    if not all(d.is_floating or d.is_whole for d in candidates(t)):
        return tuple(converted(a, DType.INT64) if isinstance(a.type, Weak) else a for a in args)
    return tuple(a if isinstance(a.type, Weak) else converted(a, wide_type(t)) for a in args)


def unwidened(e: Expr) -> Expr:
    """Return a whole number as it was before it was made an int64 to be compared with one."""
    return e.arg if isinstance(e, Cast) and e.type is DType.INT64 and is_whole(e.arg.type) else e


def converted(e: Expr, t: ElementType) -> Expr:
    """Return a value in the type `t`."""
    return e if e.type == t else Cast(e, t, e.span)


@memoised
def reduction_type(kind: str, body: ValueType) -> ValueType | None:
    """Return the value type of a reduction over a body of type `body`, or None when it does not take it.

    A sum or product over a type that is neither floating nor weak has its accumulator type: int64, of uint64 itself.
    """
    match kind:
        case "any" | "all":
            return DType.BOOL if is_bool(body) else None
        case "argmax" | "argmin":
            return DType.INT64
        case "max" | "min":
            return body
        case "sum" | "prod":
            if isinstance(body, Weak | Acc) or is_floating(body):
                return body
            return accumulated(body)
        case _:
            return None


def assignable(value: ValueType, target: ElementType) -> bool:
    """Whether a value may be stored as `target` without a cast: the same type, weak, or T and acc(T) of a floating T."""
    return join(value, target) is not None
