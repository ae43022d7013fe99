"""Independent references: references are evaluated without trusting them, mapped rightly, and able to fail."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opc.ir.dtypes import Weak
from opc.ir.expr import Call, Const
from opc.ir.op import Family, Reference
from opc.pipeline import load_family
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.cases.table import accepted
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from opc.testing.references.onnx import collect, onnx_cases, op_types

SPECS = Path(__file__).parents[2] / "specs"


def doubled(family: Family) -> Family:
    forward = family.forward
    outputs = {o.name for o in forward.outputs}
    body = tuple(
        replace(s, value=Call("mul", (s.value, Const(2.0, Weak.FLOAT)), s.value.type)) if s.target in outputs else s
        for s in forward.body
    )
    return replace(family, forward=replace(forward, body=body))


@pytest.fixture(scope="session")
def nodes() -> dict[str, list[dict[str, object]]]:
    return collect(["LeakyRelu", "Softmax", "Gelu", "Clip", "RMSNormalization", "Sigmoid"])


@pytest.mark.rotating
def test_the_cases_of_some_operators_are_those_among_all() -> None:
    families = [load_family(path) for path in sorted(SPECS.glob("*.yaml"))]
    # Every fourth: what a few name is less likely to be imported for the sake of another.
    named = sorted({name for family in families for name in op_types(family)})[::4]
    # In a process of its own, which has imported no more.
    code = "import json, sys; from opc.testing.references.onnx import collect; found = collect(json.loads(sys.argv[1]))"
    code += "; print(json.dumps({k: [n['name'] for n in v] for k, v in found.items()}))"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(named)], capture_output=True, text=True, check=True)
    every = collect()
    assert len(every) > 2 * len(named)
    assert {k: sorted(v) for k, v in json.loads(done.stdout).items()} == {
        k: sorted(str(n["name"]) for n in every[k]) for k in named if k in every
    }


@pytest.mark.parametrize(("name", "least"), [("leaky_relu", 3), ("softmax", 7), ("gelu", 4), ("clamp", 2), ("rms_norm", 3)])
def test_onnx_outputs_lie_in_the_sets(name: str, least: int, nodes: dict[str, list[dict[str, object]]]) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    cases, others = onnx_cases(family, nodes)
    assert len(cases) >= least
    assert all(reason for _, reason in others)
    for c in cases:
        found = evaluate(family.forward, c.case.arrays(), c.case.attributes)
        for output, value in c.expected.items():
            assert compare(output, np.asarray(value), found[output]).ok


def test_a_wrong_op_disagrees_with_onnx(nodes: dict[str, list[dict[str, object]]]) -> None:
    family = doubled(load_family(SPECS / "sigmoid.yaml"))
    cases, _ = onnx_cases(family, nodes)
    assert cases
    for c in cases:
        found = evaluate(family.forward, c.case.arrays(), c.case.attributes)
        assert not compare("y", np.asarray(c.expected["y"]), found["y"]).ok


@pytest.mark.parametrize("name", ["gelu", "softmax", "layer_norm", "softplus"])
def test_torch_expression_agrees_and_a_wrong_op_does_not(name: str) -> None:
    from opc.testing.references.torch import check_reference

    family = load_family(SPECS / f"{name}.yaml")
    cases = [c for c in accepted(family.forward, random=1) if "sizes-7" in c.name or "sizes-2x3" in c.name]
    assert cases
    for c in cases:
        right, wrong = check_reference(family, c), check_reference(doubled(family), c)
        assert right is not None
        assert right.ok, right.message
        assert wrong is not None
        assert not wrong.ok


def test_extreme_inputs_may_have_other_axes_than_the_answer() -> None:
    from opc.testing.references.torch import check_reference

    family = load_family(SPECS / "onnx/unsqueeze.yaml")
    x = np.array([1e300, -np.inf, 2.0])
    for axis in (0, -1):
        case = Case("unsqueeze/extreme", "unsqueeze", {"x": TensorArg(x)}, {"axis": axis})
        found = check_reference(family, case)
        assert found is not None
        assert found.ok


@pytest.mark.rotating
@pytest.mark.parametrize(("name", "least"), [("leaky_relu", 36), ("softmax", 24), ("layer_norm", 12), ("add", 40)])
def test_opinfo_samples_become_calls(name: str, least: int) -> None:
    from opc.testing.references.opinfo import opinfo_cases
    from opc.testing.references.torch import check_reference

    family = load_family(SPECS / f"{name}.yaml")
    cases, others = opinfo_cases(family)
    assert len(cases) >= least
    assert all(reason for _, reason in others)
    for c in cases[:8]:
        found = check_reference(family, c)
        assert found is not None
        assert found.ok


HOSTILE = (
    "__import__('os').system('true')",
    "torch.os.system",
    "torch.load(x)",
    "torch.from_file('/etc/passwd')",
    "torch.hub.load('a', 'b')",
    "torch.nn.functional.torch.load(x)",
    "torch.nn.functional.warnings.warn(x)",
    "x.__class__",
    "x.numpy().tofile(alpha)",
    "x.data_ptr()",
    "(lambda: x)()",
    "[x for x in x]",
    "torch.save(x, x)",
    "open(x)",
    "x.apply_(x)",
    "x if __debug__ else y",
    "torch.relu(*x)",
    "exec",
    "torch.utils.cpp_extension.load(x)",
    "torch.nn.Module()",
    "x := 3",
    "f'{x}'",
    "x.map_(x, x)",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_references_are_not_trusted(text: str) -> None:
    import torch

    from opc.testing.references.torch_expression import ReferenceTextError, evaluate, parse

    with pytest.raises(ReferenceTextError):
        evaluate(parse(text), {"x": torch.ones(2), "alpha": "name"})


def test_references_may_compute() -> None:
    import torch

    from opc.testing.references.torch_expression import evaluate, parse

    names = {"x": torch.tensor([[1.0, -2.0]]), "w": None, "alpha": 0.5, "mode": "tanh", "axis": 1}
    for text, want in (
        ("torch.where(x >= 0, x, alpha * x)", [[1.0, -1.0]]),
        ("torch.relu(x) if mode == 'tanh' and w is None else x", [[1.0, 0.0]]),
        ("torch.sum(x, axis, keepdim=True).expand_as(x)", [[-1.0, -1.0]]),
        ("x.clone()[..., :1] + x.shape[-1]", [[3.0]]),
        ("(x ** 2, -x)[0]", [[1.0, 4.0]]),
        # One of torch's own functions under a second name.
        ("torch.nn.functional.cosine_similarity(x, 2 * x, -1)", [1.0]),
    ):
        torch.testing.assert_close(evaluate(parse(text), names), torch.tensor(want))


def test_no_reference_no_cases(nodes: dict[str, list[dict[str, object]]]) -> None:
    family = replace(load_family(SPECS / "relu.yaml"), reference=Reference())
    assert onnx_cases(family, nodes) == ([], [])


BESIDE = """
op: beside
domain: test
version: 1
doc: A sum of two matrices, of which one may be a row.
types: {T: floating}
inputs: {x: 'T[M, N]', z: 'T[P, N]'}
outputs: {y: 'T[M, N]'}
require: [P > 0]
kernel: |
  y[i, j] = x[i, j] + z[minimum(i, P - 1), j]
