"""The dtypes that a framework has, and arrays of those that it knows but NumPy does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from opc.backends.base import Unsupported
from opc.diagnostics import Diagnostic
from opc.ir.dtypes import DTYPES, DType, candidates, numpy_dtype
from opc.ir.op import Op

if TYPE_CHECKING:
    from opc.backends.base import Array

_BY_NAME = {d.value: d for d in DTYPES}


def fills_bytes(dtype: DType) -> bool:
    """Whether an element has all bits of its bytes: not that of an integer type of fewer than 8 bits."""
    return not dtype.is_small


def lacking(ops: Iterable[Op], title: str, has: Callable[[DType], bool]) -> Iterator[Diagnostic]:
    """Yield why a framework can't carry ops: an operand, or the default of an attribute, of dtypes that it does not have.

    The first operand of a type represents the others.
    """
    told = set()
    for op in ops:
        for o in (*op.inputs, *op.outputs):
            dtypes = candidates(o.type)
            if not any(map(has, dtypes)) and dtypes not in told:
                told.add(dtypes)
                yield Diagnostic(
                    f"{o.name} of {op.name} is {', '.join(map(str, dtypes))}, which {title} has no tensors of", o.span
                )
        for a in op.attributes if op.derivation is None else ():
            if a.binds is not None and not a.required and not has(DType(str(a.default))):
                yield Diagnostic(f"the default of '{a.name}' is {a.default}, which {title} has no tensors of", a.span)


def require_dtype(array: Array, title: str, has: Callable[[DType], bool]) -> None:
    """Raise Unsupported for an array of a dtype of opc's that a framework does not have."""
    require_named(array.dtype.name, title, has)


def require_named(name: str, title: str, has: Callable[[DType], bool]) -> None:
    """Raise Unsupported for the name of a dtype of opc's that a framework does not have."""
    dtype = _BY_NAME.get(name)
    if dtype is not None and not has(dtype):
        raise Unsupported(f"{title} has no tensors of {dtype}")


def require_dtypes(
    op: Op, arrays: Mapping[str, Array | None], attributes: Mapping[str, object], title: str, has: Callable[[DType], bool]
) -> None:
    """Raise Unsupported for a call with arrays, or attributes that name dtypes, of one that a framework does not have."""
    for array in arrays.values():
        if array is not None:
            require_dtype(array, title, has)
    for a in op.attributes:
        chosen = _BY_NAME.get(str(attributes.get(a.name, a.default))) if a.binds is not None else None
        if chosen is not None and not has(chosen):
            raise Unsupported(f"{title} has no tensors of {chosen}")


def foreign(array: Array) -> DType | None:
    """Return the dtype of an array for which NumPy has none of its own, else None."""
    dtype = _BY_NAME.get(array.dtype.name)
    return None if dtype is None or dtype.row.numpy == "numpy" else dtype


def as_bits(array: Array) -> Array:
    """Return an array with its elements as unsigned integers, sharing its memory."""
    return array.view(f"u{array.dtype.itemsize}")


def of_bits(array: Array, dtype: DType | str) -> Array:
    """Return an array with elements of a dtype from one of their bits, sharing its memory."""
    return array.view(numpy_dtype(DType(dtype)))
