"""The runtime's conversions of minifloats against those of NumPy and ml_dtypes, and its functions against wider types."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from opc.backends.kernel.backend import COMMON_FLAGS, LOOP_FLAGS, VARIANTS, instruction_sets
from opc.ir.dtypes import DTYPES, numpy_dtype
from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.enclosures import numpy_function
from tests.amounts import MANY
from tests.emit.compilers import COMPILERS, run_compiler
from tests.emit.kernel_library import INCLUDE

Array = np.ndarray[Any, Any]
Convert = Callable[[str, Array, Any], Array]

UNARY = (
    "exp", "expm1", "exp2", "tanh", "sinh", "cosh", "sigmoid", "log", "log2", "log10", "log1p", "asinh", "acosh", "atanh",
    "erf", "erfc", "asin", "acos", "atan", "cbrt", "sinc", "erfinv", "lgamma", "digamma", "trigamma", "i0", "i1",
)  # fmt: skip
HIDDEN = ("sinc_slope", "tetragamma", "pentagamma")
"""What derivatives alone call."""

WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

OTHERS = {
    "float8_e3m4": "float8_e3m4, uint8_t, 4, 3, ieee",
    "float8_e4m3b11fnuz": "float8_e4m3b11fnuz, uint8_t, 3, 11, finite",
}
"""Formats that no dtype of opc has, and that a row would be enough for."""

MINIFLOATS = {d.value: numpy_dtype(d) for d in DTYPES if d.row.minifloat} | {n: np.dtype(getattr(ml_dtypes, n)) for n in OTHERS}

SOURCE = """
#include "opc/rows/loops.h"
extern "C" {
#define EXPORT __attribute__((visibility("default")))
#define LOOP OPC_SIMD for (int64_t i = 0; i < n; ++i)
#define FORMAT(name, word, fraction_bits, exponent_bias, encodings) \\
  struct name { \\
    typedef word bits_type; \\
    enum { fraction = fraction_bits, bias = exponent_bias }; \\
    static constexpr opc::top_encodings top = opc::top_encodings::encodings; \\
    word bits; \\
  };
#define CONVERSIONS(name, word, ...) \\
  EXPORT void widen_##name(float *to, const word *from, int64_t n) { opc::widen_row<name>(to, from, n); } \\
  EXPORT void narrow_##name(word *to, const float *from, int64_t n) { opc::narrow_row<name>(to, from, n); }
using namespace opc;
OPC_MINIFLOATS(CONVERSIONS)
EXPORT void exp_below_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::exp_below(from[i] > 89 ? 89 : from[i]); }
EXPORT void exp_below_double(double *to, const double *from, int64_t n) {
  LOOP to[i] = opc::exp_below(from[i] > 710 ? 710 : from[i]);
}
EXPORT void pow_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::pow(from[i], from[i + n]); }
EXPORT void pow_double(double *to, const double *from, int64_t n) { LOOP to[i] = opc::pow(from[i], from[i + n]); }
EXPORT void same_float(float *to, const float *from, int64_t n, float y) { LOOP to[i] = from[i] / opc::pow(1 + from[i], y); }
EXPORT void same_double(double *to, const double *from, int64_t n, double y) { LOOP to[i] = from[i] / opc::pow(1 + from[i], y); }
""" + "".join(
    f"EXPORT void {name}_{kind}({kind} *to, const {kind} *from, int64_t n) {{"
    f" LOOP to[i] = {FUNCTIONS[name].c.format('from[i]')}; }}\n"
    for name in (*UNARY, *HIDDEN)
    for kind in ("float", "double")
) + "".join(
    f"EXPORT void {name}_{kind}({kind} *to, const {kind} *from, int64_t n) {{"
    f" LOOP to[i] = opc::{name}(from[i], from[i + n]); }}\n"
    for name in ("hypot", "atan2")
    for kind in ("float", "double")
) + "".join(
    f"EXPORT void through_{whole}_{kind}({kind} *to, const {kind} *from, int64_t n) {{"
    f" LOOP to[i] = opc::cast<{kind}>(opc::cast<{whole}_t>(from[i])); }}\n"
    for whole in WHOLE
    for kind in ("float", "double")
) + "".join(f"FORMAT({f})\nCONVERSIONS({f})\n" for f in OTHERS.values()) + "}\n"  # fmt: skip


Library = tuple[ctypes.CDLL, str]
"""A loaded library, and the assembly that it was made from."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Library]:
    """Return a function that compiles the source by a compiler for an instruction set, once for all tests."""

    @cache
    def made(compiler: str, machine: str) -> Library:
        directory = tmp_path_factory.mktemp("runtime")
        (directory / "runtime.cpp").write_text(SOURCE)
        flags = [*COMMON_FLAGS, *LOOP_FLAGS, *VARIANTS[machine], f"-I{INCLUDE}"]
        text, loops, linked = directory / "runtime.s", directory / "runtime.o", directory / "runtime.so"
        run_compiler(COMPILERS[compiler], *flags, "-S", directory / "runtime.cpp", "-o", text)
        run_compiler(COMPILERS[compiler], *VARIANTS[machine], "-c", text, "-o", loops)
        # No -lm nor -lmvec: what the functions are written with is here.
        subprocess.run(["g++", "-shared", "-nodefaultlibs", "-Wl,--no-undefined", loops, "-o", linked], check=True)
        return ctypes.CDLL(str(linked)), text.read_text()

    return made


