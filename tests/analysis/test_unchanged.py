"""Which results are an operand as it is, of ops that only look alike too."""

from __future__ import annotations

import pytest

from opc.analysis.unchanged import UnchangedResult, unchanged
from opc.ir.op import Op
from opc.pipeline import compile_text

SPEC = """
op: tried
doc: A sum.
domain: opc.test
version: 1
types: {{T: [float16, float32, float64]}}
{broadcast}
inputs: {inputs}
outputs: {outputs}
kernel: |
  {kernel}
"""


def backward(inputs: str, kernel: str, outputs: str = "{y: 'T[..., D]'}", broadcast: bool = False) -> Op:
    shared = "broadcast: true" if broadcast else ""
    found = compile_text(SPEC.format(inputs=inputs, outputs=outputs, kernel=kernel, broadcast=shared), "tried.yaml").backward
    assert found is not None
    return found


def test_a_sum_of_one_shape_hands_its_cotangent_on() -> None:
    op = backward("{x: 'T[..., D]', b: 'T[D]'}", "y[..., d] = x[..., d] + b[d]")
    assert unchanged(op) == {"d_x": UnchangedResult("d_y", always=True)}  # that of b is a sum


def test_broadcast_operands_have_to_be_looked_at_in_the_call() -> None:
    op = backward("{a: 'T[...]', b: 'T[...]'}", "y = a + b", "{y: 'T[...]'}", broadcast=True)
    assert unchanged(op) == {"d_a": UnchangedResult("d_y", always=False), "d_b": UnchangedResult("d_y", always=False)}


def test_a_cotangent_may_be_missing() -> None:
    op = backward("{x: 'T[..., D]', b: 'T[..., D]'}", "y = x\n  z = b", "{y: 'T[..., D]', z: 'T[..., D]'}")
    assert unchanged(op) == {"d_x": UnchangedResult("d_y", always=True), "d_b": UnchangedResult("d_z", always=True)}


@pytest.mark.parametrize(
    ("inputs", "kernel", "outputs"),
    [
        ("{x: 'T[..., D]'}", "y = -x", "{y: 'T[..., D]'}"),
        ("{x: 'T[M, N]'}", "y[n, m] = x[m, n]", "{y: 'T[N, M]'}"),
        ("{x: 'T[M, M]'}", "y[n, m] = x[m, n]", "{y: 'T[M, M]'}"),
        ("{x: 'T[N]'}", "y[n] = x[N - 1 - n]", "{y: 'T[N]'}"),
        ("{x: 'T[...]'}", "y = cast(float32, x)", "{y: 'float32[...]'}"),
        ("{x: 'T[...]'}", "y = x\n  z = x", "{y: 'T[...]', z: 'T[...]'}"),
    ],
)
def test_what_only_looks_alike_is_computed(inputs: str, kernel: str, outputs: str) -> None:
    assert unchanged(backward(inputs, kernel, outputs)) == {}
