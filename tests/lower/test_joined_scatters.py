"""Sums of scatters to the same places: one pass over the terms, which read what is computed at these places."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.lower.lower import lower
from opc.lower.nests.joined_scatters import with_joined_scatters
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[N, E]', ids: 'int64[N, K]', other: 'int64[N, K]', v: 'T[N, K]', w: 'T[N, K]'}
outputs: {y: 'T[N, E]'}
kernel: |
"""


def op_of(kernel: str) -> Op:
    """Return the forward op of a kernel's lines."""
    return compile_text(HEAD + "".join(f"  {line}\n" for line in kernel.splitlines()), "test").forward


def statements(op: Op) -> list[str]:
    """Return the statements of an op as text."""
    return [format_assign(s) for s in op.body]


def test_scatters_to_the_same_places_are_one() -> None:
    op = op_of("y[n, e] = sum[i](v[n, i] if e == ids[n, i] else 0) + sum[j](w[n, j] if e == ids[n, j] else 0)")
    assert statements(with_joined_scatters(op)) == ["y[n, e] = sum[i:K](v[n, i] + w[n, i] if e == ids[n, i] else 0)"]
    (variant,) = lower(op)
    assert "y_sum" not in format_variant(variant)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param("sum[j](w[n, j] if e == other[n, j] else 0)", id="to other places"),
        pytest.param("sum[j](w[n, j] if e == ids[n, j] and j > 0 else 0)", id="of fewer terms"),
        pytest.param("sum[j:K - 1](w[n, j] if e == ids[n, j] else 0)", id="over fewer points"),
        pytest.param("max[j](w[n, j] if e == ids[n, j] else 0)", id="another reduction"),
        pytest.param("sum[j](w[n, j] * x[n, e])", id="no scatter"),
    ],
)
def test_others_stay_apart(second: str) -> None:
    op = op_of(f"y[n, e] = sum[i](v[n, i] if e == ids[n, i] else 0) + {second}")
    assert with_joined_scatters(op) is op


VALUES = """\
at[n, i] = exp(x[n, ids[n, i]]) * v[n, i]
all[n, e] = exp(x[n, e])
p[n, i] = exp(x[n, ids[n, i]])
y[n, e] = sum[i](p[n, i] * w[n, i] + all[n, e] * at[n, i] if e == ids[n, i] else 0){more}
"""


def test_a_value_at_the_places_of_terms_is_what_is_computed_there() -> None:
    assert statements(with_joined_scatters(op_of(VALUES.format(more=""))))[-1] == (
        "y[n, e] = sum[i:K](p[n, i] * w[n, i] + p[n, i] * at[n, i] if e == ids[n, i] else 0)"
    )
    assert len(with_joined_scatters(op_of(VALUES.format(more=""))).body) == 3


def test_a_value_that_is_needed_anyhow_stays() -> None:
    joined = with_joined_scatters(op_of(VALUES.format(more=" + all[n, e]")))
    assert any(text.startswith("all") for text in statements(joined))
