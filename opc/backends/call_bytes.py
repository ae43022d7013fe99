"""Operands and attributes of calls as bytes, for a process that has neither Python nor a framework in it.

All numbers are int64 in this machine's byte order. An operand is 0 when it is not given, else 1, DLPack's type code, bits, the
number of axes, sizes, strides in elements, the place of the first element in its block of memory in bytes, the block's size and
its bytes. Attributes are the size of their struct and its bytes; then come the number of its pointers and, for each, its place,
the size and the bytes of what it points to.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opc.emit import abi
from opc.ir.dtypes import DType
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array

_C_TYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "const char *": ctypes.c_void_p,
}


def numbers(*values: int) -> bytes:
    """Return int64 numbers."""
    return struct.pack(f"={len(values)}q", *values)


def text(value: str) -> bytes:
    """Return a text: its length and its bytes."""
    data = value.encode()
    return numbers(len(data)) + data


def operand(array: Array | None) -> bytes:
    """Return an operand with the bytes from its first to its last element in memory, and no more.

    Raises:
        ValueError: when it is of no dtype of opc's.
    """
    if array is None:
        return numbers(0)
    dtype = DType(str(array.dtype))
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)] if array.size else []
    before, behind = -sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    size = before + behind + array.itemsize if array.size else 0
    head = numbers(1, dtype.row.dlpack, dtype.bits, array.ndim, *array.shape)
    head += numbers(*(s // array.itemsize for s in array.strides), before, size)
    return head + (ctypes.string_at(array.ctypes.data - before, size) if size else b"")


def attributes(family: Family, given: Mapping[str, Any]) -> bytes:
    """Return the attribute struct of a family and what its pointers point to; what is left out has its default."""
    fields: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    pointers: dict[str, bytes] = {}
    for f, value in abi.field_values(family, given):
        kind = _C_TYPES[f.c_type]
        if f.count is None and f.c_type == "const char *":
            fields.append((f.name, kind))
            pointers[f.name] = str(value).encode() + b"\0"
        elif f.count is None:
            fields.append((f.name, kind))
            values[f.name] = value
        elif f.count < 0:
            fields.append((f.name, ctypes.c_void_p))
            pointers[f.name] = bytes((kind * len(value))(*value))
        else:
            fields.append((f.name, kind * f.count))
            values[f.name] = (kind * f.count)(*value)
    layout = type("Attributes", (ctypes.Structure,), {"_fields_": fields or [("unused", ctypes.c_char)]})
    data = bytes(layout(**values))
    lists = b"".join(numbers(getattr(layout, n).offset, len(v)) + v for n, v in pointers.items())
    return numbers(len(data)) + data + numbers(len(pointers)) + lists


__all__ = ["attributes", "numbers", "operand", "text"]