@pytest.fixture(scope="module", params=[(c, m) for c in COMPILERS for m in instruction_sets()], ids="-".join)
def convert(request: pytest.FixtureRequest, library: Callable[[str, str], Library]) -> Convert:
    loaded, _ = library(*request.param)

    def call(name: str, values: Array, dtype: Any) -> Array:
        result = np.empty(values.shape[-1:], dtype)
        loaded[name](ctypes.c_void_p(result.ctypes.data), ctypes.c_void_p(values.ctypes.data), ctypes.c_int64(result.size))
        return result

    return call


def floats(step: int) -> Array:
    """Return every `step`-th float32 by its bits, NaN and infinity among them."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    special = np.array(
        [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001], np.uint32
    )
    return np.concatenate([bits, special]).view(np.float32)


def every(dtype: Any) -> Array:
    """Return every value of a dtype, by its bits."""
    size = np.dtype(dtype).itemsize
    return np.arange(1 << 8 * size).astype(f"u{size}").view(dtype)


@pytest.mark.rotating
@pytest.mark.parametrize("name", MINIFLOATS)
def test_widening_is_exact(convert: Convert, name: str) -> None:
    values = every(MINIFLOATS[name])
    got, want = convert(f"widen_{name}", values, np.float32), values.astype(np.float32)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.rotating
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("convert", [("g++", m) for m in instruction_sets()], ids="-".join, indirect=True)
def test_zeros_that_were_integers_have_no_sign(convert: Convert, whole: str, kind: Any) -> None:
    """g++ makes a trunc of a conversion to an integer and back, which keeps the sign of what it makes 0."""
    values = np.linspace(-100, 100, 1601).astype(kind)
    got = convert(f"through_{whole}_{'float' if kind is np.float32 else 'double'}", values, kind)
    np.testing.assert_array_equal(got, values.clip(np.iinfo(whole).min, None).astype(whole).astype(kind))
    assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize("name", MINIFLOATS)
def test_narrowing_rounds_to_nearest_even(convert: Convert, name: str) -> None:
    values, dtype = floats(4099), MINIFLOATS[name]
    # Every half-way point between neighbours, too, and what is next to it and to the ends.
    stored = every(dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        middles = ((stored[1:].astype(np.float64) + stored[:-1].astype(np.float64)) / 2).astype(np.float32)
        largest = np.nanmax(np.where(np.isinf(stored), 0, stored)) * np.linspace(1, 2, 65, dtype=np.float32)
        exact = np.concatenate([middles, stored, largest, -largest])
        values = np.concatenate(
            [values, exact, np.nextafter(exact, np.float32(-np.inf)), np.nextafter(exact, np.float32(np.inf))]
        )
        want = values.astype(dtype)
    bits = f"u{dtype.itemsize}"
    got = convert(f"narrow_{name}", values, bits).view(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(got.view(bits)[number], want.view(bits)[number])


def doubles(count: int) -> Array:
    """Return random float64: all bits, evenly by magnitude and in the ranges where functions turn; the ends of each class."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 63, count, np.uint64) | (rng.integers(0, 2, count, np.uint64) << np.uint64(63))
    ends = [0.0, np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).smallest_normal, 1.0, np.finfo(np.float64).max]
    special = np.array([*ends, np.inf, np.nan])
    even = np.ldexp(rng.uniform(-1, 1, count), rng.integers(-40, 5, count))
    ranges = [rng.uniform(-r, r, count) for r in (1.5, 40, 750)] + [1 + rng.uniform(-0.01, 0.01, count // 4)]
    return np.concatenate([bits.view(np.float64), special, -special, even, *ranges])


def sigmoid(x: Array) -> Array:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def by_mpmath(name: str) -> Callable[[Array], Array]:
    """Return a function with 90 bits, as the sum of what long double holds of it and the rest."""
    row = FUNCTIONS[name]
    number, special = eval(f"lambda x: {row.mp.format('x')}", {"mp": mpmath}), numpy_function(row.numpy)

    @cache
    def one(value: float, sign: float) -> Any:
        if not math.isfinite(value) or value == 0 or not row.domain[0] < value < row.domain[1]:
            with np.errstate(all="ignore"):
                return np.longdouble(special(np.float64(value)))
        with mpmath.workprec(90):
            exact = mpmath.ldexp(number(mpmath.mpf(value)), 900)
            if not mpmath.isfinite(exact) or exact == 0:
                return np.longdouble(special(np.float64(value)))  # at a pole, or of this sign
            whole = float(mpmath.ldexp(exact, -900))
            if math.isinf(whole):
                return np.longdouble(whole)
            if abs(whole) > 1e-280:
                return np.longdouble(whole) + np.longdouble(float(mpmath.ldexp(exact, -900) - whole))
            return np.copysign(np.ldexp(np.longdouble(float(exact)), -900), whole if whole else np.longdouble(mpmath.sign(exact)))

    return lambda x: np.array([one(float(v), math.copysign(1.0, v)) for v in x], np.longdouble)


# The bounds that the functions' comments state, in units in the last place; each row with what it is held against.
ACCURACY: Mapping[str, tuple[Callable[[Array], Array], float]] = {
    "exp": (np.exp, 1.7), "exp_below": (np.exp, 1.7), "expm1": (np.expm1, 1.9), "exp2": (np.exp2, 1.7), "tanh": (np.tanh, 3.0),
    "sinh": (np.sinh, 3.5), "cosh": (np.cosh, 2.5), "sigmoid": (sigmoid, 3.2), "log": (np.log, 1.5), "log2": (np.log2, 3.0),
    "log10": (np.log10, 3.0), "log1p": (np.log1p, 2.0), "asinh": (np.arcsinh, 2.5), "acosh": (np.arccosh, 2.5),
    "atanh": (np.arctanh, 2.5), "erf": (by_mpmath("erf"), 1.9), "erfc": (by_mpmath("erfc"), 4.0), "asin": (np.arcsin, 2.5),
    "acos": (np.arccos, 2.5), "atan": (np.arctan, 2.5), "cbrt": (by_mpmath("cbrt"), 1.0), "sinc": (by_mpmath("sinc"), 2.5),
    "sinc_slope": (by_mpmath("sinc_slope"), 4.0), "erfinv": (by_mpmath("erfinv"), 3.5), "lgamma": (by_mpmath("lgamma"), 5.0),
    "digamma": (by_mpmath("digamma"), 5.0), "trigamma": (by_mpmath("trigamma"), 5.0), "i0": (by_mpmath("i0"), 5.0),
    "tetragamma": (by_mpmath("tetragamma"), 8.0), "pentagamma": (by_mpmath("pentagamma"), 10.0), "i1": (by_mpmath("i1"), 5.0),
}  # fmt: skip


def hold(got: Array, want: Array, ulp: float, absolute: float = 0.0) -> None:
    """Assert that values are within so many units in the last place of those wanted, given in long double, and of 1 beside."""
    kind = got.dtype.type
    with np.errstate(all="ignore"):
        rounded = want.astype(kind)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
    infinite, finite = np.isinf(rounded), np.isfinite(rounded)
    largest = np.abs(got[infinite]) >= np.finfo(kind).max  # or one rounding less
    assert largest.all()
    assert (np.signbit(got[infinite]) == np.signbit(rounded[infinite])).all()
    # The unit in the last place below a power of two is half the one above it.
    unit = np.spacing(np.nextafter(np.abs(rounded[finite]), kind(0)))
    unit = np.maximum(unit, np.finfo(kind).smallest_subnormal).astype(np.longdouble)
    lost = np.abs(got[finite].astype(np.longdouble) - want[finite]) - absolute * np.longdouble(np.finfo(kind).eps)
    error = lost / unit
    worst = int(error.argmax())
    assert float(error[worst]) < ulp, got[finite][worst]


@cache
def exact_results(name: str, kind: Any) -> tuple[Array, Array]:
    """Return arguments of a function and its results, which all compilers are held to; few where mpmath takes long."""
    reference, _ = ACCURACY[name]
    slow = reference.__module__ == __name__ and name != "sigmoid"
    step, count = (2_000_003 if MANY else 6_000_017, 400 if MANY else 150) if slow else (4099, 60_000)
    values = floats(step) if kind is np.float32 else doubles(count)
    if name == "exp_below":
        values = np.minimum(values, kind(89 if kind is np.float32 else 710))
    with np.errstate(all="ignore"):
        return values, reference(values.astype(np.longdouble if kind is np.float64 else np.float64)).astype(np.longdouble)


@pytest.mark.rotating
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACCURACY)
def test_accuracy(convert: Convert, name: str, kind: Any) -> None:
    values, want = exact_results(name, kind)
    got = convert(f"{name}_{'float' if kind is np.float32 else 'double'}", values, kind)
    _, ulp = ACCURACY[name]
    hold(got, want, ulp, FUNCTIONS[name].absolute if name in FUNCTIONS else 0.0)


@cache
def exact_results_of_two(name: str, kind: Any) -> tuple[Array, Array]:
    """Return pairs of arguments, none of them 0, and the results."""
    rng, row = np.random.default_rng(5), FUNCTIONS[name]
    every = floats(1_600_021) if kind is np.float32 else doubles(250)
    x = every[np.isfinite(every)]
    with np.errstate(all="ignore"):
        near = (x * np.exp2(rng.uniform(-30, 30, x.size))).astype(kind)
    y = np.where(np.isfinite(near) & (rng.random(x.size) < 0.8), near, rng.permutation(x))
    number = eval(f"lambda x, y: {row.mp.format('x', 'y')}", {"mp": mpmath})
    with mpmath.workprec(140):
        exact = [mpmath.ldexp(number(mpmath.mpf(float(a)), mpmath.mpf(float(b))), 900) for a, b in zip(x, y)]
        parts = [(v, float(mpmath.ldexp(v, -900))) for v in exact]
        want = np.array(
            [
                np.longdouble(w) + np.longdouble(0 if math.isinf(w) else float(mpmath.ldexp(v, -900) - w))
                if abs(w) > 1e-280
                else np.longdouble(float(v))
                for v, w in parts
            ]
        )
    small = np.array([abs(w) <= 1e-280 for _, w in parts])
    want[small] = np.ldexp(want[small], -900)
    sure = (x != 0) & (y != 0)
    return np.stack([x[sure], y[sure]]), want[sure]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "ulp"), [("hypot", 1.5), ("atan2", 3.5)])
