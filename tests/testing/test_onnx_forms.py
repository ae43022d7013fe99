"""The plain form of a node of ONNX's test cases says the same as the node: ONNX's own reference gives the same outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.pipeline import load_family
from opc.testing.references.onnx import OnnxCase, collect, onnx_cases
from opc.testing.references.onnx_forms import plain_form

SPECS = Path(__file__).parents[2] / "specs"
OPERATORS = {
    "CenterCropPad": "onnx/center_crop_pad3d",
    "ConvTranspose": "conv_transpose2d",
    "Dropout": "onnx/dropout",
    "Expand": "onnx/expand3d",
    "EyeLike": "onnx/eye_like",
    "Gemm": "onnx/gemm",
    "OneHot": "one_hot",
    "Pad": "onnx/pad4d",
    "Range": "onnx/range",
    "STFT": "onnx/stft",
    "Shape": "onnx/shape",
    "Slice": "onnx/slice",
    "Split": "onnx/split3",
    "Tile": "onnx/tile4d",
}


@pytest.mark.parametrize("op_type", sorted(OPERATORS))
def test_a_plain_form_has_the_outputs_of_the_node(op_type: str) -> None:
    family = load_family(SPECS / f"{OPERATORS[op_type]}.yaml")
    nodes = collect([op_type])
    case = onnx_cases(family, nodes)[0][0]
    changed = 0
    for node in nodes[op_type]:
        form = plain_form(family.forward, op_type, node)
        if form is None:
            continue
        changed += 1
        expected = {str(k): np.asarray(y) for k, y in enumerate(node["outputs"]) if y is not None}
        there = OnnxCase(
            case.case,
            expected,
            op_type,
            {**node, "inputs": form[0], "attributes": form[1]},
            tuple(str(k) for k in range(len(node["outputs"]))),
        )
        found = there.precise()
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name].astype(np.float64), value.astype(np.float64), rtol=1e-5, atol=1e-5)
    assert changed


def test_a_form_that_would_say_something_else_is_none() -> None:
    dropout = load_family(SPECS / "onnx/dropout.yaml")
    nodes = {n["name"]: n for n in collect(["Dropout"])["Dropout"]}
    training = [n for name, n in nodes.items() if name.startswith("test_training") and "zero_ratio" not in name]
    assert len(training) == 4
    assert all(plain_form(dropout.forward, "Dropout", n) is None for n in training)
    back = next(n for n in collect(["Slice"])["Slice"] if n["name"] == "test_slice_neg_steps")
    assert plain_form(load_family(SPECS / "onnx/slice.yaml").forward, "Slice", back) is None


def test_a_call_of_a_plain_form_keeps_the_node() -> None:
    family = load_family(SPECS / "onnx/pad4d.yaml")
    nodes = collect(["Pad"])
    cases, others = onnx_cases(family, nodes)
    listed = {c.node["name"]: c for c in cases}["test_constant_pad_axes"]
    assert {name for name, _ in others} == set()
    assert len(listed.node["inputs"]) == 4
    assert (listed.case.attributes["pads_begin"], listed.case.attributes["pads_end"]) == ((0, 0, 0, 3), (0, 0, 0, 4))
    assert listed.precise()["y"].shape == (1, 3, 4, 12)
