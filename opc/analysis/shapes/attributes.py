"""Attribute values of a call: defaults filled in, types checked, native Python values out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opc.diagnostics import did_you_mean
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Op
from opc.names import in_words

INT64_MAX = 2**63 - 1


class ShapeError(ValueError):
    """A call is refused: the message names the op, the operands or the attribute, and the values that do not fit."""

    def __init__(self, message: str) -> None:
        super().__init__(in_words(message))


def _int(value: Any) -> int:
    if isinstance(value, bool) or type(value).__name__ == "bool":
        raise TypeError
    number = operator.index(value)
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise TypeError
    return number


def _float(value: Any) -> float:
    if isinstance(value, bool | str) or type(value).__name__ == "bool":
        raise TypeError
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    raise TypeError


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _dtype(value: Any) -> str:
    name = value.value if isinstance(value, DType) else value
    if name in {d.value for d in DTYPES}:
        return str(name)
    raise TypeError


_CONVERT: Mapping[AttributeKind, Callable[[Any], int | float | bool | str]] = {
    AttributeKind.INT: _int,
    AttributeKind.AXIS: _int,
    AttributeKind.FLOAT: _float,
    AttributeKind.BOOL: _bool,
    AttributeKind.STR: _str,
    AttributeKind.DTYPE: _dtype,
}

_A: Mapping[AttributeKind, str] = {
    AttributeKind.INT: "an int",
    AttributeKind.AXIS: "an int",
    AttributeKind.FLOAT: "a float",
    AttributeKind.BOOL: "a bool",
    AttributeKind.STR: "a str",
    AttributeKind.DTYPE: "a dtype's name",
}


def type_text(attribute: Attribute) -> str:
    """Return what an attribute takes, as messages say it: `an int`, `a list of 2 ints`."""
    text = _A[attribute.kind]
    if attribute.length is None:
        return text
    count = "" if attribute.length < 0 else f"{attribute.length} "
    return f"a list of {count}{text.split(' ', 1)[1]}s"


def convert(op: str, attribute: Attribute, value: Any) -> AttributeValue:
    """Return `value` as the attribute's type: an int, float, bool, str or a tuple of those; a dtype is its name.

    Raises:
        ShapeError: when the value has another type or length, or is none of the attribute's `values`.
    """
    element = _CONVERT[attribute.kind]
    try:
        if attribute.length is None:
            converted: Any = element(value)
        elif isinstance(value, str) or (not isinstance(value, Sequence) and not hasattr(value, "__iter__")):
            raise TypeError
        else:
            converted = tuple(element(v) for v in value)
            if attribute.length >= 0 and len(converted) != attribute.length:
                raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(f"{op}: {attribute.name} must be {type_text(attribute)}, but is {value!r}") from None
    if attribute.values and converted not in attribute.values:
        choices = ", ".join(f"'{v}'" for v in attribute.values)
        raise ShapeError(f"{op}: {attribute.name} = '{converted}' is not one of {choices}")
    result: AttributeValue = converted
    return result


def fill(op: Op, given: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return the value of every attribute of `op`: those given, checked, and the defaults of the others.

    None counts as not given.

    Raises:
        ShapeError: when an attribute is unknown, missing, or of the wrong type.
    """
    known = {a.name: a for a in op.attributes}
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ShapeError(f"{op.name}: there is no attribute '{name}'{f'; {hint}' if hint else ''}")
    values: dict[str, AttributeValue] = {}
    for attribute in op.attributes:
        value = given.get(attribute.name)
        if value is not None:
            values[attribute.name] = convert(op.name, attribute, value)
        elif attribute.required:
            raise ShapeError(f"{op.name}: the attribute '{attribute.name}' must be given")
        else:
            values[attribute.name] = convert(op.name, attribute, attribute.default)
    return values
