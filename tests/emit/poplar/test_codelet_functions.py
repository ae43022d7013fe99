"""The scalar functions that codelets call: each row of the table in float, as C++14, against NumPy's text in double."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import opc
from opc.ir.function import Function
from opc.ir.functions import FUNCTIONS
from opc.testing.oracle.enclosures import numpy_function

INCLUDE = Path(opc.__file__).parent.parent / "runtime" / "include"
ROWS = [f for f in FUNCTIONS.values() if f.types in ("float", "number") and f.name not in ("stop_gradient", "neg")]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 0.5, -0.5, 2.5, -3.0], np.float32)

HEAD = """\
#include "opc/poplar/codelet_math.h"
template <typename To, typename From>
void convert(const void *from, void *to, int n) {
  for (int i = 0; i < n; ++i) static_cast<To *>(to)[i] = opc::cast<To>(static_cast<const From *>(from)[i]);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every function as a loop, and conversions."""
    folder = tmp_path_factory.mktemp("functions")
    lines = [HEAD]
    for f in ROWS:
        call = f.c.format("x[i]", "y[i]")
        head = f'extern "C" void f_{f.name}(const float *x, const float *y, float *to, int n)'
        lines.append(f"{head} {{ for (int i = 0; i < n; ++i) to[i] = {call}; static_cast<void>(y); }}")
    for to, of in CONVERSIONS:
        text = f"convert<{C_TYPES[to]}, {C_TYPES[of]}>(x, to, n)"
        lines.append(f'extern "C" void cast_{of}_{to}(const void *x, void *to, int n) {{ {text}; }}')
    for name in ("floordiv", "mod"):
        text = f"for (int i = 0; i < n; ++i) to[i] = opc::{name}<int32_t>(x[i], y[i]);"
        lines.append(f'extern "C" void int_{name}(const int32_t *x, const int32_t *y, int32_t *to, int n) {{ {text} }}')
    source, built = folder / "functions.cpp", folder / "functions.so"
    source.write_text("\n".join(lines))
    flags = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", f"-I{INCLUDE}"]
    subprocess.run(["g++", *flags, str(source), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


C_TYPES = {"float32": "float", "int32": "int32_t", "int8": "int8_t", "uint8": "uint8_t", "int64": "int64_t", "bool": "bool"}
CONVERSIONS = [(a, b) for a in C_TYPES for b in ("float32", "int64", "int32") if a != b]


def called(library: ctypes.CDLL, f: Function, x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the function's values at points."""
    got = np.empty_like(x)
    getattr(library, f"f_{f.name}")(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, got)), x.size)
    return got


@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.name)
def test_accuracy(library: ctypes.CDLL, f: Function) -> None:
    rng = np.random.default_rng(3)
    drawn = [rng.uniform(*s, 4000).astype(np.float32) for s in (*f.samples, f.samples[-1])[:2]]
    wide = (rng.choice([-1, 1], 2000) * np.exp2(rng.uniform(-20, 20, 2000))).astype(np.float32)
    x = np.concatenate([drawn[0], wide, SPECIAL])
    y = np.concatenate([drawn[1], rng.permutation(wide), rng.permutation(SPECIAL)])
    if f.name in ("floordiv", "mod", "pow"):
        # What comes of infinities and of numbers that are far apart is another question of each of these.
        x, y = (a[:4000] for a in (x, y))
    reference: Callable[..., Any] = numpy_function(f.numpy)
    with np.errstate(all="ignore"):
        want = reference(*(a.astype(np.float64) for a in (x, y)[: f.arity]))
        rounded = want.astype(np.float32)
    got = called(library, f, x, y)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    finite = np.isfinite(rounded) & (np.abs(rounded) < 1e38)
    np.testing.assert_array_equal(got[np.isinf(rounded)], rounded[np.isinf(rounded)])
    unit = np.maximum(np.spacing(np.abs(rounded[finite])).astype(np.float64), float(np.finfo(np.float32).smallest_subnormal))
    allowed = f.ulp * unit + f.absolute * float(np.finfo(np.float32).eps)
    if f.name == "floordiv":
        allowed = allowed + 1  # the quotient is rounded before it is cut
    if f.name == "mod":
        allowed = allowed + np.abs(y[finite]) * (np.abs(np.abs(got[finite] - want[finite]) - np.abs(y[finite])) < 1e-3)
    assert (np.abs(got[finite] - want[finite]) <= allowed).all()


@pytest.mark.parametrize(("to", "of"), CONVERSIONS)
def test_conversions(library: ctypes.CDLL, to: str, of: str) -> None:
    rng = np.random.default_rng(5)
    if of == "float32":
        x = np.concatenate([SPECIAL, rng.uniform(-300, 300, 500), np.exp2(rng.uniform(20, 66, 50))]).astype(np.float32)
    else:
        kind = np.iinfo(of)
        x = np.concatenate([[kind.min, kind.max, 0, 1, -1], rng.integers(kind.min, kind.max, 500)]).astype(of)
    got = np.empty(x.size, to)
    getattr(library, f"cast_{of}_{to}")(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(got.ctypes.data), x.size)
    if to == "bool":
        want: NDArray[Any] = x != 0
    elif of == "float32":
        ends = np.iinfo(to)
        whole = [0 if np.isnan(v) else ends.max if v >= ends.max else ends.min if v <= ends.min else int(v) for v in x]
        want = np.array(whole, to)
    else:
        want = x.astype(to)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_integers(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(7)
    ends = np.array([-(2**31), 2**31 - 1, 0, 1, -1, 7, -7], np.int32)
    x, y = (a.ravel().astype(np.int32) for a in np.meshgrid(ends, ends))
    x = np.concatenate([x, rng.integers(-100, 100, 500, np.int32)])
    y = np.concatenate([y, rng.integers(-9, 9, 500, np.int32)])
    got = np.empty_like(x)
    getattr(library, f"int_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, got)), x.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, numpy_function(FUNCTIONS[name].numpy)(x, y))
