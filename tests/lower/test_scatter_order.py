"""A scatter goes over the terms of one place together: what its sum has beside the indices of the place stands innermost."""

from __future__ import annotations

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

SPEC = """\
op: dots
domain: tests
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {a: 'T[V, O]', b: 'T[V, O]', src: 'int64[E]', dst: 'int64[E]'}
outputs: {y: 'T[V]'}
gradient: none
kernel: y[v] = sum[o, e](a[src[e], o] * b[dst[e], o] if dst[e] == v else 0)
"""


def test_rows_that_data_picks_are_read_as_rows() -> None:
    (variant,) = lower(compile_text(SPEC, "dots.yaml").forward)
    loops = format_variant(variant, loops=True)
    assert "schedule: scatter(v = dst[e])" in loops
    assert 0 < loops.index("for e in 0 .. E") < loops.index("for o in 0 .. O"), loops
