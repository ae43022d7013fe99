"""Choices that only say whether a read is inside, as padded reads."""

from __future__ import annotations

import pytest

from opc.ir.expr import Const, Read, Select
from opc.lower.lower import lower
from opc.lower.nest_plans import VectorPlan
from opc.pipeline import compile_text

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float32, float64], I: [int32, int64]}
inputs: {x: 'T[N, M]', at: 'I[K, M]', row: 'int64[K]', small: 'int8[K, M]'}
outputs: {y: 'T[K, M]'}
kernel: |
  y[k, m] = VALUE
"""


def value(text: str) -> object:
    """Return the value of the nest that a statement becomes."""
    (variant,) = lower(compile_text(SPEC.replace("VALUE", text), "f.yaml").forward)
    (plan,) = (s.plans[0] for s in variant.program.stages)
    assert isinstance(plan, VectorPlan)
    assert bool(plan.looked_up) is isinstance(plan.statement.value, Read)
    return plan.statement.value


@pytest.mark.parametrize(
    "text",
    [
        "x[at[k, m], m] if at[k, m] >= 0 and at[k, m] < N else 2",
        "x[at[k, m], m] if not (at[k, m] < 0 or at[k, m] >= N) else 2",
        "x[at[k, m], m] if cast(int64, at[k, m]) < N and cast(int64, at[k, m]) >= 0 else 2",
    ],
)
def test_such_a_choice_is_a_padded_read(text: str) -> None:
    found = value(text)
    assert isinstance(found, Read)
    assert isinstance(found.pad, Const)
    assert (found.pad.value, found.pad.type, found.checked) == (2, found.type, ())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x[at[k, m], m] if at[k, m] >= 0 else 2", id="half of what says that it is inside"),
        pytest.param("x[at[k, m], m] if at[k, m] >= 0 and at[k, m] < N and m > 1 else 2", id="more than that"),
        pytest.param("x[at[k, m], m] if at[k, m] >= 0 and at[k, m] < M else 2", id="another size"),
        pytest.param("x[row[k], m] if row[k] >= 0 and row[k] < N else 2", id="a place of the row's own"),
    ],
)
def test_others_stay_choices(text: str) -> None:
    assert isinstance(value(text), Select)
