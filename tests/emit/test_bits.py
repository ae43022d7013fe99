"""Operators on the bits of integers: every text of every type against Python's own integers, which have no width."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.numpy.reference import function_name, numpy_module
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.scalars import BITS as OF_ALL
from tests.fuzz.scalars import wrapped

Array = np.ndarray[Any, Any]

BITS = {dtype: bits for dtype, bits in OF_ALL.items() if bits >= 8}
"""Integers of whole bytes: those of fewer bits are computed in int8, and wrapped where they are stored."""


def left(x: int, n: int) -> int:
    return x << n if 0 <= n < 64 else 0


def right(x: int, n: int) -> int:
    return x >> n if 0 <= n < 64 else -1 if x < 0 else 0


OPERATIONS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "both": ("x[i] & n[i]", operator.and_),
    "either": ("x[i] | n[i]", operator.or_),
    "one": ("x[i] ^ n[i]", operator.xor),
    "none": ("~x[i]", lambda x, n: ~x),
    "left": ("x[i] << n[i]", left),
    "right": ("x[i] >> n[i]", right),
    "two": ("x[i] << 2", lambda x, n: x << 2),
    "gone": ("x[i] >> 64", lambda x, n: right(x, 64)),
    "low": ("5 & x[i]", lambda x, n: 5 & x),
    "square": ("x[i] ** 2", lambda x, n: x**2),
    "power": ("x[i] ** 21", lambda x, n: x**21),
    "one_of_all": ("x[i] ** 0", lambda x, n: 1),
    "mixed": ("~x[i] & n[i] ^ x[i] + n[i] | (x[i] >> 1) * 3", lambda x, n: ~x & n ^ x + n | (x >> 1) * 3),
}
"""`mixed` is written so that the order in which operators bind shows."""
BESIDE_INDICES = {"with_index": ("x[i] ^ i", lambda x, i: x ^ i), "by_size": ("x[i] >> N", lambda x, i: right(x, N))}
"""What uint64 has not, which mixes with no index."""


def spec(dtype: str) -> str:
    operations = {**OPERATIONS, **({} if dtype == "uint64" else BESIDE_INDICES)}
    outputs = ", ".join(f"{name}: '{dtype}[N]'" for name in operations)
    body = "".join(f"  {name}[i] = {text}\n" for name, (text, _) in operations.items())
    return (
        f"op: bits_{dtype}\ndomain: probe\nversion: 1\ndoc: Bits.\ninputs: {{x: '{dtype}[N]', n: '{dtype}[N]'}}\n"
        f"outputs: {{{outputs}}}\ngradient: none\nkernel: |\n{body}"
    )


def operands(dtype: str) -> tuple[Array, Array]:
    """Return every pair of numbers at the ends of the type, and by counts at both ends of its bits."""
    info, bits = np.iinfo(dtype), BITS[dtype]
    values = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 85, 100]
    counts = [
        c
        for c in (0, 1, bits - 1, bits, bits + 1, 31, 32, 63, 64, 65, -1, -bits, info.min, info.max)
        if c in range(info.min, info.max + 1)
    ]
    x, n = (a.ravel() for a in np.meshgrid(np.array(values, dtype), np.array(counts, dtype)))
    return x, n


N = 126


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", BITS)
def test_bits_are_those_of_twos_complement(dtype: str, tmp_path: Path) -> None:
    family = compile_text(spec(dtype), "bits.yaml")
    library = compile_together([family], tmp_path / "kernel", "-O0")
    x, n = (np.resize(a, N) for a in operands(dtype))
    pairs = list(zip(x.tolist(), n.tolist(), strict=True))
    want = {name: [fn(*pair) for pair in pairs] for name, (_, fn) in OPERATIONS.items()}
    if dtype != "uint64":
        want |= {name: [fn(v, i) for i, v in enumerate(x.tolist())] for name, (_, fn) in BESIDE_INDICES.items()}
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    answers = {
        "kernel": KernelLibrary(family, library).call(family.forward, {"x": x, "n": n}, {}),
        "numpy": dict(zip(want, module[function_name(family.forward)](x, n), strict=True)),
        "onnx": load(family, tmp_path).function_call(family.name, {"x": x, "n": n}, {}, list(want)),
    }
    oracle = evaluate(family.forward, {"x": x, "n": n}, {})
    for name, values in want.items():
        exact = np.array([wrapped(v, dtype) for v in values], dtype)
        assert compare(name, exact, oracle[name]).ok, f"oracle {name}"
        for backend, found in answers.items():
            np.testing.assert_array_equal(found[name], exact, f"{backend} {name}")


POWERS = """
op: powers
domain: probe
version: 1
doc: Powers whose exponents are data.
inputs: {{x: '{0}[N]', n: '{0}[N]'}}
outputs: {{y: '{0}[N]', z: '{0}[N]'}}
gradient: none
kernel: |
  y = x ** n
  z = 3 ** n
"""


def power(x: int, n: int) -> int:
    return pow(x, n, 2**64) if n >= 0 else (x if n % 2 else 1) if abs(x) == 1 else 0


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", BITS)
def test_powers_wrap_and_negative_ones_are_cut(dtype: str, tmp_path: Path) -> None:
    family = compile_text(POWERS.format(dtype), "powers.yaml")
    library = compile_together([family], tmp_path, "-O0")
    x, n = operands(dtype)
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    answers = {
        "kernel": KernelLibrary(family, library).call(family.forward, {"x": x, "n": n}, {}),
        "numpy": dict(zip("yz", module[function_name(family.forward)](x, n), strict=True)),
    }
    oracle = evaluate(family.forward, {"x": x, "n": n}, {})
    for name, bases in (("y", x.tolist()), ("z", [3] * len(x))):
        exact = np.array([wrapped(power(*pair), dtype) for pair in zip(bases, n.tolist(), strict=True)], dtype)
        assert compare(name, exact, oracle[name]).ok, f"oracle {name}"
        for backend, found in answers.items():
            np.testing.assert_array_equal(found[name], exact, f"{backend} {name}")
