"""Scalar arithmetic of the brute-force evaluator: what docs/language.md says of single numbers, on Python's own floats and ints.

Nothing here is imported from opc. A float is a float64 whatever the operand's dtype: what a kernel rounds, its judge allows.
An int is exact, and is wrapped to its dtype after each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath

INF, NAN = math.inf, math.nan
BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64, 4, 2)}
COMPUTED = {dtype: "int8" for dtype, bits in BITS.items() if bits < 8}
"""The type that integers of fewer than 8 bits are computed in."""
FLOATS = (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip

CLASSES: dict[str, tuple[str, ...]] = {
    "floating": FLOATS[:4], "float8": FLOATS[4:], "integer": ("int8", "int16", "int32", "int64", "uint8"),
    "unsigned": ("uint8", "uint16", "uint32", "uint64"), "small": (*COMPUTED,),
}  # fmt: skip
CLASSES["any"] = (*CLASSES["floating"], *CLASSES["integer"], "bool")
"""The sets of dtypes, as docs/language.md lists them."""


class NoValueError(Exception):
    """The op has no value here: the maximum of nothing, an index outside its axis."""


def wrapped(value: int, dtype: str) -> int:
    """Return an int modulo two to the power of its dtype's bits."""
    bits = BITS[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if not dtype.startswith("u") and value >> (bits - 1) else value


def computed(value: int, dtype: str) -> int:
    """Return an int modulo two to the power of the bits that its dtype is computed in."""
    return wrapped(value, COMPUTED.get(dtype, dtype))


def cast_to_int(value: Any, dtype: str) -> int:
    """Truncate and saturate a float, NaN to 0; wrap an int. The result is in the type that the dtype is computed in."""
    dtype = COMPUTED.get(dtype, dtype)
    if not isinstance(value, float):
        return wrapped(int(value), dtype)
    if math.isnan(value):
        return 0
    least, most = 0, (1 << BITS[dtype]) - 1
    if not dtype.startswith("u"):
        least, most = -(1 << (BITS[dtype] - 1)), (1 << (BITS[dtype] - 1)) - 1
    return most if value >= most else least if value <= least else int(value)


def _guard(fn: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function of math with IEEE's answers where Python raises; what is a pole or overflows is the caller's."""

    def call(x: float) -> float:
        try:
            return fn(x)
        except ValueError:
            return NAN

    return call


def _log(fn: Callable[[float], float], pole: float) -> Callable[[float], float]:
    def call(x: float) -> float:
        return NAN if math.isnan(x) or x < pole else -INF if x == pole else fn(x)

    return call


def _growing(fn: Callable[[float], float], odd: bool = False) -> Callable[[float], float]:
    def call(x: float) -> float:
        try:
            return fn(x)
        except OverflowError:
            return math.copysign(INF, x) if odd else INF

    return call


def div(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return NAN if x == 0 or math.isnan(x) else math.copysign(INF, x) * math.copysign(1, y)


def power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF
    except ValueError:
        # A negative number to a fraction has no value; zero to a negative number is a pole.
        return (-INF if math.copysign(1, x) < 0 and y % 2 == 1 else INF) if x == 0 else NAN


def sqrt(x: float) -> float:
    return NAN if math.isnan(x) or x < 0 else math.sqrt(x)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= -700 else 0.0 if x < -745 else math.exp(x)


def maximum(x: Any, y: Any) -> Any:
    return NAN if x != x or y != y else max(x, y)


def minimum(x: Any, y: Any) -> Any:
    return NAN if x != x or y != y else min(x, y)


def _whole(fn: Callable[[float], float]) -> Callable[[float], float]:
    def call(x: float) -> float:
        return x if math.isnan(x) or math.isinf(x) else math.copysign(float(fn(x)), x)

    return call


def sign(x: float) -> float:
    return x if x != x else float((x > 0) - (x < 0))


def _mpmath(fn: Callable[[Any], Any]) -> Callable[[float], float]:
    """Return a function of mpmath, where its arguments are drawn: away from poles."""
    return lambda x: float(fn(mpmath.mpf(x))) if math.isfinite(x) else NAN


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "acos": _guard(math.acos), "acosh": _guard(math.acosh), "asin": _guard(math.asin), "asinh": math.asinh, "atan": math.atan,
    "atanh": lambda x: math.copysign(INF, x) if abs(x) == 1 else _guard(math.atanh)(x), "ceil": _whole(math.ceil),
    "cos": _guard(math.cos), "cosh": _growing(math.cosh), "erf": math.erf, "erfc": math.erfc, "exp": _growing(math.exp),
    "exp2": _growing(math.exp2), "expm1": _growing(math.expm1), "floor": _whole(math.floor), "log": _log(math.log, 0),
    "log10": _log(math.log10, 0), "log1p": _log(math.log1p, -1), "log2": _log(math.log2, 0), "round": _whole(round),
    "rsqrt": lambda x: div(1.0, sqrt(x)), "sigmoid": sigmoid, "sign": sign, "sin": _guard(math.sin),
    "sinh": _growing(math.sinh, True), "sqrt": sqrt, "tan": _guard(math.tan), "tanh": math.tanh, "trunc": _whole(math.trunc),
    "abs": abs, "cbrt": math.cbrt, "lgamma": _mpmath(lambda x: mpmath.re(mpmath.loggamma(x))), "digamma": _mpmath(mpmath.digamma),
    "trigamma": _mpmath(lambda x: mpmath.psi(1, x)), "erfinv": _mpmath(mpmath.erfinv), "sinc": _mpmath(mpmath.sincpi),
    "i0": _mpmath(lambda x: mpmath.besseli(0, x)), "i1": _mpmath(lambda x: mpmath.besseli(1, x)),
}  # fmt: skip
"""The functions of one floating argument."""

TWO: dict[str, Callable[[float, float], float]] = {"hypot": math.hypot, "atan2": math.atan2}
"""Those of two."""


def floor_mod(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return x % y if y != 0 else 0
    return NAN if y == 0 or x != x or y != y or math.isinf(x) else x % y


def floor_div(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return x // y if y != 0 else 0
    quotient = div(x, y)
    return quotient if quotient != quotient or math.isinf(quotient) else float(math.floor(quotient))


def shift(x: int, count: int, left: bool) -> int:
    """Return x shifted; by a count that is none of 64 bits, all of it is shifted out."""
    if not 0 <= count < 64:
        return -1 if x < 0 and not left else 0
    return x << count if left else x >> count


def whole_power(x: int, n: int, dtype: str) -> int:
    """Return x ** n in a dtype; 1 over it, cut to a whole number, where n is negative."""
    if n < 0:
        return (x if n % 2 else 1) if abs(x) == 1 else 0
    return computed(pow(x, n, 2**64), dtype)


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Return a block of Philox-4x32-10, four words, as its authors write it down (Salmon et al., 2011, 3.3)."""
    words, keys = list(counter), list(key)
    for _ in range(10):
        low, high = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [(high >> 32) ^ words[1] ^ keys[0], high % 2**32, (low >> 32) ^ words[3] ^ keys[1], low % 2**32]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return words


def random_word(seed: int, counter: int) -> int:
    """Return the first word of the block that a counter numbers, under a seed."""
    seed, counter = seed % 2**64, counter % 2**64
    return philox((counter % 2**32, counter >> 32, 0, 0), (seed % 2**32, seed >> 32))[0]


def total(values: Iterable[Any]) -> Any:
    """Return the sum, of floats with a single rounding."""
    found = list(values)
    if not any(isinstance(v, float) for v in found):
        return sum(found)
    try:
        return math.fsum(found)
    except (ValueError, OverflowError):  # infinities of both signs, or an intermediate overflow
        return math.fsum(v / 4 for v in found) * 4 if all(map(math.isfinite, found)) else sum(found)


def greatest(values: Iterable[Any]) -> Any:
    found = _some(values)
    return NAN if any(v != v for v in found) else max(found)


def least(values: Iterable[Any]) -> Any:
    found = _some(values)
    return NAN if any(v != v for v in found) else min(found)


def place_of(pick: Callable[[Iterable[Any]], Any], values: Iterable[Any]) -> int:
    """Return the first place of the extreme element; a NaN is one."""
    found = _some(values)
    best = pick(found)
    return next(k for k, v in enumerate(found) if v == best or (v != v and best != best))


def order_of(values: Iterable[Any], descending: bool) -> list[int]:
    """Return the places of elements in their order; a NaN is greater than all numbers, and equal ones keep their order."""
    found = list(values)
    ranks = [sum(_ahead(b, a, descending) or (k < n and not _ahead(a, b, descending)) for k, b in enumerate(found))
             for n, a in enumerate(found)]  # fmt: skip
    return [ranks.index(k) for k in range(len(found))]


def _ahead(a: Any, b: Any, descending: bool) -> bool:
    """Whether one element stands ahead of another whichever is first."""
    if descending:
        a, b = b, a
    return bool(a == a and (b != b or a < b))


def _some(values: Iterable[Any]) -> list[Any]:
    found = list(values)
    if not found:
        raise NoValueError("an extreme element of nothing")
    return found
