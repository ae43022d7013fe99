"""How messages of the proof write numbers and elements: as short as the number's own type allows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opc.ir.dtypes import DType, numpy_dtype
from opc.testing.oracle.bounds import Array


def number_text(value: object, dtype: DType) -> str:
    """Return the shortest decimal that reads as the same number of `dtype`: `0.1` for the float32 nearest to 0.1.

    A value that `dtype` does not hold is rounded to it.
    """
    if not dtype.is_floating:
        return str(np.asarray(value))
    with np.errstate(all="ignore"):
        kind = numpy_dtype(dtype).type
        number = float(kind(value))
        if math.isnan(number):
            return "NaN"
        digits = next((n for n in range(1, 17) if float(kind(float(f"{number:.{n}g}"))) == number), 17)
    return str(float(f"{number:.{digits}g}"))


def array_number(array: Array, index: tuple[int, ...] = ()) -> str:
    """Return one element of an array in the shortest form of the array's dtype."""
    return number_text(array[index], DType(str(array.dtype)))


def element_text(name: str, index: Sequence[int]) -> str:
    """Return what an element is called: `y[1, 3]`, and `y` alone where it has no axes."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]" if len(index) else name


__all__ = ["array_number", "element_text", "number_text"]
