"""Functions of what is transposed, padded and transposed again, as ONNX Runtime optimises their models and as it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.backends.node_call import NodeCall
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load

HEAD = "op: padded\ndomain: test\nversion: 1\ndoc: A test.\ntypes: {T: [float32, float64]}\n"
KERNELS = {
    "shifted": ("x: 'T[S, H, R]'", "T[S, H, R]", "t[h, s, r] = x[s, h, r] * 2\n  y[s, h, r] = pad(t[h, s, r + 1], 0)"),
    "joined": (
        "x: 'T[S, H, R]'",
        "T[S, N]",
        "t[h:H, s:S, r:3] = x[s, h, minimum(r, R - 1)] * 2\n  y[s, n] = pad(t[n // 3, s, n % 3 - 1], 0)",
    ),
    "window": (
        "x: 'T[S, R, H]'",
        "T[S, R, H]",
        "t[s, h, r] = x[s, r, h] * 2\n  u[s, h, r:R] = max[p:3](pad(t[s, h, r + p - 1], -inf))\n  y[s, r, h] = u[s, h, r]",
    ),
    "maximum of a part": (
        "x: 'T[S, H, R]'",
        "T[S, H]",
        "t[h, s, r] = x[s, h, r] * 2\n  y[s, h] = max[r:R](t[h, s, r] if r <= s else -inf)",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_transpose_is_moved_across_a_pad(name: str, tmp_path: Path) -> None:
    import onnxruntime

    inputs, output, kernel = KERNELS[name]
    shape = "shape: {N: 3 * H}\n" if "N]" in output else ""
    more = "require: [R > 0]\n" if "max" in kernel or "R - 1" in kernel else ""
    family = compile_text(f"{HEAD}inputs: {{{inputs}}}\noutputs: {{y: '{output}'}}\n{shape}{more}kernel: |\n  {kernel}\n")
    session, rng = load(family, tmp_path), np.random.default_rng(3)
    x = rng.normal(size=(2, 4, 3))
    y = evaluate(family.forward, {"x": x}, {})["y"].value
    values = {"x": x, "y": y, "d_y": rng.normal(size=y.shape)}
    assert family.backward is not None
    for op in (family.forward, family.backward):
        given = {o.name: values[o.name] for o in op.inputs}
        model = NodeCall(op, given, {}, None).function_model(session.module).SerializeToString()
        want = evaluate(op, given, {})
        for level in (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = level
            outputs = onnxruntime.InferenceSession(model, options).run(None, given)
            for o, found in zip(op.outputs, outputs, strict=True):
                bounds = want[o.name].bounds
                assert np.all((found >= bounds.low) & (found <= bounds.high)), (op.name, o.name)
