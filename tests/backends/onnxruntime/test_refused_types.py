"""Which type the proof gives an op's operands to see it refused."""

from __future__ import annotations

import pytest

from opc.backends.base import Unsupported
from opc.backends.onnxruntime.checks import type_to_refuse
from opc.ir.op import Op
from opc.pipeline import compile_text

EVERY = "[any, unsigned, float8, small, bool]"


def converting(source: str, target: str) -> Op:
    text = f"""
op: converting
doc: A test.
domain: opc.test
version: 1
types: {{T: {source}, U: {target}}}
inputs: {{x: 'T[N]', like: 'U[N]'}}
outputs: {{y: 'U[N]'}}
kernel: y[n] = cast(U, x[n])
"""
    return compile_text(text, "converting.yaml").forward


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [("[float32]", "[float64]", "uint64"), (EVERY, "[float32, uint64]", "float16"), ("[float32, uint64]", EVERY, "float16")],
)
def test_a_type_that_the_fewest_operands_take(source: str, target: str, name: str) -> None:
    assert type_to_refuse(converting(source, target))[0] == name


def test_none_is_left() -> None:
    with pytest.raises(Unsupported, match="every operand takes every element type"):
        type_to_refuse(converting(EVERY, EVERY))
