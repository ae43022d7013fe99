"""Messages about a size that a call gives no value have its rule as the spec has it, on both sides of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends.kernel.backend import KernelBackend
from opc.emit.shapes import python as shape_python
from opc.pipeline import compile_text

BACKWARDS = """
op: backwards
domain: tests
version: 1
doc: Elements from one on, backwards by steps; names that Python keeps are as the spec has them.
types: {T: [float32]}
inputs: {x: 'T[N]'}
attributes: {start: int, lambda: {type: int, check: lambda > 0}}
outputs: {y: 'T[M]'}
shape:
  s: minimum(maximum(start + N  if start < 0
     else start, -1), N - 1)
  M: (s + lambda) // lambda
kernel: y[i] = x[s - i*lambda]
"""
SEVERAL = """
op: trimmed
domain: tests
version: 1
doc: Each axis without as many elements at both ends.
types: {T: [float32]}
ranks: {S: [2], O: S}
inputs: {x: 'T[*S]'}
attributes: {ends: {type: 'int[*S]', check: ends >= 0}}
outputs: {y: 'T[*O]'}
shape: {O: S - (ends + ends)}
kernel: y[*O] = x[*(O + ends)]
"""
BELOW = "s = minimum(maximum(start + N if start < 0 else start, -1), N - 1) would be -1"
CALLS = [
    (
        BACKWARDS,
        (5,),
        {"start": -7, "lambda_": 1},
        "s = minimum(maximum(start + N if start < 0 else start, -1), N - 1) would be -1",
    ),
    (
        BACKWARDS,
        (0,),
        {"start": 3, "lambda_": 1},
        "s = minimum(maximum(start + N if start < 0 else start, -1), N - 1) would be -1",
    ),
    (SEVERAL, (4, 3), {"ends": [1, 2]}, "O1 = S1 - (ends[1] + ends[1]) would be -1"),
]


@pytest.mark.parametrize(("text", "shape", "attributes", "message"), CALLS)
def test_messages_have_the_rule_as_it_is_written(
    text: str, shape: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    family = compile_text(text, "trimmed2d.yaml")
    name = family.name
    with pytest.raises(ShapeError) as refused:
        infer(family.forward, {"x": shape}, attributes)
    assert str(refused.value) == f"{name}: {message}"
    made: dict[str, Any] = {"__name__": "shape"}
    exec(shape_python.emit(family), made)
    with pytest.raises(made["ShapeError"]) as refused_too:
        made[f"infer_shapes_{name}"](shape, **attributes)
    assert str(refused_too.value) == f"{name}: {message}"
    rule = message.partition(" = ")[2].partition(" would be")[0]
    kernel = "".join(KernelBackend().emit(family).values())
    # In the kernels of the gradients too.
    assert kernel.count(json.dumps(rule)) >= 2
