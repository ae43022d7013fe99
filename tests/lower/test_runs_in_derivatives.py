"""Derivatives of sums over runs, and of scatters: like the op, they go by what data says and ask it of no place."""

import re

import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[N]', w: 'T[N]', a: 'T[B]', 'v?': 'T[N]', o: 'int64[E]', c: 'int64[N]'}
outputs: {y: 'T[%s]'}
require: [N > 0, E == B + 1]
kernel: |
  %s
"""
RUN = "o[b] <= n and n < o[b + 1]"
SUMS = {
    "a product": ("B", f"y[b] = a[b] * sum[n](x[n] * w[n] if {RUN} else 0)"),
    "a function": ("B", f"y[b] = sum[n](x[n] * exp(w[n]) if {RUN} else 0)"),
    "a square": ("B", f"y[b] = sum[n]((x[n] - a[b]) ** 2 * w[n] if {RUN} else 0)"),
    "an optional factor": ("B", f"y[b] = sum[n](x[n] * w[n] * (v[n] if present(v) else 1) if {RUN} else 0)"),
    "the other way": ("N", f"y[n] = sum[b:B](a[b] * x[n] if {RUN} else 0)"),
    "a place": ("B", "y[b] = sum[n](x[n] * w[n] if c[n] == b else 0)"),
    "a place and a sign": ("B", "y[b] = sum[n](x[n] * exp(w[n]) if c[n] == b and x[n] > 0 else 0)"),
}


@pytest.mark.parametrize("form", SUMS)
def test_no_derivative_asks_each_place_for_its_run(form: str) -> None:
    family = compile_text(SPEC % SUMS[form], "f.yaml")
    asked = re.compile(r"\bif (not )?\(*[oc]\[")
    for op in family.ops:
        for variant in cpu_programs(op):
            for line in format_variant(variant, loops=True).splitlines():
                loop = line.strip()
                statement = loop.startswith("#") or re.match(r"[a-z_0-9]+\[[^]]*\] = ", loop) is not None
                assert statement or not asked.search(loop), (op.name, loop)