"""


def beside(folder: Path, reference: str) -> Family:
    path = folder / "beside.yaml"
    path.write_text(f"{BESIDE}reference: {{onnx: '{reference}'}}\n")
    return load_family(path)


def test_an_attribute_left_open_may_have_any_value(tmp_path: Path) -> None:
    x, z = np.ones((3, 2), np.float32), np.ones((3, 2), np.float32)
    node = {"name": "open", "inputs": [x, z], "outputs": [x + z], "attributes": {"storage_order": 1}}
    for reference, reasons in (
        ("MaxPool(x, z, storage_order=_)", []),
        ("MaxPool(x, z)", ["storage_order = 1, which beside does not have"]),
        ("MaxPool(x, z, storage_order=0)", ["storage_order = 1, where beside has 0"]),
    ):
        cases, others = onnx_cases(beside(tmp_path, reference), {"MaxPool": [node]})
        assert [reason for _, reason in others] == reasons
        assert len(cases) == (not reasons)


def test_axes_that_a_case_lacks_have_size_1(tmp_path: Path) -> None:
    family = beside(tmp_path, "Add")
    x, row, column = np.ones((3, 2), np.float32), np.array([1.0, 2.0], np.float32), np.ones((3, 1), np.float32)
    nodes = [
        {"name": name, "inputs": [x, z], "outputs": [x + z], "attributes": {}} for name, z in (("row", row), ("column", column))
    ]
    cases, others = onnx_cases(family, {"Add": nodes})
    assert others == [("column", "beside: N is 2 in x, but 1 in z")]
    (case,) = cases
    assert case.case.arrays()["z"].shape == (1, 2)
    found = evaluate(family.forward, case.case.arrays(), case.case.attributes)
    assert compare("y", x + row, found["y"]).ok
