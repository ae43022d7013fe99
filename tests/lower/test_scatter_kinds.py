"""Reductions other than sums whose condition names a place: one pass over the terms, a search two."""

from __future__ import annotations

import pytest

from opc.ir.expr import SEARCHES, Reduce, reads, walk
from opc.ir.op import Op
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import ScatterPlan
from opc.pipeline import compile_text
from tests.lower.test_scatter_parts import plans

SPEC = """\
op: joined
domain: tests
version: 1
doc: A test.
types: {{T: floating}}
inputs: {{x: 'T[N, D]', h: 'int32[N, D]', ids: 'int64[N]', to: 'int64[N]'}}
attributes: {{count: {{type: int, check: count >= 1}}, W: {{type: int, check: W >= 1}}}}
outputs: {{y: '{of}[{dims}]'}}
shape: {{K: count, J: W}}
{gradient}kernel: y[{indices}] = {value}
"""


def joined(value: str, of: str = "T", indices: str = "k, d", *, derived: bool = False) -> Op:
    dims = ", ".join(i.upper() for i in indices.split(", "))
    gradient = "" if derived else "gradient: none\n"
    family = compile_text(SPEC.format(of=of, dims=dims, indices=indices, value=value, gradient=gradient), "joined.yaml")
    assert family.backward is not None or not derived
    return family.backward if derived and family.backward is not None else family.forward


@pytest.mark.parametrize(
    ("kind", "value", "of"),
    [
        ("max", "max[n](x[n, d] if ids[n] == k else -inf)", "T"),
        ("min", "min[n](2*x[n, d] if ids[n] == k and x[n, d] > 0 else inf)", "T"),
        ("prod", "prod[n](x[n, d] if ids[n] == k else 1)", "T"),
        ("any", "any[n](ids[n] == k and x[n, d] > 0)", "bool"),
        ("any", "any[n](x[n, d] > 0 if k == ids[n] + 1 else False)", "bool"),
        ("all", "all[n](x[n, d] > 0 if ids[n] == k else True)", "bool"),
        ("all", "all[n](ids[n] != k or x[n, d] > 0)", "bool"),
        ("max", "max[n](h[n, d] if ids[n] == k else -2147483648)", "int32"),
        ("max", "(max[n](x[n, d] if ids[n] == k else -inf) if N > 0 else 3) + 1", "T"),
    ],
)
def test_each_kind_takes_its_terms_in_where_they_say(kind: str, value: str, of: str) -> None:
    (plan,) = plans(joined(value, of))
    assert plan.reduction.kind == kind
    assert dict(plan.scatter_indices).keys() == {"k"}
    assert plan.vector_axis == "d"


@pytest.mark.parametrize(
    ("value", "indices", "named"),
    [
        ("max[n, d](x[n, d] if ids[n] == k and to[n] == j else -inf)", "k, j", {"k", "j"}),
        ("max[n, d](x[n, d] if ids[n] == k*J + j else -inf)", "k, j", {"k", "j"}),
    ],
)
def test_several_indices_are_named(value: str, indices: str, named: set[str]) -> None:
    (plan,) = plans(joined(value, indices=indices))
    assert dict(plan.scatter_indices).keys() == named


@pytest.mark.parametrize(
    "value",
    [
        "max[n](x[n, d] if ids[n] == k else 0)",  # a maximum takes the 0 of other terms in
        "max[n](h[n, d] if ids[n] == k else -2147483647)",
    ],
)
def test_what_counts_for_all_points_is_no_scatter(value: str) -> None:
    of = "int32" if "h[" in value else "T"
    assert not [p for p in plans(joined(value, of)) if p.reduction.kind == "max"]


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_a_search_is_a_scatter_of_the_best_and_one_of_their_places(kind: str) -> None:
    nothing = "-inf" if kind == "argmax" else "inf"
    found = plans(joined(f"{kind}[n](x[n, d] if ids[n] == k else {nothing})", "int64"))
    assert [p.reduction.kind for p in found] == [kind.removeprefix("arg"), "min"]


def test_so_is_the_gradient_of_a_maximum() -> None:
    op = joined("max[n](x[n, d] if ids[n] == k else -inf)", derived=True)
    stages = [s for v in cpu_programs(op) for s in v.program.stages if isinstance(s, NestStage)]
    over = [
        e for s in stages for e in walk(s.assign.value) if isinstance(e, Reduce) and e.kind in SEARCHES and any(reads(e.body))
    ]
    assert not over
    assert sum(isinstance(p, ScatterPlan) for s in stages for p in s.plans) == 2
