"""What a wheel says of its ops: the spec that each is of, and its examples as calls of the Python function."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from opc.backends.example_types import example_binding
from opc.ir.dtypes import Binding, DType, numpy_dtype, resolve
from opc.ir.op import Example, Family, Op, Operand
from opc.names import spelled

FILE = "ops.json"
"""The file in the module."""


def text(ops: Iterable[tuple[str, Family]]) -> str:
    """Return the JSON that tells of each op, by its name in Python; `ops` has each family behind the name of its spec's file.

    Infinities and NaN stand as Python's `json` writes and reads them.
    """
    found = {family.forward.name: _described(spec, family) for spec, family in ops}
    rows = [f"{json.dumps(name)}: {json.dumps(told)}" for name, told in sorted(found.items())]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _described(spec: str, family: Family) -> dict[str, object]:
    op = family.forward
    return {
        "spec": spec,
        "op": spelled(op.name),
        "outputs": [o.name for o in op.outputs],
        "examples": [_call(op, example) for example in family.examples],
    }


def _call(op: Op, example: Example) -> dict[str, object]:
    """Return an example: operands with the dtype that each has in it, null for those that are absent, attributes, and what the
    outputs are to be.

    Sizes that data tells are left to it. Where a dtype can't hold an operand's numbers, rounding them may decide of what the
    body tests or counts: outputs are told as arrays without values then.
    """
    values: dict[str, Any] = dict(example.values)
    binding = example_binding(op, example)
    inputs = {x.name: _array(x, values[x.name], binding) for x in op.inputs if values.get(x.name) is not None}
    attributes = {a.name: values[a.name] for a in op.attributes if a.name in values and a.name not in example.told}
    exact = all(_holds(resolve(x.type, binding), values[x.name]) for x in op.inputs if x.name in inputs)
    outputs = {o.name: _array(o, values[o.name], binding) for o in op.outputs if o.name in values}
    return {
        "inputs": {x.name: _numbers(inputs[x.name]) if x.name in inputs else None for x in op.inputs},
        "attributes": attributes,
        "outputs": {name: _numbers(array) if exact else _sizes(array) for name, array in outputs.items()},
    }


def _array(o: Operand, value: object, binding: Binding) -> np.ndarray[Any, Any]:
    """Return numbers of a spec as the array that the operand has."""
    return _plain(value).astype(numpy_dtype(resolve(o.type, binding)))


def _plain(value: object) -> np.ndarray[Any, Any]:
    """Return numbers as an array. NumPy makes floating ones of whole numbers beyond int64 that stand beside smaller ones."""
    array, whole = np.asarray(value), np.asarray(value, object)
    beyond = array.dtype.kind == "f" and all(isinstance(v, int) and 0 <= v < 2**64 for v in whole.flat)
    return whole.astype(np.uint64) if beyond and whole.size else array


def _holds(dtype: DType, value: object) -> bool:
    """Whether a dtype holds numbers of a spec as well as float64 does; integers wrap in the semantics of the language."""
    if not dtype.is_floating or dtype is DType.FLOAT64:
        return True
    wide = _plain(value).astype(np.float64)
    with np.errstate(over="ignore"):
        return bool(np.array_equal(wide.astype(numpy_dtype(dtype)).astype(np.float64), wide, equal_nan=True))


def _numbers(array: np.ndarray[Any, Any]) -> dict[str, object]:
    name = array.dtype.name
    wide = array.astype(np.float64) if "float" in name else array.astype(np.int64) if array.dtype.isbuiltin != 1 else array
    return {**_sizes(array), "values": wide.tolist()}


def _sizes(array: np.ndarray[Any, Any]) -> dict[str, object]:
    return {"dtype": array.dtype.name, "shape": [*array.shape]}
