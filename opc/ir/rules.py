"""Typing rules of the IR beside those of the function table: reductions, and storing a value in an operand."""

from __future__ import annotations

from opc.ir.dtypes import Acc, DType, ElementType, ValueType, Weak, is_bool, is_floating
from opc.ir.functions import join


def reduction_type(kind: str, body: ValueType) -> ValueType | None:
    """Return the value type of a reduction over a body of type `body`, or None when it does not take it.

    A sum or product over a type that is neither floating nor weak has its accumulator type.
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
            return DType.INT64 if isinstance(body, DType) else Acc(body)
        case _:
            return None


def assignable(value: ValueType, target: ElementType) -> bool:
    """Whether a value may be stored as `target` without a cast: the same type, weak, or T and acc(T) of a floating T."""
    return join(value, target) is not None
