"""The examples of a spec as calls of the Python function, as a wheel tells them: see `opc.backends.shipped.examples`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opc.ir.dtypes import Binding, DType, TypeVar, numpy_dtype, resolve
from opc.ir.op import Example, Op, Operand

if TYPE_CHECKING:
    from opc.backends.base import Array


def example_binding(op: Op, example: Example) -> dict[str, DType]:
    """Return what the type variables stand for in an example: what its attributes say, else the widest floating dtype, else the
    first."""
    values = dict(example.values)
    chosen = {a.binds: values.get(a.name, a.default) for a in op.attributes if a.binds is not None}
    said = {name: DType(value) for name, value in chosen.items() if value is not None}
    return {t.name: _widest(t) for t in op.types} | said


def _widest(variable: TypeVar) -> DType:
    """Return the floating dtype with the most bits, the last of several; the first dtype where none is floating."""
    floating = [d for d in reversed(variable.dtypes) if d.is_floating]
    return max(floating, key=lambda d: d.bits) if floating else variable.dtypes[0]


def told_example(op: Op, example: Example) -> dict[str, Any]:
    """Return an example as JSON has it: operands with the dtype that each has in it, null for those that are absent, attributes,
    and what the outputs are to be.

    Sizes that data tells are left to it. Where a dtype can't hold an operand's numbers, rounding them may decide of what the
    body tests or counts: outputs are told as arrays without values then.
    """
    values: dict[str, Any] = dict(example.values)
    binding = example_binding(op, example)
    inputs = {x.name: _array(x, values[x.name], binding) for x in op.inputs if values.get(x.name) is not None}
    exact = all(_holds(resolve(x.type, binding), values[x.name]) for x in op.inputs if x.name in inputs)
    outputs = {o.name: _array(o, values[o.name], binding) for o in op.outputs if o.name in values}
    return {
        "inputs": {x.name: _numbers(inputs[x.name]) if x.name in inputs else None for x in op.inputs},
        "attributes": {a.name: values[a.name] for a in op.attributes if a.name in values and a.name not in example.told},
        "outputs": {name: _numbers(array) if exact else _sizes(array) for name, array in outputs.items()},
    }


def plain_array(value: object) -> Array:
    """Return numbers as an array. NumPy makes floating ones of whole numbers beyond int64 that stand beside smaller ones."""
    import numpy as np

    array, whole = np.asarray(value), np.asarray(value, object)
    if array.dtype.kind == "O":  # a whole number beyond 64 bits, for an operand of a floating type
        return array.astype(np.float64)
    beyond = array.dtype.kind == "f" and all(isinstance(v, int) and 0 <= v < 2**64 for v in whole.flat)
    return whole.astype(np.uint64) if beyond else array


def _array(o: Operand, value: object, binding: Binding) -> Array:
    """Return numbers of a spec as the array that the operand has."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return plain_array(value).astype(numpy_dtype(resolve(o.type, binding)))


def _holds(dtype: DType, value: object) -> bool:
    """Whether a dtype holds numbers of a spec as well as float64 does; integers wrap in the semantics of the language."""
    import numpy as np

    if not dtype.is_floating or dtype is DType.FLOAT64:
        return True
    wide = plain_array(value).astype(np.float64)
    with np.errstate(over="ignore"):
        return bool(np.array_equal(wide.astype(numpy_dtype(dtype)).astype(np.float64), wide, equal_nan=True))


def _numbers(array: Array) -> dict[str, object]:
    import numpy as np

    name = array.dtype.name
    wide = array.astype(np.float64) if "float" in name else array.astype(np.int64) if array.dtype.isbuiltin != 1 else array
    return {**_sizes(array), "values": wide.tolist()}


def _sizes(array: Array) -> dict[str, object]:
    return {"dtype": array.dtype.name, "shape": [*array.shape]}
