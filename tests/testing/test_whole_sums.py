"""Sums and products of whole numbers are exact in floating types too: what is made an integer of one is decided."""

from __future__ import annotations

import numpy as np
import pytest

from opc.pipeline import compile_text
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import evaluate
from tests.transform.language import spec_text

X = np.array([-3.7, -0.2, 0.3, 1.6, 2.2, 90.4], np.float32)
BODIES: dict[str, tuple[str, Array]] = {
    "a zero point": ("round(x[i]) + cast(T, z[])", np.round(X) + 5),
    "an exponent": ("floor(log2(abs(x[i]))) - 8 + 127", np.floor(np.log2(np.abs(X))) + 119),
    "a difference": ("cast(T, z[]) - trunc(x[i])", 5 - np.trunc(X)),
    "a product": ("floor(x[i]) * 3", np.floor(X) * 3),
    "a product and sums": ("(floor(x[i]) + 2) * (cast(T, z[]) - 1) + ceil(x[i]) - 7", (np.floor(X) + 2) * 4 + np.ceil(X) - 7),
    "between bounds": ("minimum(maximum(round(x[i]) + cast(T, z[]), -3), 9)", np.clip(np.round(X) + 5, -3, 9)),
}


def ends(text: str, x: Array, dtype: str = "float32") -> tuple[list[int], list[int]]:
    body = f"inputs: {{x: 'T[N]', z: 'int32[]'}}\noutputs: {{q: 'int32[N]'}}\nkernel: |\n  q[i] = cast(int32, {text})\n"
    op = compile_text(spec_text("f", body), "f.yaml").forward
    found = evaluate(op, {"x": x.astype(dtype), "z": np.array(5, np.int32)}, {})["q"].bounds
    return found.low.tolist(), found.high.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BODIES)
def test_an_integer_made_of_whole_numbers_is_decided(name: str, dtype: str) -> None:
    text, want = BODIES[name]
    assert ends(text, X, dtype) == (want.tolist(), want.tolist())


def test_either_of_two_roundings_stays_one_of_two() -> None:
    """Of what is rounded to one of two neighbours, a sum is one of two too, and no third."""
    assert ends("round(x[i] * 3 / 3) + cast(T, z[])", np.array([2.5], np.float32)) == ([7], [8])


def test_sums_that_a_type_rounds_are_open() -> None:
    big = np.array([2.0**24], np.float32)
    assert ends("x[i] + 1", big) != ([2**24 + 1], [2**24 + 1])
    low, high = ends("x[i] + 0.1 - 0.1", np.array([3.0], np.float32))
    assert (low, high) == ([2], [3])
