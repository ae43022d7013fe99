"""The dtypes that Poplar has: what they are called there, and which of a type variable's an op is carried in.

There are none of float64, bfloat16 and 64-bit integers. Whole numbers that may be int32 or int64 are int32, and so are those that
are always int64, as indices are in ONNX: no operand has so many elements.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class PoplarType:
    """The constant `poplar::...` of a type of elements, and what codelets and names of vertices call it."""

    constant: str
    codelet: str


TYPES: Mapping[DType, PoplarType] = {
    DType.FLOAT32: PoplarType("FLOAT", "float"),
    DType.FLOAT16: PoplarType("HALF", "half"),
    DType.INT32: PoplarType("INT", "int"),
    DType.INT64: PoplarType("INT", "int"),
    DType.UINT32: PoplarType("UNSIGNED_INT", "unsigned int"),
    DType.INT16: PoplarType("SHORT", "short"),
    DType.UINT16: PoplarType("UNSIGNED_SHORT", "unsigned short"),
    DType.INT8: PoplarType("SIGNED_CHAR", "signed char"),
    DType.UINT8: PoplarType("UNSIGNED_CHAR", "unsigned char"),
    DType.BOOL: PoplarType("BOOL", "bool"),
}


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
