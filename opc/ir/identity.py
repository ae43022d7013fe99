"""What changes nothing when a reduction takes it in: the identity of what joins two results."""

from __future__ import annotations

import math
from collections.abc import Mapping

from opc.ir.dtypes import DType, ValueType, is_bool, is_integer
from opc.ir.expr import EXTREMES, Const, Expr

IDENTITY: Mapping[str, int | float | bool] = {
    "sum": 0, "prod": 1, "any": False, "all": True, "max": -math.inf, "min": math.inf
}  # fmt: skip
"""The identity of each kind of reduction. An infinity of an integer type is the type's least or greatest number."""


def is_identity(kind: str, e: Expr, of: ValueType | None = None) -> bool:
    """Whether a value, as one of type `of`, is what a reduction of this kind ignores."""
    if not isinstance(e, Const) or kind not in IDENTITY:
        return False
    return e.value == IDENTITY[kind] or (kind in EXTREMES and _is_end(kind, e, of or e.type))


def _is_end(kind: str, e: Const, of: ValueType) -> bool:
    """Whether a literal is the least integer of a type, or of a minimum the greatest."""
    if not isinstance(of, DType) or not is_integer(of):
        return False
    return e.value == (of.least if kind == "max" else of.most)


def identity_of(kind: str, of: ValueType) -> Const:
    """Return what a reduction of this kind over values of a type ignores."""
    value = IDENTITY[kind]
    return Const(value > 0, of) if is_bool(of) else Const(value, of)
