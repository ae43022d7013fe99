"""Reductions of reductions: those inside run at each point of those around, each vectorised as it is by itself."""

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
types: {T: [float32, float64]}
inputs: {x: 'T[N, K]', w: 'T[E, M, K]', v: 'T[E, K, M]', ids: 'int64[N, E]', few: 'T[N, 3]'}
outputs: {y: 'T[N, M]'}
kernel: |
"""


def loops(kernel: str) -> str:
    """Return the loops of a kernel as text."""
    (variant,) = lower(compile_text(f"{HEAD}  {kernel}\n", "test").forward)
    return format_variant(variant, loops=True)


def test_along_an_axis_of_their_own() -> None:
    text = loops("y[n, m] = sum[e](few[n, 0] * sum[k](x[n, k] * w[ids[n, e], m, k]))")
    assert "schedule: vectorise\n" in text
    inner = text[text.index("for e in 0 .. E:") :]
    assert "var total_2: T = 0" in inner
    assert "vector reduction for lane in 0 .. lanes carrying part:" in inner
    assert inner.index("total_2 += part") < inner.index("total += few")


def test_along_the_last_axis_of_the_target() -> None:
    text = loops("y[n, m] = sum[e](few[n, 0] * exp(sum[k](x[n, k] * v[ids[n, e], k, m])))")
    assert "schedule: vectorise(m)" in text
    inner = text[text.index("for e in 0 .. E:") :]
    assert inner.index("fill(total_2, count, T(0))") < inner.index("for k in 0 .. K:") < inner.index("total[m] += ")


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(
            "y[n, m] = sum[e](pad(w[e, m, 0], 0) * exp(sum[p:3](few[n, p] * pad(w[ids[n, e], m, p], 0))))", id="short ones"
        ),
        pytest.param("y[n, m] = max[e](sum[k](x[n, k] * w[ids[n, e], m, k]))", id="the greatest of sums"),
        pytest.param(
            "y[n, m] = sum[e](few[n, 0] if sum[k](x[n, k] * w[ids[n, e], m, k]) > 1 else 0)",
            id="sums that say which points count",
        ),
    ],
)
def test_others_go_point_by_point(kernel: str) -> None:
    text = loops(kernel)
    assert "schedule: plain loops" in text
    assert "sum[" in text
