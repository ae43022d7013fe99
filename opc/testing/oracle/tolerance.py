"""Compares an answer with the set of answers a correct kernel may give. There is no tolerance here but the computed bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opc.testing.oracle.bounds import Array, numpy_dtype
from opc.testing.oracle.evaluation import Bounded


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: `ratio` is the worst error over its bound, 0 where all is exact, above 1 or infinite where it fails.

    `message` is empty when the answer is right, else it names the worst element.
    """

    ratio: float
    message: str = ""

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
    index = np.unravel_index(int(wrong.argmax()), got.shape)
    at = [int(i) for i in index]
    count = int((~inside).sum())
    return Comparison(
        worst,
        f"{name}{at} is {_text(got[index])}, but must be {_set_text(want, index)}; "
        f"error over bound {worst:.3g}, {count} of {got.size} elements wrong",
    )


def _text(value: object) -> str:
    number = np.asarray(value)
    if number.dtype == np.bool_ or number.dtype.kind in "iu":
        return str(number)
    return f"{float(number):.17g}"


def _set_text(want: Bounded, index: tuple[np.intp, ...]) -> str:
    """Return the allowed values of one element: `1.5 +- 1e-7`, `NaN`, `from 2 to inf or NaN`."""
    bounds = want.bounds
    low, high, nan = bounds.low[index], bounds.high[index], bool(bounds.nan[index])
    if bounds.is_float and low > high:
        return "NaN"
    if bounds.is_bool:
        text = str(low) if low == high else "True or False"
    elif low == high:
        text = _text(low)
    elif np.isfinite(low) and np.isfinite(high) and bounds.is_float:
        text = f"{float(want.value[index]):.17g} +- {float(want.error[index]):.3g}"
    else:
        text = f"from {_text(low)} to {_text(high)}"
    return f"{text} or NaN" if nan else text
