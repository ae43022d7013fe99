"""A loop over what a division leaves nothing of goes in steps; no point between them is asked."""

from __future__ import annotations

import numpy as np
import pytest

import opc
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

SPEC = """\
op: summed
domain: tests
version: 1
doc: A test.
types: {{T: [float32, float64]}}
inputs: {{x: 'T[R, O, W]'}}
outputs: {{y: 'T[N]'}}
attributes:
  size: {{type: int, check: size >= 0}}
  hop: {{type: int, default: 2, check: hop > 0}}
shape: {{N: size}}
gradient: none
kernel: y[n] = sum[r, o, k](x[r, o, k] if {condition} else 0)
"""
CONDITIONS = ["n == r*hop + k", "n == r*3 + k", "n == r*hop - k", "n + 1 == r*hop + k", "n == r*hop + k and k > 1"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_loop_goes_in_steps(condition: str) -> None:
    (variant,) = lower(compile_text(SPEC.format(condition=condition), "summed.yaml").forward)
    loops = format_variant(variant, loops=True)
    assert f" by {'3' if '3' in condition else 'minimum(281474976710656, hop)'}:" in loops
    assert "== 0" not in loops.partition("for unit")[2], loops


@pytest.mark.parametrize("condition", CONDITIONS)
def test_it_reaches_each_point(condition: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("summed") / "summed.yaml"
    path.write_text(SPEC.format(condition=condition))
    op = opc.load(path)
    for rows, width, size, hop in [
        (4, 5, 11, 2),
        (3, 2, 9, 4),
        (1, 1, 1, 1),
        (5, 7, 700, 3),
        (2, 300, 301, 160),
        (0, 3, 2, 2),
        (2, 0, 2, 2),
        (1, 3, 4, 2**63 - 1),
        (1, 5, 7, 2**62),
    ]:
        x = np.random.default_rng(0).standard_normal((rows, 2, width))
        expected = np.zeros(size)
        for n in range(size):
            for r in range(rows):
                for k in range(width):
                    if eval(condition, {}, {"n": n, "r": r, "k": k, "hop": hop}):
                        expected[n] += x[r, :, k].sum()
        np.testing.assert_allclose(op(x, size=size, hop=hop), expected, rtol=1e-12, atol=1e-12)
