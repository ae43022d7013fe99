"""The defaults of a family's attributes, as the initialiser of its attribute struct in C++."""

from __future__ import annotations

import math
from collections.abc import Iterator

from opc.emit.abi import Field, attribute_fields, encode
from opc.emit.cpp.text import string_literal, whole_number
from opc.ir.op import Attribute, Family


def default_members(family: Family) -> list[str]:
    """Return the initialiser of each member of the attribute struct: required attributes are zero, sizes that data tells -1."""
    return [_default(family, f) for f in attribute_fields(family)] or ["0"]


def number(value: int | float) -> str:
    """Return a number as C++ writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return '__builtin_nan("")' if math.isnan(value) else "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return whole_number(value) if isinstance(value, int) else repr(value)


def default_arrays(family: Family) -> Iterator[dict[str, str]]:
    """Yield the arrays that the defaults of variable lists point to."""
    for field in attribute_fields(family):
        a = family.forward.attribute(field.attribute)
        if field.count is not None and field.count < 0 and a.default:
            yield {"type": field.c_type, "name": f"{a.name}_default", "text": _values(a)}


def _values(a: Attribute) -> str:
    values = encode(a, a.default)
    return ", ".join(number(v) for v in values) if isinstance(values, tuple) else ""


def _default(family: Family, field: Field) -> str:
    """Return the initialiser of one member of the attribute struct; zero for a required attribute."""
    a = family.forward.attribute(field.attribute)
    if a.name in family.forward.told:
        return "-1"
    if field.is_length:
        return str(len(a.default)) if isinstance(a.default, tuple) else "0"
    if field.count is not None and field.count < 0:
        return f"{a.name}_default" if a.default else "nullptr"
    if a.required:
        return "{}"
    if field.count is not None:
        return f"{{{_values(a)}}}"
    value = encode(a, a.default)
    return string_literal(value) if isinstance(value, str) else number(value) if isinstance(value, int | float) else "{}"
