"""A bound of one side cuts a row in two; one of both sides leaves a part on each."""

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
gradient: none
types: {T: [float32]}
inputs: {x: 'T[N]', v: 'T[M]', w: 'T[K]'}
attributes: {c: int}
outputs: {y: 'T[L]'}
shape: {L: N + M + K}
kernel: |
  y[i] = """


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        pytest.param("pad(x[i], pad(v[i - N], w[i - N - M]))", 3, id="joined"),
        pytest.param("pad(v[i - 3], 2) if i >= 3 else 1", 4, id="from below, and on both sides within"),
        pytest.param("2 if i < N else 1", 2, id="from above"),
        pytest.param("2 if i >= N else 1", 2, id="from below"),
        pytest.param("2 if i >= N and i < N + M else 1", 3, id="on both sides"),
        pytest.param("2 if i*c < N else 1", 3, id="on a side that an attribute says"),
    ],
)
def test_a_row_has_a_loop_for_each_part(value: str, parts: int) -> None:
    loops = "".join(format_variant(v, loops=True) for v in lower(compile_text(HEAD + value, "f.yaml").forward))
    assert loops.count("vector for i in") == parts, loops
