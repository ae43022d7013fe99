"""Remainders and quotients that the range of an index decides are left out, and no others."""

from __future__ import annotations

import pytest

from opc.ir.printer import format_expr
from opc.pipeline import compile_text

SPEC = """\
op: digits
domain: tests
version: 1
doc: A test.
types: {{T: floating}}
inputs: {{x: 'T[N]', z: 'T[N, M]'}}
outputs: {{y: 'T[K]'}}
shape: {{K: {size}}}
require: [N > 0, M > 0]
kernel: y[p] = {value}
"""


@pytest.mark.parametrize(
    ("size", "value", "printed"),
    [
        ("N", "x[p % N]", "x[p]"),
        ("N", "x[p % N] * (p // N)", "x[p] * 0"),
        ("N*M", "z[p // M % N, p % M]", "z[p // M, p % M]"),
        ("M*N", "z[(p // M) % N, p % M]", "z[p // M, p % M]"),
        ("N + 1", "x[p % N]", "x[p % N]"),
        ("N*M", "z[p // N % N, p % M]", "z[(p // N) % N, p % M]"),
        ("M", "sum[n:N](x[n % N] + x[p % N])", "sum[n:N](x[n] + x[p % N])"),
        (
            "M",
            "x[p % N] * sum[n:N*M](z[p % N, n % M] + x[n // M % N] * p)",
            "x[p % N] * sum[n:M*N](z[p % N, n % M] + x[n // M] * p)",
        ),
        ("M", "sum[q:M](max[n:q](x[n % N] * p) * (q % M) + q // M)", "sum[q:M](max[n:q](x[n % N] * p) * q + 0)"),
    ],
)
def test_a_digit_that_the_range_decides(size: str, value: str, printed: str) -> None:
    op = compile_text(SPEC.format(size=size, value=value), "digits.yaml").forward
    assert format_expr(op.body[-1].value) == printed
