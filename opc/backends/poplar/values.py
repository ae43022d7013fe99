"""Arrays and attributes of a call as Graphcore's frameworks hold them, and results as the op declares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer_types
from opc.backends.base import OpError, Unsupported
from opc.backends.poplar.carried import has
from opc.ir.dtypes import DTYPES, DType, TypeVar, candidates, resolve
from opc.ir.op import Attribute, AttributeKind, Op, Operand

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

_BY_NAME = {d.value: d for d in DTYPES}
_OTHER_NAMES = {"float64": "DOUBLE", "bfloat16": "BFLOAT16", "int64": "INT64", "uint64": "UINT64"}
"""What PopART calls dtypes that Poplar has no tensors of: it knows them, and ops refuse them."""


def held_arrays(op: Op, inputs: Inputs, attributes: Attributes) -> dict[str, Array]:
    """Return the arrays that are given, contiguous, with indices of int64 as int32.

    Raises:
        Unsupported: when the op takes the call, and Poplar has no tensors of a dtype of it.
    """
    given = {x.name: a for x in op.inputs if (a := inputs.get(x.name)) is not None}
    lacking = {n: a for n, a in given.items() if (d := _BY_NAME.get(a.dtype.name)) is not None and not has(d)}
    if lacking and _takes(op, given, attributes):
        for name, array in lacking.items():
            if not _is_index(op, op.input(name)):
                raise Unsupported(f"Poplar has no tensors of {array.dtype.name}")
            if array.size and (array.max() > DType.INT32.most or array.min() < DType.INT32.least):
                raise Unsupported(f"{name} is held in int32, which does not have all of its numbers")
            given[name] = array.astype(np.int32)
    return {n: contiguous(a) for n, a in given.items()}


def contiguous(array: Array) -> Array:
    """Return an array of the same shape whose elements lie in order, which PopART asks for."""
    return np.ascontiguousarray(array) if array.ndim else array.copy()


def _takes(op: Op, given: Mapping[str, Array], attributes: Attributes) -> bool:
    """Whether the op itself has nothing against the dtypes of a call."""
    try:
        _binding(op, given, attributes)
    except ShapeError:
        return False
    return True


def _binding(op: Op, given: Mapping[str, Array], attributes: Attributes) -> Mapping[str, DType]:
    try:
        dtypes = {x.name: DType(given[x.name].dtype.name) if x.name in given else None for x in op.inputs}
    except ValueError as error:
        raise ShapeError(str(error)) from error
    return infer_types(op, dtypes, attributes)


def _is_index(op: Op, operand: Operand) -> bool:
    """Whether an operand of whole numbers is only looked at: no output has its type."""
    dtypes = candidates(operand.type)
    if any(d.is_floating for d in dtypes) or DType.INT64 not in dtypes:
        return False
    return not isinstance(operand.type, TypeVar) or all(o.type != operand.type for o in op.outputs)


def data_type(array: Array) -> str:
    """Return the name of an array's dtype in PopART.

    Raises:
        OpError: when PopART has none.
    """
    dtype = _BY_NAME.get(array.dtype.name)
    if dtype is not None and dtype.row.popart is not None:
        return dtype.row.popart[0]
    name = _OTHER_NAMES.get(array.dtype.name)
    if name is None:
        raise Unsupported(f"PopART has no tensors of {array.dtype.name}")
    return name


def declared(op: Op, inputs: Inputs, attributes: Attributes, made: Mapping[str, Array]) -> dict[str, Array]:
    """Return outputs in the dtypes that the op declares: those of int64 are held as int32."""
    given = {x.name: a for x in op.inputs if (a := inputs.get(x.name)) is not None}
    binding = _binding(op, given, attributes)
    found = {}
    for name, array in made.items():
        dtype = resolve(op.output(name).type, binding)
        found[name] = array.astype(dtype.value) if dtype is DType.INT64 else array
    return found


def held_attributes(op: Op, attributes: Attributes) -> dict[str, Any]:
    """Return the attributes that a call gives as nodes hold them: flags as whole numbers, dtypes as ONNX's numbers.

    Raises:
        OpError: when PopART has no such attribute.
        Unsupported: when Poplar has no tensors of a dtype.
    """
    known = {a.name: a for a in op.attributes}
    return {name: _held(op, known.get(name), name, value) for name, value in attributes.items()}


def _held(op: Op, a: Attribute | None, name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_held(op, a, name, v) for v in value]
    if a is not None and a.kind is AttributeKind.DTYPE:
        dtype = DType(str(value))
        if not has(dtype):
            raise Unsupported(f"Poplar has no tensors of {dtype}")
        return dtype.row.onnx[1] if dtype.row.onnx is not None else 0
    if a is not None and a.kind is AttributeKind.FLOAT and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OpError(f"{op.name}: {name} is beyond 64 bits")
    return value
