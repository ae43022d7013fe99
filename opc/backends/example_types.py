"""The element types that an example of a spec is worked in."""

from __future__ import annotations

from opc.ir.dtypes import DType, TypeVar
from opc.ir.op import Example, Op


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
