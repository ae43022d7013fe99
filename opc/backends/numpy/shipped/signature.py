"""The operands and attributes of an op as NumPy users give them: dtypes, conversions,
and what C is handed.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DLPACK: Mapping[str, tuple[int, int]] = {}
"""Type code and bits of each dtype in DLPack. A `dtype` attribute is the position in
this table.
"""

DTYPE_POSITION: dict[Any, int] = {}
"""The position of each value a `dtype` attribute was given as; filled by the careful
way, read by the fast one.
"""

BOOL = {False: 0, True: 1}


@dataclass(frozen=True, slots=True)
class Input:
    """An input: the name of its element type (inputs of one type agree in dtype) and
    the dtypes that may stand for it.
    """

    name: str
    type: str
    dtypes: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: `length` is None for a scalar, a number for a list of that length,
    -1 for a list of any length.
    """

    name: str
    kind: str
    length: int | None = None
    values: tuple[str, ...] = ()

    def encode(self, op: str, value: Any) -> list[Any]:
        """Return the arguments of the C function that stand for `value`: one, or length
        and elements of a list of any length.

        Raises:
            TypeError: when the value is not of the attribute's kind.
            ValueError: when a string is not among the values, or a list has another
            length.
        """
        try:
            return self._encode(value)
        except (TypeError, KeyError):
            of = "a list of " if self.length is not None else ""
            kind = "int" if self.kind == "axis" else self.kind
            text = f"{self.name} must be {of}{kind}, got {value!r}"
            raise TypeError(f"{op}: {text}") from None
        except ValueError as error:
            raise ValueError(f"{op}: {self.name}{error}, got {value!r}") from None

    def _encode(self, value: Any) -> list[Any]:
        scalar = getattr(self, f"_{self.kind}")
        if self.length is None:
            return [scalar(value)]
        if isinstance(value, str | bytes):
            raise TypeError
        elements = [scalar(v) for v in value]
        if self.length >= 0 and len(elements) != self.length:
            raise ValueError(f" has {self.length} elements")
        return [elements] if self.length >= 0 else [len(elements), elements]

    def _int(self, value: Any) -> int:
        number = operator.index(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError(" does not fit in 64 bits")
        return number

    _axis = _int

    def _float(self, value: Any) -> float:
        if isinstance(value, str | bytes):
            raise TypeError
        try:
            return float(value)
        except OverflowError:
            raise ValueError(" does not fit in 64 bits") from None

    def _bool(self, value: Any) -> int:
        return BOOL[value]

    def _str(self, value: Any) -> int | bytes:
        if not isinstance(value, str):
            raise TypeError
        if not self.values:
            return value.encode()
        if value not in self.values:
            raise ValueError(f" is one of {', '.join(self.values)}")
        return self.values.index(value)

    def _dtype(self, value: Any) -> int:
        name = value if isinstance(value, str) else np.dtype(value).name
        if name not in DLPACK or value is None:  # NumPy takes None for float64
            raise TypeError
        DTYPE_POSITION[value] = list(DLPACK).index(name)
        return DTYPE_POSITION[value]


@dataclass(frozen=True, slots=True)
class Output:
    """An output; an optional one is computed only when wanted, and never when the input
    `of` that it is a gradient of is absent.
    """

    name: str
    optional: bool = False
    of: str | None = None


def weak_array(op: str, spec: Input, value: Any, known: np.dtype[Any] | None) -> Array:
    """Return a number or a nested list as an array of a dtype that the input takes.

    That is `known`, the dtype of the other inputs of its type, else the one NumPy gives
    such numbers or a floating one.

    Raises:
        TypeError: when that dtype can't hold such numbers.
        ValueError: when a number is too large for it.
    """
    array = np.asarray(value)
    names = (array.dtype.name, "float64", "float32") if known is None else (known.name,)
    for name in names:
        if name not in spec.dtypes:
            continue
        dtype = known or dtype_of(*DLPACK[name])
        # NumPy has no rules for dtypes that are not its own: floating ones.
        kind = dtype if dtype.isbuiltin == 1 else np.float16
        if np.can_cast(array.dtype, kind, "same_kind"):
            try:
                return np.asarray(value, dtype=dtype)
            except OverflowError as error:
                raise ValueError(f"{op}: {spec.name}: {error}") from None
    takes = ", ".join(spec.dtypes if known is None else names)
    text = f"{op}: {spec.name} would have dtype {array.dtype}, but may be {takes}"
    raise TypeError(text)


def has_dtype(value: Any) -> bool:
    """Whether a value has a dtype of its own, as lists and numbers have not."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def as_array(name: str, value: Any) -> Array:
    """Return an array-like with a dtype of its own as an array a kernel can read,
    copied only where it must be.
    """
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        array = _from_dlpack(name, value)
    else:
        array = np.asarray(value)
    if array.dtype.name not in DLPACK:
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned or any(s % array.itemsize for s in array.strides):
        array = array.copy()
    return array


def _from_dlpack(name: str, value: Any) -> Array:
    device = int(value.__dlpack_device__()[0])
    if device != 1:
        raise ValueError(
            f"{name} is not in the CPU's memory (DLPack device type {device})"
        )
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(value).__name__
        raise TypeError(
            f"{name}: NumPy takes no such {kind} through DLPack: {error}"
        ) from error


def dtype_of(code: int, bits: int) -> np.dtype[Any]:
    """Return the NumPy dtype of a DLPack type code and number of bits."""
    name = next(name for name, known in DLPACK.items() if known == (code, bits))
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
