"""The dtypes that Poplar has: what they are called there, and which of a type variable's an op is carried in.

There are none of float64, bfloat16 and 64-bit integers. Whole numbers that may be int32 or int64 are int32, and so are those that
are always int64, as indices are in ONNX: no operand has so many elements.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.dtypes import DTYPES, Acc, DType, ElementType, TypeVar
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class PoplarType:
    """The constant `poplar::...` of a type of elements, and what codelets and names of vertices call it."""

    constant: str
    codelet: str


def _type(dtype: DType) -> PoplarType | None:
    named = DType.INT32 if dtype is DType.INT64 else dtype
    if named.row.popart is None:
        return None
    constant = named.row.popart[1]
    return PoplarType(constant, constant.lower().replace("_", " "))


TYPES: Mapping[DType, PoplarType] = {d: found for d in DTYPES if (found := _type(d)) is not None}
"""The type of the elements of operands, by dtype."""


def carried(t: TypeVar) -> tuple[DType, ...]:
    """Return the dtypes of a type variable that an op for Poplar takes; none where Poplar has none."""
    found = [d for d in t.dtypes if d in TYPES]
    if DType.INT64 in found and len(found) > 1:
        found.remove(DType.INT64)
    return tuple(found)


def stored(t: ElementType) -> PoplarType | None:
    """Return the type of an operand that has one and the same in all calls, None where Poplar has no such type."""
    match t:
        case DType():
            return TYPES.get(t)
        case Acc(of=DType() as of):
            return TYPES.get(of.accumulator)
        case _:
            return None
