"""Plain Python functions of numbers, which the column `python` of the function table names, and `numpy` where NumPy has none.

Generated code carries those along that it uses, so each stands alone but for `math` and the functions it calls, and is written as
generated code is, 88 columns wide. Floating arithmetic is IEEE 754 double, as C's: nothing raises.

Formulas without a name are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from typing import Any


def _ieee(fn: Any, x: float) -> float:
    """Return fn(x), NaN for a domain error and an infinity for a result too large."""
    try:
        return float(fn(x))
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf if math.isfinite(x) else x


def _divide(x: float, y: float) -> float:
    """Return x / y, an infinity or NaN where y is zero."""
    if y == 0:
        sign = math.copysign(1.0, x) * math.copysign(1.0, y)
        return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, sign)
    return x / y


def _power(x: float, y: float) -> float:
    """Return x ** y as C's pow has it."""
    try:
        return math.pow(x, y)
    except ValueError:
        return math.inf if x == 0 else math.nan
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


def _maximum(x: float, y: float) -> float:
    """Return the greater of two numbers, NaN when one is."""
    return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)


def _shift_left(x: int, count: int) -> int:
    """Return x << count, 0 where the count is none of 64 bits."""
    return x << count if 0 <= count < 64 else 0


def _shift_right(x: int, count: int) -> int:
    """Return x >> count, what is left of 64 bits where the count is none of theirs."""
    return x >> (count if 0 <= count < 64 else 64)


def _philox(seed: int, counter: int) -> int:
    """Return the first word of a block of Philox-4x32-10 (Salmon et al., 2011)."""
    word = 2**32 - 1
    a, b, c, d = counter & word, counter >> 32 & word, 0, 0
    key, other = seed & word, seed >> 32 & word
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, c = second >> 32 ^ b ^ key, first >> 32 ^ d ^ other
        b, d = second & word, first & word
        key, other = key + 0x9E3779B9 & word, other + 0xBB67AE85 & word
    return a


def _sinc(x: float) -> float:
    """Return sin(pi x) / (pi x): 1 at 0, and 0 at other integers."""
    if x == 0 or not math.isfinite(x):
        return 1.0 if x == 0 else math.nan
    n = round(x)
    sine = math.sin(math.pi * (x - n)) / (math.pi * x)
    return -sine + 0.0 if n % 2 else sine + 0.0


def _sinc_slope(x: float) -> float:
    """Return the derivative of sinc; near 0 by its power series."""
    if not math.isfinite(x):
        return math.nan
    if abs(x) > 0.5:
        n = round(x)
        cosine = math.sin(math.pi * (0.5 - abs(x - n)))
        return ((-cosine if n % 2 else cosine) - _sinc(x)) / x
    angle, terms = math.pi * x, []
    for k in range(1, 14):
        coefficient = (-1) ** k * 2 * k / math.factorial(2 * k + 1)
        terms.append(coefficient * angle ** (2 * k - 1))
    return math.pi * math.fsum(terms) or -x


def _erfinv(x: float) -> float:
    """Return the inverse of erf, by Halley's method, of erfc where that has more digits."""
    size = abs(x)
    if not size < 1:
        return math.copysign(math.inf, x) if size == 1 else math.nan
    rest, z = 1.0 - size, 0.8862269254527580 * size
    if size > 0.3:
        # S. Winitzki's approximation, to three digits.
        log = math.log(rest) + math.log1p(size)
        half = 4.330746750799873 + 0.5 * log
        z = math.sqrt(math.sqrt(half * half - log / 0.147) - half)
    for _ in range(4):
        error = math.erf(z) - size if size < 0.5 else rest - math.erfc(z)
        step = error * 0.8862269254527580 * math.exp(z * z)
        z -= step / (1.0 + z * step)
    return math.copysign(z, x)


def _lgamma(x: float) -> float:
    """Return log |gamma(x)|, which is infinite at 0 and at negative integers."""
    if x <= 0 and (x == -math.inf or x == math.floor(x)):
        return math.inf
    return _ieee(math.lgamma, x)


def _polygamma(n: int, x: float) -> float:
    """Return the n-th derivative of digamma, n <= 3 (DLMF 5.15)."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x < 0:
        rest = x - round(x)
        if rest == 0:
            return math.nan if n % 2 == 0 else math.inf
        sine = math.sin(math.pi * rest) / math.pi
        cosine = math.sin(math.pi * (0.5 - abs(rest)))
        above = (-cosine, 1.0, -2 * cosine, 4 * cosine * cosine + 2)[n]
        mirrored = _polygamma(n, 1.0 - x)
        value = _divide(above, sine ** (n + 1))
        return value + mirrored if n % 2 == 0 else value - mirrored
    steps = []
    while x < 10:
        steps.append(_divide(1.0, x ** (n + 1)))
        x += 1.0
    v = 1.0 / x
    numbers = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
    numbers += [43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730]
    terms = [0.5 * math.factorial(n) * v, math.factorial(max(n - 1, 0)) if n else 0.0]
    for k, number in enumerate(numbers, 1):
        factors = math.prod(range(2 * k + 1, 2 * k + n)) if n else 1 / (2 * k)
        terms.append(number * factors * v ** (2 * k))
    if n == 0:
        return math.fsum([_ieee(math.log, x), *(-t for t in [*terms, *steps])])
    value = math.fsum(terms) * v**n + math.factorial(n) * math.fsum(steps)
    return value if n % 2 else -value


def _bessel_i(n: int, x: float) -> float:
    """Return the modified Bessel function of the first kind, of order n: 0 or 1.

    Up to 30 by the power series (DLMF 10.25.2) in integers of 120 binary places, beyond
    by the one for large arguments (DLMF 10.40.1).
    """
    size = abs(x)
    if not size < 720:
        return x if math.isnan(x) else math.copysign(math.inf, x if n else 1.0)
    if size < 30:
        square = int(size * 2.0**60) ** 2 >> 2
        term, total, k = 1 << 120, 1 << 120, 1
        while term:
            term = (term * square >> 120) // (k * (k + n))
            total, k = total + term, k + 1
        return total / (1 << 120) * (0.5 * x if n else 1.0)
    terms = [1.0]
    for k in range(1, 30):
        terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * n * n) / (8 * k * size))
    scale = math.exp(0.5 * size)
    value = scale * (math.fsum(terms) / math.sqrt(2 * math.pi * size)) * scale
    return math.copysign(value, x) if n else value