def test_accuracy_of_two_arguments(convert: Convert, name: str, ulp: float, kind: Any) -> None:
    row, (values, want) = FUNCTIONS[name], exact_results_of_two(name, kind)
    hold(convert(f"{name}_{'float' if kind is np.float32 else 'double'}", values, kind), want, ulp)
    # C's annex F, as NumPy has it.
    edges = np.array([0.0, 1.0, 2.5, np.inf, np.nan, np.finfo(kind).max, np.finfo(kind).smallest_subnormal], kind)
    x, y = (a.ravel() for a in np.meshgrid(*[np.concatenate([edges, -edges])] * 2))
    with np.errstate(all="ignore"):
        want = numpy_function(row.numpy)(x, y)
    got = convert(f"{name}_{'float' if kind is np.float32 else 'double'}", np.stack([x, y]), kind)
    np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(got), np.signbit(want) & ~np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=4 * float(np.finfo(kind).eps))


EDGES = [
    0.0,
    1.0,
    0.5,
    2.0,
    2.5,
    3.0,
    np.inf,
    np.nan,
    5e-324,
    1e-300,
    1e300,
    1e10,
    1e20,
    2**23 + 1,
    2**24 + 1,
    2**52 + 1,
    2**53 + 2,
    0.9999,
    1.0001,
]


