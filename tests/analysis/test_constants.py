"""What a call may have in integers while it is differentiated, and what derived ops take in its place."""

from __future__ import annotations

import pytest

from opc.analysis.constants import constants, unmoved
from opc.ir.op import Op
from opc.pipeline import compile_text


def op(types: str, operands: str, kernel: str) -> Op:
    text = f"op: f\ndomain: tests\nversion: 1\ndoc: An op.\ntypes: {{T: [float32, float64], {types}}}\n{operands}\n"
    return compile_text(f"{text}kernel: |\n  {kernel}\n", "f").forward


POWER = "inputs: {a: 'T[N]', b: 'U[N]'}\noutputs: {y: 'T[N]'}"
TWO = "inputs: {a: 'T[N]', b: 'U[N]'}\noutputs: {y: 'T[N]', z: 'U[N]'}"
CHOSEN = "inputs: {a: 'T[N]'}\nattributes: {to: {type: dtype, binds: U, default: int64}}\noutputs: {y: 'T[N]', z: 'U[N]'}"


@pytest.mark.parametrize(
    ("types", "operands", "kernel", "expected"),
    [
        ("U: [float64, int32]", POWER, "y[i] = a[i] ** cast(T, b[i])", {"b": "float64"}),
        ("U: [float16, float32, int16, uint16, bool]", POWER, "y[i] = a[i] ** cast(T, b[i])", {"b": "float32"}),
        ("U: [float64, int64]", TWO, "y[i] = a[i] * cast(T, b[i])\n  z[i] = b[i] + b[i]", {"b": "float64", "z": "float64"}),
        ("U: [float32, int64]", CHOSEN, "y[i] = a[i] * a[i]\n  z[i] = cast(U, a[i])", {"z": "float32", "to": "float32"}),
        # float32 does not have all of the integers.
        ("U: [float32, int32]", POWER, "y[i] = a[i] ** cast(T, b[i])", {}),
        # Nothing is to stand in for.
        ("U: [float64]", POWER, "y[i] = a[i] ** cast(T, b[i])", {}),
        ("U: [int32]", POWER, "y[i] = a[i] ** cast(T, b[i])", {}),
        # In integers it is another function: a quotient, a wrapped product, what a cast cuts off.
        ("U: [float64, int32]", POWER, "y[i] = a[i] ** cast(T, b[i] // 2)", {}),
        ("U: [float64, int32]", POWER, "s[i] = b[i] * b[i]\n  y[i] = a[i] ** cast(T, s[i])", {}),
        ("U: [float64, int32]", POWER, "y[i] = a[i] * cast(T, cast(U, a[i]))", {}),
        ("U: [float64, int32]", POWER, "y[i] = a[i] * cast(T, cast(int8, b[i]))", {}),
        ("U: [float64, int32]", POWER, "y[i] = a[i] if b[i] > 0 else a[i] ** cast(T, b[i])", {}),
        ("U: [float64, int64]", TWO, "z[i] = cast(U, a[i])\n  y[i] = a[i] * cast(T, z[i])", {}),
    ],
)
def test_constants(types: str, operands: str, kernel: str, expected: dict[str, str]) -> None:
    assert {name: dtype.value for name, dtype in constants(op(types, operands, kernel)).items()} == expected


@pytest.mark.parametrize(
    ("types", "operands", "kernel", "expected"),
    [
        ("U: [float32, int64]", CHOSEN, "y[i] = a[i] * a[i]\n  z[i] = cast(U, a[i])", ("z",)),
        ("U: [float64, int32]", POWER, "y[i] = a[i] ** cast(T, b[i])", ()),
        ("U: [int64]", CHOSEN, "y[i] = a[i] * a[i]\n  z[i] = cast(U, a[i])", ()),
    ],
)
def test_results_without_tangents(types: str, operands: str, kernel: str, expected: tuple[str, ...]) -> None:
    assert unmoved(op(types, operands, kernel)) == expected


def test_derived_ops_have_none() -> None:
    text = "op: f\ndomain: tests\nversion: 1\ndoc: An op.\ntypes: {T: [float32, float64], U: [float64, int32]}\n"
    family = compile_text(f"{text}{POWER}\nkernel: y[i] = a[i] ** cast(T, b[i])\n", "f")
    assert [bool(constants(o)) for o in family.ops] == [o is family.forward for o in family.ops]
    assert len(family.ops) == 5
