"""Which reductions may take small planes together, across an index that they keep apart."""

from __future__ import annotations

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32]}
inputs: {x: 'T[N, C, H, W]', w: 'T[C, P, Q]', v: 'T[N, H, W]', b: 'T[C]'}
attributes: {step: {type: int, default: 1, check: step > 0}}
outputs: {y: 'T[N, C, O, U]'}
shape: {O: (H - P) // step + 1, U: (W - Q) // step + 1}
require: [N == C]
"""


def loops(value: str) -> str:
    """Return the loops of an op that computes y[n, c, i, j] as this, and of its gradient."""
    family = compile_text(f"{HEAD}kernel: 'y[n, c, i, j] = {value}'\n", "test")
    assert family.backward is not None
    return "".join(format_variant(v) for op in (family.forward, family.backward) for v in lower(op))


def test_a_window_and_its_gradients() -> None:
    found = loops("exp(sum[p, q](w[c, p, q] * x[n, c, i*step + p, j*step + q]) + b[c]) + pad(v[0, 0, 0], 0)")
    assert "f_y\n    schedule: vectorise(j), split, tile(p, q), channels(c), " in found
    found = loops("sum[p, q](w[c, p, q] * pad(x[n, c, i*step + p, j*step + q], 0)) + b[c] + pad(v[0, 0, 0], 0)")
    assert "f_y\n    schedule: vectorise(j), split, tile(p, q), channels(c), " in found
    assert found.count("channels(") == 3


@pytest.mark.parametrize(("kind", "nothing"), [("sum", "0"), ("max", "-inf"), ("min", "inf")])
def test_pooling_but_not_its_gradient(kind: str, nothing: str) -> None:
    window = f"{kind}[p:3, q:3](pad(x[n, c, i*step + p, j*step + q], {nothing}))"
    found = loops(f"{window} + b[c] + pad(v[0, 0, 0], 0) + pad(w[0, 0, 0], 0)")
    assert "f_y\n    schedule: vectorise(j), split, tile(p, q), channels(c), " in found
    assert found.count("channels(") == 1


@pytest.mark.parametrize(
    "value",
    [
        "sum[p, q](w[c, p, q] * pad(x[n, c, i + p, j + q], 1)) + b[c] + pad(v[0, 0, 0], 0)",  # what lies outside counts
        "sum[p, q](w[c, p, q] * pad(v[n, i + p, j + q], 0)) + b[c] + pad(x[0, 0, 0, 0], 0)",  # all channels read one plane
        "sum[p, q](w[c, p, q] * x[n, c, i*step + p, j*step + q]) + b[c] + pad(v[n, i, j], 0)",  # v differs in the plane
        "cast(T, argmax[p:3, q:3](pad(x[n, c, i*step + p, j*step + q], -inf)))"  # finds places
        " + b[c] + pad(v[0, 0, 0], 0) + pad(w[0, 0, 0], 0)",
        "max[p, q](w[c, p, q] * x[n, c, i*step + p, j*step + q]) + b[c] + pad(v[0, 0, 0], 0)",
        "sum[p, q](w[c, p, q] * pad(x[n, c, i + p + q, j + q], 0)) + b[c] + pad(v[0, 0, 0], 0)",  # rows and columns aren't apart
    ],
)
def test_other_sums_stay_by_themselves(value: str) -> None:
    assert "channels(" not in loops(value).split("program f_backward")[0]
