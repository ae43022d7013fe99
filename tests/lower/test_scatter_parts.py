"""Scatters of single elements: one pass over the terms, unless these cost more than to look at them in each of several."""

from __future__ import annotations

import pytest

from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import SCATTER_PARTS, ScatterPlan
from opc.pipeline import compile_text

SPEC = """\
op: binned
domain: tests
version: 1
doc: A test.
types: {{T: [float32, float64]}}
inputs: {{x: 'T[N]', w: 'T[N]', ids: 'int64[N]', jds: 'int64[N]'}}
outputs: {{y: 'T[K]'}}
attributes: {{K0: {{type: int, check: K0 > 0}}}}
shape: {{K: K0}}
gradient: {{scatter: {scatter}}}
kernel: y[k] = sum[n]({term} if {place} == k else 0)
"""


def parts(term: str, place: str = "ids[n]", scatter: str = "deterministic") -> list[int]:
    op = compile_text(SPEC.format(term=term, place=place, scatter=scatter), "binned.yaml").forward
    stages = [s for v in cpu_programs(op) for s in v.program.stages if isinstance(s, NestStage)]
    return [p.parts for s in stages for p in s.plans if isinstance(p, ScatterPlan)]


@pytest.mark.parametrize(
    ("term", "place"),
    [("cast(T, 1)", "ids[n]"), ("x[n]", "ids[n]"), ("x[n] * w[n]", "ids[n] + 1"), ("x[n]", "ids[n] + jds[n] // 2")],
)
def test_terms_that_cost_no_more_than_to_look_at_them_are_added_in_one_pass(term: str, place: str) -> None:
    assert parts(term, place) == [1]


def test_others_are_shared_out() -> None:
    assert parts("exp(x[n]) * tanh(w[n] * x[n] + 1) / (2 + sin(x[n]) * cos(w[n]))") == [SCATTER_PARTS]