@cache
def exact_powers(kind: Any) -> tuple[Array, Array]:
    """Return bases with exponents, and their powers, which are normal numbers."""
    rng = np.random.default_rng(5)
    x = np.exp2(np.concatenate([rng.uniform(-5, 5, 1000), rng.uniform(-0.01, 0.01, 500), rng.uniform(-120, 120, 500)])).astype(
        kind
    )
    y = (rng.uniform(-1, 1, x.size) * np.log2(float(np.finfo(kind).max)) / np.log2(x.astype(np.float64))).astype(kind)
    with mpmath.workprec(140):
        exact = [mpmath.power(float(a), float(b)) for a, b in zip(x, y)]
        want = np.array([np.longdouble(float(v)) + np.longdouble(float(v - float(v))) for v in exact])
    normal = want > np.finfo(kind).smallest_normal
    return np.stack([x[normal], y[normal]]), want[normal]


@pytest.mark.parametrize(("kind", "ulp"), [(np.float32, 0.6), (np.float64, 2.0)])
def test_accuracy_of_powers(convert: Convert, kind: Any, ulp: float) -> None:
    name, (values, want) = "pow_float" if kind is np.float32 else "pow_double", exact_powers(kind)
    hold(convert(name, values, kind), want, ulp)
    # What NumPy has of C's annex F.
    with np.errstate(all="ignore"):
        edges = np.array([*EDGES, *(-v for v in EDGES)]).astype(kind)
        x, y = (a.ravel() for a in np.meshgrid(edges, edges))
        want = np.power(x, y)
    got = convert(name, np.concatenate([[x], [y]]), kind)
    np.testing.assert_array_equal(np.signbit(got) & ~np.isnan(got), np.signbit(want) & ~np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=4 * float(np.finfo(kind).eps))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_loops_over_functions_are_vectorised(compiler: str, library: Callable[[str, str], Library]) -> None:
    """Each function's loop has products of whole vectors and calls nothing; clang++ called tanhf element by element once."""
    _, text = library(compiler, "v3")
    parts = re.split(r"^([a-z]\w*):", text, flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2]))
    names = [f"{name}_{kind}" for name in (*UNARY, *HIDDEN, "hypot", "atan2", "pow", "same") for kind in ("float", "double")]
    scalar = [n for n in names if not re.search(r"\bvfn?m(add|sub)\w+p[sd]\s.*%ymm", bodies[n])]
    assert not scalar
    assert not [n for n in names if re.search(r"^\s+call", bodies[n], re.MULTILINE)]


def test_compilers_agree_to_the_bit(library: Callable[[str, str], Library]) -> None:
    """The functions are text, with no call into a library: what one compiler makes of it, another does."""
    loaded = [library(compiler, "v3")[0] for compiler in COMPILERS]
    for name in (*UNARY, *HIDDEN):
        for kind, values in (("float", floats(40_009)), ("double", doubles(4000))):
            results = [np.empty_like(values) for _ in loaded]
            for one, result in zip(loaded, results):
                pointers = (ctypes.c_void_p(a.ctypes.data) for a in (result, values))
                one[f"{name}_{kind}"](*pointers, ctypes.c_int64(values.size))
            np.testing.assert_array_equal(*results, err_msg=f"{name} of {kind}")
