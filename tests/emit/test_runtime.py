"""The runtime's conversions of float16 and bfloat16 against NumPy's and ml_dtypes', and its functions against float64."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.backends.kernel.backend import COMMON_FLAGS, LOOP_FLAGS
from tests.emit.kernel_library import INCLUDE

Array = np.ndarray[Any, Any]
Convert = Callable[[str, Array, Any], Array]

SOURCE = """
#include "opc/loops.h"
extern "C" {
#define EXPORT __attribute__((visibility("default")))
#define LOOP OPC_SIMD for (int64_t i = 0; i < n; ++i)
EXPORT void widen_float16(float *to, const uint16_t *from, int64_t n) { opc::widen_float16(to, from, n); }
EXPORT void widen_bfloat16(float *to, const uint16_t *from, int64_t n) { opc::widen_bfloat16(to, from, n); }
EXPORT void narrow_float16(uint16_t *to, const float *from, int64_t n) { opc::narrow_float16(to, from, n); }
EXPORT void narrow_bfloat16(uint16_t *to, const float *from, int64_t n) { opc::narrow_bfloat16(to, from, n); }
EXPORT void exp_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::exp(from[i]); }
EXPORT void expm1_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::expm1(from[i]); }
EXPORT void erf_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::erf(from[i]); }
EXPORT void sigmoid_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::sigmoid(from[i]); }
EXPORT void exp_below_float(float *to, const float *from, int64_t n) { LOOP to[i] = opc::exp_below(from[i] > 89 ? 89 : from[i]); }
}
"""


@pytest.fixture(scope="module", params=["x86-64", "x86-64-v3"])
def convert(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Convert:
    directory = tmp_path_factory.mktemp("runtime")
    (directory / "runtime.cpp").write_text(SOURCE)
    library = directory / "runtime.so"
    flags = [*COMMON_FLAGS, *LOOP_FLAGS, f"-march={request.param}", f"-I{INCLUDE}"]
    subprocess.run(["g++", *flags, "-shared", directory / "runtime.cpp", "-o", library, "-lmvec", "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))

    def call(name: str, values: Array, dtype: Any) -> Array:
        result = np.empty(values.shape, dtype)
        loaded[name](ctypes.c_void_p(result.ctypes.data), ctypes.c_void_p(values.ctypes.data), ctypes.c_int64(values.size))
        return result

    return call


def floats(step: int) -> Array:
    """Return every `step`-th float32 by its bits, NaN and infinity among them."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    special = np.array(
        [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001], np.uint32
    )
    return np.concatenate([bits, special]).view(np.float32)


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_widening_is_exact(convert: Convert, name: str, dtype: Any) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(convert(f"widen_{name}", bits, np.float32), bits.view(dtype).astype(np.float32))


@pytest.mark.parametrize(("name", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_narrowing_rounds_to_nearest_even(convert: Convert, name: str, dtype: Any) -> None:
    values = floats(4099)
    # Every half-way point between neighbours, too.
    halves = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        middles = (halves[1:].astype(np.float64) + halves[:-1].astype(np.float64)) / 2
        values = np.concatenate([values, middles.astype(np.float32)])
        want = values.astype(dtype)
    got = convert(f"narrow_{name}", values, np.uint16).view(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    np.testing.assert_array_equal(got.view(np.uint16)[number], want.view(np.uint16)[number])


def reference_erf(x: Array) -> Array:
    from math import erf

    return np.array([erf(v) for v in x])


def reference_sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


ACCURACY = [
    ("exp", np.exp, 1031, 1.7),
    ("exp_below", lambda x: np.exp(np.minimum(x, 89)), 4099, 1.7),
    ("expm1", np.expm1, 1031, 1.9),
    ("sigmoid", reference_sigmoid, 1031, 3.2),
    ("erf", reference_erf, 20011, 1.9),
]


@pytest.mark.parametrize(("name", "reference", "step", "ulp"), ACCURACY)
def test_accuracy(convert: Convert, name: str, reference: Callable[[Array], Array], step: int, ulp: float) -> None:
    values = floats(step)
    with np.errstate(all="ignore"):
        want = reference(values.astype(np.float64))
        rounded = want.astype(np.float32)
    got = convert(f"{name}_float", values, np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[np.isinf(rounded)], rounded[np.isinf(rounded)])
    # The unit in the last place below a power of two is half the one above it.
    unit = np.spacing(np.nextafter(np.abs(rounded[finite]), np.float32(0))).astype(np.float64)
    unit = np.maximum(unit, float(np.finfo(np.float32).smallest_subnormal))
    error = np.abs(got[finite].astype(np.float64) - want[finite]) / unit
    assert float(error.max()) < ulp
