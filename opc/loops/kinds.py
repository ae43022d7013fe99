"""The types of variables in the loop IR: those of values, and what the runtime declares."""

from __future__ import annotations

from typing import Any, TypeAlias

from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import Extension
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Named:
    """A type of the runtime's, or one declared in the function, that is no value type; `of` are its template arguments."""

    name: str
    of: tuple[Any, ...] = ()

    def __str__(self) -> str:
        if self.name == "const":
            return f"const {', '.join(map(type_text, self.of))}"
        return f"{self.name}<{', '.join(map(type_text, self.of))}>" if self.of else self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer to elements of a type, which a `constant` one does not change."""

    to: ValueType
    constant: bool = False

    def __str__(self) -> str:
        return f"{'const ' if self.constant else ''}{self.to}*"


@dataclass(frozen=True, slots=True)
class StoredType:
    """The type that the elements of an operand, whose values have the type `of`, are stored as."""

    of: ValueType
    operand: str
    constant: bool = False

    def __str__(self) -> str:
        return f"{'const ' if self.constant else ''}stored({self.operand})"


@dataclass(frozen=True, slots=True)
class ReferenceType:
    """A reference to a variable of a type, as a parameter."""

    to: ValueType | Named

    def __str__(self) -> str:
        return f"{self.to}&"


Kind: TypeAlias = ValueType | Named | Pointer
"""The type of a variable."""


def type_text(of: object) -> str:
    """Return a type, or an argument of a template, as text."""
    match of:
        case Weak.INT:
            return "int64"
        case Weak.FLOAT:
            return "float64"
        case Extension():
            return of.text()
        case _:
            return str(of)
