"""What docs/language.md says of uint64 beside whole numbers, of accumulators, and of what 8 bits hold."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from opc.diagnostics import SpecError
from opc.ir.dtypes import TYPE_SETS, Acc, DType, TypeVar, accumulated, candidates
from opc.pipeline import compile_text
from opc.testing.oracle.bounds import Bounds, between, exact
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.rounding import rounded

HEAD = "op: probe\ndomain: test\nversion: 1\ndoc: A test.\ngradient: none\n"
U64 = HEAD + "inputs: {u: 'uint64[N]', x: 'float32[N]'}\nattributes: {n: {type: int, default: 3}}\n"
LARGE = 2**64 - 1


def message(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        compile_text(text, "probe")
    return str(caught.value)


@pytest.mark.parametrize("value", ["u[i] + n", "u[i] + i", "u[i] * N", "maximum(u[i], -1)", "u[i] if x[i] > 0 else n"])
def test_uint64_and_int64_do_not_mix(value: str) -> None:
    told = message(f"{U64}outputs: {{y: 'uint64[N]'}}\nkernel: |\n  y[i] = {value}\n")
    assert "uint64 and int64" in told
    assert "cast(uint64, ...)" in told


def test_a_type_that_may_be_uint64_does_not_mix_either() -> None:
    text = (
        f"{HEAD}types: {{T: [int32, uint64]}}\ninputs: {{x: 'T[N]'}}\noutputs: {{y: 'bool[N]'}}\nkernel: |\n  y[i] = x[i] < i\n"
    )
    assert "T and int64" in message(text)


@pytest.mark.parametrize("kind", ["uint64[N]", "T[N]"])
def test_an_index_has_64_bits_with_a_sign(kind: str) -> None:
    head = f"{HEAD}types: {{T: [int32, uint64]}}\n" if kind == "T[N]" else HEAD
    told = message(f"{head}inputs: {{u: '{kind}', x: 'float32[N]'}}\noutputs: {{y: 'float32[N]'}}\nkernel: |\n  y[i] = x[u[i]]\n")
    assert "an index is one of int64's numbers" in told
    assert "cast(int64, ...)" in told


def test_what_uint64_mixes_with() -> None:
    body = (
        "  a[i] = u[i] + 1\n  b[i] = -u[i]\n  s = sum[i](u[i])\n  c[i] = u[i] < cast(uint64, n)\n  d[i] = cast(int64, u[i]) < n\n"
    )
    outputs = "{a: 'uint64[N]', b: 'uint64[N]', s: 'acc(uint64)[]', c: 'bool[N]', d: 'bool[N]'}"
    head = U64.replace(", x: 'float32[N]'", "")
    op = compile_text(f"{head}outputs: {outputs}\nkernel: |\n{body}", "probe").forward
    found = evaluate(op, {"u": np.array([LARGE, 2], np.uint64)}, {"n": 3})
    assert {n: b.value.tolist() for n, b in found.items()} == {
        "a": [0, 3], "b": [1, 2**64 - 2], "s": 1, "c": [False, True], "d": [True, True],
    }  # fmt: skip
    assert found["s"].dtype is DType.UINT64


def test_accumulators() -> None:
    assert {d.value: d.accumulator.value for d in TYPE_SETS["unsigned"]} == {
        "uint8": "int64", "uint16": "int64", "uint32": "int64", "uint64": "uint64",
    }  # fmt: skip
    assert {d.accumulator for d in TYPE_SETS["float8"]} == {DType.FLOAT32}
    assert accumulated(TypeVar("T", TYPE_SETS["integer"])) is DType.INT64
    mixed = TypeVar("T", TYPE_SETS["unsigned"])
    assert accumulated(mixed) == Acc(mixed)
    assert candidates(Acc(mixed)) == (DType.INT64, DType.UINT64)


def ends(a: Bounds) -> tuple[list[float], list[float], list[bool]]:
    return a.low.tolist(), a.high.tolist(), a.nan.tolist()


def test_what_is_beyond_a_type_without_infinity_is_nan() -> None:
    dtype = DType.FLOAT8_E4M3FN
    low, high, nan = ends(rounded(exact(np.array([464.0, 465.0, -np.inf, 0.0, -0.0])), dtype))
    assert (low[0], high[0], nan[0]) == (448.0, 448.0, False)
    assert all(n and lo > hi for lo, hi, n in zip(low[1:3], high[1:3], nan[1:3], strict=True)), "nothing but NaN is left"
    assert np.signbit(low[3:]).tolist() == [False, True]
    # A part of these sets overflows, at one end or at both.
    sets = between(np.array([400.0, -1e9, 10.0]), np.array([500.0, np.inf, 11.0]))
    assert ends(rounded(sets, dtype)) == ([384.0, -448.0, 10.0], [448.0, 448.0, 11.0], [True, True, False])
    assert ends(rounded(sets, DType.FLOAT8_E5M2))[2] == [False, False, False]


@pytest.mark.parametrize("dtype", TYPE_SETS["float8"], ids=str)
def test_rounding_of_the_oracle_is_that_of_ml_dtypes(dtype: DType) -> None:
    kind = getattr(ml_dtypes, dtype.value)
    values = np.linspace(-600, 600, 4801) if dtype is DType.FLOAT8_E4M3FN else np.linspace(-7e4, 7e4, 4801)
    found, want = rounded(exact(values.astype(np.float32)), dtype), values.astype(np.float32).astype(kind).astype(np.float64)
    np.testing.assert_array_equal(found.nan, np.isnan(want))
    np.testing.assert_array_equal(found.low[~found.nan], want[~found.nan])
    np.testing.assert_array_equal(found.high[~found.nan], want[~found.nan])
