"""Derivatives of sums over runs, of scatters and of running sums: like the op, they go by what data says and ask it of no place,
and take one pass."""

import re

import pytest

from opc.ir.expr import Axis, reductions
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import ScanPlan
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
    "all factors": ("B", f"y[b] = a[b] * prod[n](x[n] + w[n] if {RUN} else 1)"),
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


RUNNING = {
    "a logarithm of a running sum": "y[i] = log(sum[k:i + 1](exp(x[k])))",
    "a quotient of running sums": "y[i] = sum[k:i + 1](x[k] * w[k]) / sum[k:i + 1](w[k])",
    "a root of what has been": "y[i] = sqrt(1 + sum[k:i + 1](x[k] ** 2)) * w[i]",
    "a sum of running sums": "y[i] = w[i] * sum[j](x[j] * sum[k:j](exp(x[k])))",
    "what is left": "y[i] = w[i] / sum[k:N - i](exp(x[i + k]))",
}


@pytest.mark.parametrize("form", RUNNING)
def test_derivatives_of_running_sums_are_made_of_running_sums(form: str) -> None:
    text = SPEC.replace("a: 'T[B]', ", "").replace("o: 'int64[E]', ", "").replace(", E == B + 1", "")
    for op in compile_text(text % ("N", RUNNING[form]), "f.yaml").ops:
        for variant in cpu_programs(op):
            for s in variant.program.stages:
                sloped = isinstance(s, NestStage) and any(
                    isinstance(a, Axis) and a.extent.indices() for e in reductions(s.assign.value) for a in e.axes
                )
                assert not sloped or (isinstance(s, NestStage) and s.plans and isinstance(s.plans[0], ScanPlan)), op.name
