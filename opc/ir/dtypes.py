"""Element types of the IR: concrete dtypes, type variables, accumulator types, and the weak types of literals.

An element type says how a tensor is stored. The value type of an expression says how it is computed: float16 and bfloat16 are
computed in float32, so a read of `x: T` has the type variable T again, and `compute()` of its binding tells the C type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from opc.ir.node import interned, memoised

INT64_MIN = -(2**63)
"""The least whole number. C++ and NumPy have no literal for it: its digits without the sign are too many."""


class DType(Enum):
    """A concrete element type, named as in the spec language."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    BOOL = "bool"

    # Members are singletons: the hash of the object is found without a call of Python's.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value

    @property
    def is_floating(self) -> bool:
        """Whether this is one of the four floating types."""
        return self in FLOATING

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type; bool is not one."""
        return self in INTEGER

    @property
    def bits(self) -> int:
        """Size of one element in bits as stored."""
        return 8 if self is DType.BOOL else int("".join(c for c in self.value if c.isdigit()))

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes as stored."""
        return self.bits // 8

    @property
    def compute(self) -> DType:
        """The type values of this dtype are computed in: float32 for the 16-bit floats, else itself."""
        return DType.FLOAT32 if self in (DType.FLOAT16, DType.BFLOAT16) else self

    def holds(self, value: int) -> bool:
        """Whether this is an integer type or bool that has the value, or a floating one, which rounds it."""
        if self.is_floating:
            return True
        if self in (DType.BOOL, DType.UINT8):
            return 0 <= value < (2 if self is DType.BOOL else 256)
        half = 1 << (self.bits - 1)
        return -half <= value < half

    @property
    def accumulator(self) -> DType:
        """The type `acc(T)` stands for: float32 up to float32, float64, and int64 for integers and bool."""
        if self.is_floating:
            return self.compute
        return DType.INT64


FLOATING: tuple[DType, ...] = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
INTEGER: tuple[DType, ...] = (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8)
ANY: tuple[DType, ...] = (*FLOATING, *INTEGER, DType.BOOL)
TYPE_SETS: Mapping[str, tuple[DType, ...]] = {"floating": FLOATING, "integer": INTEGER, "any": ANY}


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class TypeVar:
    """A type variable of the spec's `types`, over the dtypes it may be bound to."""

    name: str
    dtypes: tuple[DType, ...]

    def __str__(self) -> str:
        return self.name


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class Acc:
    """`acc(T)`: the accumulator type of a type variable or dtype."""

    of: TypeVar | DType

    def __str__(self) -> str:
        return f"acc({self.of})"


class Weak(Enum):
    """The type of a literal, dimension, index or attribute: it takes the type of what it is combined with."""

    INT = "weak int"
    FLOAT = "weak float"

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value


ElementType: TypeAlias = DType | TypeVar | Acc
ValueType: TypeAlias = DType | TypeVar | Acc | Weak
Binding: TypeAlias = Mapping[str, DType]
"""Type variable name to the dtype it is bound to."""


@memoised
def candidates(t: ElementType) -> tuple[DType, ...]:
    """Return every dtype `t` may stand for, in the order of the spec."""
    match t:
        case DType():
            return (t,)
        case TypeVar():
            return t.dtypes
        case Acc():
            return tuple(dict.fromkeys(d.accumulator for d in candidates(t.of)))


def resolve(t: ElementType, binding: Binding) -> DType:
    """Return the dtype `t` is stored as under `binding`.

    Raises:
        KeyError: when a type variable is not bound.
    """
    match t:
        case DType():
            return t
        case TypeVar():
            return binding[t.name]
        case Acc():
            return resolve(t.of, binding).accumulator


def compute_dtype(t: ValueType, binding: Binding) -> DType:
    """Return the dtype values of type `t` are computed in under `binding`; weak types stand for int64 and float64."""
    match t:
        case Weak.INT:
            return DType.INT64
        case Weak.FLOAT:
            return DType.FLOAT64
        case _:
            return resolve(t, binding).compute


@memoised
def is_floating(t: ValueType) -> bool:
    """Whether every dtype `t` may stand for is floating."""
    return t is Weak.FLOAT or (not isinstance(t, Weak) and all(d.is_floating for d in candidates(t)))


@memoised
def is_integer(t: ValueType) -> bool:
    """Whether every dtype `t` may stand for is an integer type."""
    return t is Weak.INT or (not isinstance(t, Weak) and all(d.is_integer for d in candidates(t)))


def is_bool(t: ValueType) -> bool:
    """Whether `t` is bool."""
    return t is DType.BOOL
