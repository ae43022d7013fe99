"""Compares an answer with the set of answers a correct kernel may give. There is no tolerance here but the computed bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opc.ir.dtypes import numpy_dtype
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded
from opc.testing.oracle.wording import element_text, number_text


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: `ratio` is the worst error over its bound, 0 where all is exact, above 1 or infinite where it fails.

    `message` is empty when the answer is right, else it names the worst element, which is at `index` of `output`. `index` is None
    where the answer is wrong as a whole.
    """

    ratio: float
    message: str = ""
    output: str = ""
    index: tuple[int, ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether every element lies within its bound."""
        return not self.message


def compare(name: str, got: Array, want: Bounded) -> Comparison:
    """Return how the output `name` compares: dtype and shape exactly, every element within its set.

    NaN is right only where the set holds it, integers and bools must be in it, and a zero that is known to the sign keeps it.
    """
    dtype = numpy_dtype(want.dtype)
    if not isinstance(got, np.ndarray):
        return Comparison(np.inf, f"{name} is {type(got).__name__}, not an array")
    if got.dtype != dtype:
        return Comparison(np.inf, f"{name} has dtype {got.dtype}, not {dtype}")
    if got.shape != want.shape:
        return Comparison(np.inf, f"{name} has shape {list(got.shape)}, not {list(want.shape)}")
    if got.size == 0:
        return Comparison(0.0)
    with np.errstate(all="ignore"):
        return _compare(name, got, want)


def _compare(name: str, got: Array, want: Bounded) -> Comparison:
    bounds, nan = want.bounds, np.zeros(got.shape, np.bool_)
    if not bounds.is_float:
        # A bool set is (surely true, maybe true), so False is possible where it is not surely true; integers are an interval.
        value = got.astype(bounds.low.dtype)
        inside = (value >= bounds.low) & (value <= bounds.high)
        ratio = np.where(inside, 0.0, np.inf)
    else:
        value = got.astype(np.float64)
        nan = np.isnan(value)
        inside = np.where(nan, bounds.nan, (value >= bounds.low) & (value <= bounds.high))
        signed = (bounds.low == 0) & (bounds.high == 0) & (np.signbit(bounds.low) == np.signbit(bounds.high))
        inside &= nan | ~signed | (np.signbit(value) == np.signbit(bounds.low))
        middle = want.value
        error, distance = want.error_from(middle), np.abs(value - middle)
        ratio = np.where(distance == 0, 0.0, np.where(error > 0, distance / error, np.inf))
        ratio = np.where(inside, np.where(np.isfinite(ratio), np.minimum(ratio, 1.0), 0.0), np.maximum(ratio, 1.0))
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
    worst = float(ratio.max())
    if bool(inside.all()):
        return Comparison(worst)
    wrong = np.where(inside, -1.0, ratio)
    index = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), got.shape))
    count = int((~inside).sum())
    message = (
        f"{element_text(name, index)} is {number_text(got[index], want.dtype)}, but must be {_set_text(want, index)}; "
        f"error over bound {worst:.3g}, {count} of {got.size} elements wrong"
    )
    return Comparison(worst, message, name, index)


def _set_text(want: Bounded, index: tuple[int, ...]) -> str:
    """Return the allowed values of one element: `1.5 +- 1e-7`, `NaN`, `from 2.0 to inf or NaN`."""
    bounds = want.bounds
    low, high, nan = bounds.low[index], bounds.high[index], bool(bounds.nan[index])
    if bounds.is_float and low > high:
        return "NaN"
    if bounds.is_bool:
        text = str(low) if low == high else "True or False"
    elif low == high:
        text = number_text(low, want.dtype)
    elif np.isfinite(low) and np.isfinite(high) and bounds.is_float:
        text = f"{number_text(want.value[index], want.dtype)} +- {float(want.error[index]):.3g}"
    else:
        text = f"from {number_text(low, want.dtype)} to {number_text(high, want.dtype)}"
    return f"{text} or NaN" if nan else text
