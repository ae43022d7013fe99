"""Sums in which a condition says what an affine expression of their indices is: over the indices that it leaves alone."""

from __future__ import annotations

import pytest

from opc.ir.printer import format_assign
from opc.lower.lower import lower
from opc.lower.nests.solved import with_solved_sums
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

SPEC = """\
op: summed
domain: tests
version: 1
doc: A test.
types: {{T: [float32, float64]}}
inputs: {{x: 'T[R, W]', ids: 'int64[R]'}}
outputs: {{y: 'T[N]'}}
attributes:
  size: {{type: int, check: size >= 0}}
  hop: {{type: int, default: 2, check: hop > 0}}
  step: {{type: int, default: 2}}
shape: {{N: size}}
kernel: y[n] = {value}
"""


def solved(value: str) -> str:
    """Return the statement that a sum becomes."""
    (statement,) = with_solved_sums(compile_text(SPEC.format(value=value), "summed.yaml").forward).body
    return format_assign(statement)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("r + k == n", "y[n] = sum[k:W](x[-k + n, k] if -k + n >= 0 and -k + n < R else 0)"),
        ("n - 1 == r + k", "y[n] = sum[k:W](x[-k + n - 1, k] if -k + n - 1 >= 0 and -k + n - 1 < R else 0)"),
        (
            "n == r*hop + k",
            "y[n] = sum[k:W](x[(-k + n) // hop, k]"
            " if (-k + n) % hop == 0 and (-k + n) // hop >= 0 and (-k + n) // hop < R else 0)",
        ),
        ("2 * r == n + 1", "y[n] = sum[k:W](x[(n + 1) // 2, k]) if (n + 1) % 2 == 0 and (n + 1) // 2 < R else 0"),
    ],
)
def test_an_equation_of_indices_is_solved(condition: str, expected: str) -> None:
    assert solved(f"sum[r, k](x[r, k] if {condition} else 0)") == expected


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("sum[r, k](x[r, k] if r == n else 0)", id="a bare index"),
        pytest.param("sum[r, k](x[r, k] if ids[r] + k == n else 0)", id="data"),
        pytest.param("sum[r, k](x[r, k] if (r + k) // 2 == n else 0)", id="a quotient"),
        pytest.param("sum[r, k](x[r, k] if r + k <= n else 0)", id="no equation"),
        pytest.param("sum[r, k](x[r, k] if r*step + k == n else 0)", id="a coefficient of any sign"),
        pytest.param("prod[r, k](x[r, k] if r + k == n else 0)", id="a product"),
        pytest.param("sum[r, k](x[r, k] if x[ids[r], k] > 0 and r + k == n else 0)", id="a lookup that is asked for all of them"),
        pytest.param("sum[r:R, k](x[(n + 1) % R, k] if r + k == n else 0)", id="a loop that tells what there is"),
    ],
)
def test_others_stay(value: str) -> None:
    op = compile_text(SPEC.format(value=value), "summed.yaml").forward
    assert with_solved_sums(op) is op


def test_what_cannot_be_solved_is_a_scatter() -> None:
    (variant,) = lower(compile_text(SPEC.format(value="sum[r, k](x[r, k] if r*step + k == n else 0)"), "summed.yaml").forward)
    assert "schedule: scatter(n = k + r*step)" in format_variant(variant)
