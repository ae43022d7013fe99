"""Derived ops of an op whose operands broadcast have the axes that all of these share, whichever they read."""

from __future__ import annotations

import numpy as np
import pytest

from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float64]}
broadcast: true
inputs: {x: 'T[..., N]', 'b?': 'T[..., N]', q: 'int16[..., N]'}
outputs: {y: 'T[..., N]', p: 'T[N]'}
kernel: |
  y[..., i] = x[..., i] * 2
  p[i] = sum[...](x[..., i] * x[..., i])
"""
EXPLICIT = SPEC + "gradient:\n  body: |\n    d_x[..., i] = 2*d_y[..., i] + 2*d_p[i]*x[..., i]\n    d_b[..., i] = 0\n"
X = np.array([1.0, 3.0])


FAMILY = compile_text(SPEC, "f.yaml")


@pytest.mark.parametrize("family", [FAMILY, compile_text(EXPLICIT, "f.yaml")], ids=["derived", "by_hand"])
def test_every_derived_op_is_told_what_operands_share(family: Family) -> None:
    for op in family.ops:
        assert {o.name for o in op.inputs} >= {"x", "b", "q"}, op.name


def test_a_gradient_counts_the_points_that_an_operand_without_gradient_has() -> None:
    assert FAMILY.backward is not None
    inputs = {"x": X, "q": np.ones((5, 2), np.int16), "d_p": np.ones(2)}
    assert evaluate(FAMILY.backward, inputs)["d_x"].value.tolist() == [5 * 2, 5 * 6]


def test_a_tangent_has_the_shape_of_the_output() -> None:
    assert FAMILY.jvp is not None
    for shared in ({"q": np.ones((5, 2), np.int16)}, {"q": np.ones(2, np.int16), "b": np.ones((5, 1, 2))}):
        inputs = {"x": X, **shared}
        tangent = evaluate(FAMILY.jvp, {**inputs, "t_x": np.ones(2)}, wanted=["t_y"])["t_y"]
        assert tangent.shape == evaluate(FAMILY.forward, inputs)["y"].shape


def test_a_condition_on_the_place_among_shared_axes_stays_inside_the_sum_along_them() -> None:
    head, _ = SPEC.split("inputs:")
    operands = "inputs: {x: 'T[..., N]', z: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\n"
    text = f"{head}{operands}kernel: |\n  y[..., i] = 0 if position(...) % 2 == 0 else sum[k:N](x[..., i] * z[..., k])\n"
    backward = compile_text(text, "f.yaml").backward
    assert backward is not None
    z = np.arange(8.0).reshape(4, 2)
    found = evaluate(backward, {"x": X, "z": z, "d_y": np.ones((4, 2))})["d_x"]
    assert found.value.tolist() == [z[1::2].sum()] * 2
