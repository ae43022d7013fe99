"""Calls of kernels written to a file, for a process that has neither Python nor a framework in it.

All numbers are int64 in this machine's byte order. A file holds the number of calls, then each call: the length of the function's
name and the name; the number of inputs and of outputs; the operands; the attribute struct; its lists. An operand is 0 when it is
not given, else 1, DLPack's type code, bits, the number of axes, sizes, strides in elements, the place of the first element in its
block of memory in bytes, the block's size and its bytes. The struct is its size and its bytes; then come the number of its
pointers and, for each, its place, the size and the bytes of what it points to.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.emit import abi
from opc.ir.dtypes import DType, numpy_dtype, resolve
from opc.ir.op import AttributeKind, Family, Op
from opc.testing.cases.calls import Case
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import askable

_C_TYPES: dict[str, Any] = {
    "double": ctypes.c_double,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "const char *": ctypes.c_void_p,
}


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of the kernel of `op`, a member of a family."""

    op: Op
    case: Case


def call_file(family: Family, calls: Iterable[KernelCall]) -> bytes:
    """Return the contents of the file that holds these calls, in order."""
    parts = [_call(family, c.op, c.case) for c in calls]
    return _numbers(len(parts)) + b"".join(parts)


def _numbers(*values: int) -> bytes:
    return struct.pack(f"={len(values)}q", *values)


def _call(family: Family, op: Op, case: Case) -> bytes:
    arrays = {n: a for n, a in case.arrays().items() if a is not None}
    outputs = _outputs(op, case, arrays)
    name = abi.function_name(op).encode()
    operands = [_operand(arrays.get(o.name)) for o in op.inputs] + [_operand(outputs.get(o.name)) for o in op.outputs]
    head = _numbers(len(name)) + name + _numbers(len(op.inputs), len(op.outputs))
    return head + b"".join(operands) + _attributes(family, case.attributes)


def _outputs(op: Op, case: Case, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return memory for the outputs that the call wants; of any shape when the call is one to be refused."""
    names = (
        askable(op, arrays) if case.wanted is None else [o.name for o in op.outputs if not o.optional or o.name in case.wanted]
    )
    try:
        env = infer(op, {n: a.shape for n, a in arrays.items()}, case.attributes)
        binding = infer_types(op, {n: DType(str(a.dtype)) for n, a in arrays.items()}, case.attributes)
        return {n: np.zeros(env.outputs[n], numpy_dtype(resolve(op.output(n).type, binding))) for n in names if n in env.outputs}
    except (ShapeError, KeyError):
        return {n: np.zeros((), np.float32) for n in names}


def _operand(array: Array | None) -> bytes:
    """Return an operand with the bytes from its first to its last element in memory, and no more."""
    if array is None:
        return _numbers(0)
    dtype = DType(str(array.dtype))
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)] if array.size else []
    before, behind = -sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
    size = before + behind + array.itemsize if array.size else 0
    head = _numbers(1, dtype.row.dlpack, dtype.bits, array.ndim, *array.shape)
    head += _numbers(*(s // array.itemsize for s in array.strides), before, size)
    return head + (ctypes.string_at(array.ctypes.data - before, size) if size else b"")


def _attributes(family: Family, given: Mapping[str, Any]) -> bytes:
    """Return the attribute struct and what its pointers point to; what is left out has its default."""
    fields: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    pointers: dict[str, bytes] = {}
    declared = {a.name: a for a in family.forward.attributes}
    for f in abi.attribute_fields(family):
        a = declared[f.attribute]
        value, kind = given.get(a.name, a.default), _C_TYPES[f.c_type]
        if a.kind is AttributeKind.STR and a.values:
            # A string the op does not know is a position it does not have.
            value = a.values.index(value) if value in a.values else len(a.values)
        elif a.kind is AttributeKind.DTYPE:
            value = abi.encode(a, value)
        if f.is_length:
            fields.append((f.name, kind))
            values[f.name] = len(value)
        elif f.count is None and f.c_type == "const char *":
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
    lists = b"".join(_numbers(getattr(layout, n).offset, len(v)) + v for n, v in pointers.items())
    return _numbers(len(data)) + data + _numbers(len(pointers)) + lists


__all__ = ["KernelCall", "call_file"]
