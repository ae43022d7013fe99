"""Which ops compute each element from those at its place, of ops that only look alike too."""

from __future__ import annotations

import pytest

from opc.analysis.pointwise import is_pointwise
from opc.pipeline import compile_text

SPEC = """
op: tried
doc: A function.
domain: opc.test
version: 1
types: {{T: [float32, float64]}}
broadcast: {broadcast}
inputs: {inputs}
outputs: {{y: '{output}'}}
kernel: |
  {kernel}
"""


@pytest.mark.parametrize(
    ("inputs", "output", "kernel", "expected"),
    [
        ("{x: 'T[...]'}", "T[...]", "y = x * exp(x)", True),
        ("{a: 'T[...]', b: 'T[...]'}", "T[...]", "y = a * b", True),
        ("{x: 'T[N, M]'}", "T[N, M]", "y[n, m] = x[n, m] * n", True),
        ("{x: 'T[N, N]'}", "T[N, N]", "y[n, m] = x[m, n] * x[n, m]", False),
        ("{x: 'T[N]'}", "T[N]", "y[n] = x[n] * pad(x[n - 1], 0)", False),
        ("{x: 'T[N]'}", "T[N]", "y[n] = x[n] * sum[k](x[k])", False),
        ("{x: 'T[N, M]', w: 'T[M]'}", "T[N, M]", "y[n, m] = x[n, m] * w[m]", False),
    ],
)
def test_is_pointwise(inputs: str, output: str, kernel: str, expected: bool) -> None:
    shared = "true" if "b:" in inputs else "false"
    family = compile_text(SPEC.format(inputs=inputs, output=output, kernel=kernel, broadcast=shared), "tried.yaml")
    assert is_pointwise(family.forward) is expected
    if expected:
        assert family.backward_jvp is not None
        assert is_pointwise(family.backward_jvp)
