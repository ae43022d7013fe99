"""ONNX Runtime runs the functions of recurrences: for what a step gives it must know the rank, which a function leaves open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.backends.node_call import NodeCall
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load

HEAD = "domain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float64]}\nattributes: {axis: {type: axis, dim: N, default: 0}}\n"
SHAPE = "T[*A, N, *B]"
RUNNING = f"""
op: running_max
{HEAD}inputs: {{x: '{SHAPE}'}}
outputs: {{y: '{SHAPE}', i: 'int64[*A, N, *B]'}}
kernel: |
  i[*A, n, *B] = n if n == 0 or x[*A, n, *B] >= x[*A, i[*A, n - 1, *B], *B] else i[*A, n - 1, *B]
  y[*A, n, *B] = x[*A, i[*A, n, *B], *B]
"""
FILTER = f"""
op: recursive_filter
{HEAD}inputs: {{x: '{SHAPE}'}}
outputs: {{y: '{SHAPE}'}}
kernel: |
  y[*A, n, *B] = x[*A, n, *B] - pad(y[*A, n + 1, *B], 0)/2 + pad(y[*A, n + 2, *B], 0)/4
"""


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 3, 2), (0,), (0, 2), (3, 0)], ids=str)
@pytest.mark.parametrize("text", [RUNNING, FILTER], ids=["rising", "falling"])
def test_steps_over_axes_of_any_number(text: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    import onnxruntime

    family = compile_text(text)
    session = load(family, tmp_path)
    assert family.backward is not None
    rng, axis = np.random.default_rng(3), len(shape) // 2
    for op in (family.forward, family.backward):
        given = {o.name: rng.normal(size=shape) for o in op.inputs}
        for o in op.inputs:
            if str(o.type) == "int64":
                given[o.name] = np.minimum.accumulate(rng.integers(0, max(shape[axis], 1), size=shape), axis=axis)
        model = NodeCall(op, given, {"axis": axis}, None).function_model(session.module)
        outputs = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
        want = evaluate(op, given, {"axis": axis})
        for o, found in zip(op.outputs, outputs, strict=True):
            bounds = want[o.name].bounds
            assert found.shape == shape
            assert np.all((found >= bounds.low) & (found <= bounds.high)), (op.name, o.name)
