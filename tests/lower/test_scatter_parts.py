"""Scatters of single elements: one pass over the terms, unless these cost more than to look at them in each of several."""

from __future__ import annotations

import pytest

from opc.ir.expr import has_reduction
from opc.ir.op import Op
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


def plans(spec: str | Op) -> list[ScatterPlan]:
    op = compile_text(spec, "binned.yaml").forward if isinstance(spec, str) else spec
    stages = [s for v in cpu_programs(op) for s in v.program.stages if isinstance(s, NestStage)]
    return [p for s in stages for p in s.plans if isinstance(p, ScatterPlan)]


def parts(term: str, place: str = "ids[n]", scatter: str = "deterministic") -> list[int]:
    return [p.parts for p in plans(SPEC.format(term=term, place=place, scatter=scatter))]


@pytest.mark.parametrize(
    ("term", "place"),
    [("cast(T, 1)", "ids[n]"), ("x[n]", "ids[n]"), ("x[n] * w[n]", "ids[n] + 1"), ("x[n]", "ids[n] + jds[n] // 2")],
)
def test_terms_that_cost_no_more_than_to_look_at_them_are_added_in_one_pass(term: str, place: str) -> None:
    assert parts(term, place) == [1]


def test_others_are_shared_out() -> None:
    assert parts("exp(x[n]) * tanh(w[n] * x[n] + 1) / (2 + sin(x[n]) * cos(w[n]))") == [SCATTER_PARTS]


@pytest.mark.parametrize(
    "term", ["cast(T, ids[n] == k)", "cast(T, k == ids[n] + 1 and x[n] > 0)", "cast(T, 1) if ids[n] == k else 0"]
)
def test_a_condition_as_a_number_is_a_scatter_of_ones(term: str) -> None:
    text = SPEC.format(term="x[n]", place="ids[n]", scatter="deterministic")
    (plan,) = plans(text.replace("sum[n](x[n] if ids[n] == k else 0)", f"sum[n]({term})"))
    assert dict(plan.scatter_indices).keys() == {"k"}


NUMBERED = """\
op: numbered
domain: tests
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[N]', at: 'int32[N]'}
attributes: {d: int, h: int, w: int}
shape: {D: d, H: h, W: w}
outputs: {y: 'T[D, H, W]'}
kernel: y[i, j, k] = sum[n](x[n] if NUMBER else 0)
"""


@pytest.mark.parametrize("number", ["at[n] == i*H*W + j*W + k", "k + j*W + i*W*H + 1 == at[n]", "at[n] - 2 == (i*H + j)*W + k"])
def test_places_numbered_row_by_row_are_a_scatter_in_all_derivatives(number: str) -> None:
    family = compile_text(NUMBERED.replace("NUMBER", number))
    (plan,) = plans(NUMBERED.replace("NUMBER", number))
    assert list(dict(plan.scatter_indices)) == ["i", "j", "k"]
    # The gradient reads one element for each term, and its gradient is a scatter again.
    assert family.backward is not None
    assert family.backward_backward is not None
    assert not any(has_reduction(s.value) for s in family.backward.body)
    assert len(plans(family.backward_backward)) == 1


@pytest.mark.parametrize(
    "number", ["at[n] == i*H*W + j*W", "at[n] == i*H*W + j*H + k", "at[n] == i*W + j*H*W + k", "at[n] == i + j + k"]
)
def test_other_numbers_are_searched_for(number: str) -> None:
    assert all(len(plan.scatter_indices) == 1 for plan in plans(NUMBERED.replace("NUMBER", number)))


PLACED = """\
op: placed
domain: tests
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[B, P]', at: 'int64[B, P]'}
attributes: {h: int, w: int, rows: int, columns: int}
shape: {H: h, W: w}
outputs: {y: 'T[B, H, W]'}
kernel: y[b, i, j] = sum[p](x[b, p] if NUMBER else 0)
"""


@pytest.mark.parametrize(
    "number",
    [
        "at[b, p] == (b*H + i)*W + j",  # over all images, of which a term is in its own
        "at[b, p] == (b*rows + i)*columns + j and i < rows and j < columns",  # in rows of another length than the target's
        "j <= columns - 1 and columns*i + j == at[b, p] - 3",
    ],
)
def test_numbers_of_places_may_count_what_the_terms_have_and_rows_of_another_length(number: str) -> None:
    family = compile_text(PLACED.replace("NUMBER", number))
    (plan,) = plans(PLACED.replace("NUMBER", number))
    assert list(dict(plan.scatter_indices)) == ["i", "j"]
    assert family.backward is not None
    assert family.backward_backward is not None
    assert not any(has_reduction(s.value) for s in family.backward.body)
    assert len(plans(family.backward_backward)) == 1


def test_rows_of_a_length_that_nothing_says_are_searched_for() -> None:
    assert all(len(p.scatter_indices) == 1 for p in plans(PLACED.replace("NUMBER", "at[b, p] == i*columns + j and j <= columns")))
