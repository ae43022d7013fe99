"""Sums of the steps that name a step: over a run of them, in the order of those that they name."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.lower.chosen_steps import with_chosen_steps
from opc.lower.fuse import cpu_programs
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

SPEC = """\
op: stepping
domain: tests
version: 1
doc: A test.
types: {{T: [float32, float64]}}
inputs: {{x: 'T[N, D]', up: 'int64[N]', at: 'int64[D, N]', w: 'T[D]'}}
outputs: {{h: 'T[N, D]'}}
kernel: h[t, d] = x[t, d] + {value}
"""
PARENT = "(h[up[t], d] if 0 <= up[t] and up[t] < t else 0)"
CHILDREN = "sum[k:N](w[d] * h[k, d] if up[k] == t and k < t else 0)"


def ops(value: str) -> tuple[Op, Op]:
    """Return the op of a recurrence, and its gradient."""
    family = compile_text(SPEC.format(value=value), "stepping.yaml")
    assert family.backward is not None
    return family.forward, family.backward


def steps_of(op: Op) -> str:
    """Return the loops of the steps of an op."""
    text = "".join(format_variant(v, loops=True) for v in cpu_programs(op))
    return text.split("one after the other:")[1].split("\n  parallel")[0]


@pytest.mark.parametrize(
    ("value", "which"),
    [
        pytest.param(PARENT, 1, id="the gradient of a read of a step that data names"),
        pytest.param(CHILDREN, 0, id="a sum over the children in a tree"),
        pytest.param("(h[at[d, t], d] if 0 <= at[d, t] and at[d, t] < t else 0)", 1, id="other steps at each point"),
        pytest.param("(h[up[t] - 1, d] if up[t] >= 1 and up[t] <= t else 0)", 1, id="what names them says how they go"),
    ],
)
def test_each_step_goes_through_a_run(value: str, which: int) -> None:
    loops = steps_of(ops(value)[which])
    assert "clip_from(" in loops
    assert "clip_to(" in loops
    assert "0 .. N" not in loops


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("sum[k:N](h[k, d] if k < t else 0)", id="all steps before"),
        pytest.param("sum[k:8](x[k % 2, d] * h[k, d] if up[k % 2] == t and k < t else 0)", id="a few"),
        pytest.param("sum[k:N](h[k, d] if x[k, d] > 0 and k < t else 0)", id="another condition"),
        pytest.param("sum[k:N, l:N](h[k, d] if up[k] + up[l] == t and k < t else 0)", id="two of them together"),
    ],
)
def test_others_go_through_all(value: str) -> None:
    text = SPEC.format(value=value).replace("kernel:", "require: [N >= 8]\nkernel:")
    op = compile_text(text, "stepping.yaml").forward
    assert with_chosen_steps(op) is op


def test_two_sums_share_an_order() -> None:
    op, _ = ops(f"{CHILDREN} - {CHILDREN.replace('w[d]', 'x[k, d]')}")
    assert [format_assign(s) for s in with_chosen_steps(op).body].count("t_named[k] = up[k]") == 1
