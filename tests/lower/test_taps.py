"""Which sums run as strips of windows and as sums of products."""

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
inputs: {x: 'T[C, W]', w: 'T[C, Q]', v: 'T[Q, W]'}
attributes: {step: {type: int, default: 1, check: step > 0}}
outputs: {y: 'T[C, O]'}
shape: {O: (W - Q) // step + 1}
require: [C == W]
"""


def loops(value: str) -> str:
    """Return the loops of an op that computes y[c, j] as this, and of its gradient."""
    family = compile_text(f"{HEAD}kernel: 'y[c, j] = {value}'\n", "test")
    assert family.backward is not None
    return "".join(format_variant(v) for op in (family.forward, family.backward) for v in lower(op))


def test_a_weighted_window_and_its_gradients() -> None:
    found = loops("sum[q](w[c, q] * pad(x[c, j*step + q], 0)) + pad(v[0, 0], 0)")
    assert "f_y\n    schedule: vectorise(j), split, tile(q), channels(c), " in found
    assert "f_backward_d_x\n    schedule: vectorise(j), tile(q), channels(i)" in found
    assert "f_backward_d_w\n    schedule: vectorise, products(j), channels(c)" in found


@pytest.mark.parametrize(
    "value",
    [
        "sum[q](w[c, q] * pad(x[c, j + q], 1)) + pad(v[0, 0], 0)",  # what lies outside counts
        "sum[q](pad(v[q, j], 0) * pad(x[c, j + q], 0)) + pad(w[0, 0], 0)",  # both move along the row
        "sum[q](w[c, q] * pad(x[j, c + q], 0)) + pad(v[0, 0], 0)",  # the lanes lie across memory
        "max[q](w[c, q] * pad(x[c, j + q], 0)) + pad(v[0, 0], 0)",
    ],
)
def test_other_reductions_stay_in_rows(value: str) -> None:
    assert "tile(" not in loops(value).split("program f_backward")[0]
