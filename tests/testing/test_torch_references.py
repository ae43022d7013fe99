"""References from torch and ONNX: gradients by torch's autograd, references that round otherwise, samples as they arrive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opc.ir.dtypes import Weak
from opc.ir.expr import Call, Const
from opc.ir.op import Attribute, AttributeKind, Family, Op
from opc.pipeline import load_family
from opc.testing.cases.arguments import TensorArg, random_values
from opc.testing.cases.calls import Case
from opc.testing.cases.table import accepted
from opc.testing.oracle.evaluation import evaluate
from opc.testing.plan import Item, hold_standard
from opc.testing.references import opinfo
from opc.testing.references.onnx import collect, onnx_cases
from opc.testing.references.opinfo import opinfo_cases
from opc.testing.references.torch import RefusedByTorchError, check_gradient, check_reference
from opc.testing.results import Status

SPECS = Path(__file__).parents[2] / "specs"

HARD_SWISH = """
op: hard_swish
domain: test
version: 1
doc: x times a clamped line; torch and ONNX round other products than this formula does.
types: {{T: [float32, float64]}}
inputs: {{x: 'T[...]'}}
outputs: {{y: 'T[...]'}}
kernel: |
  y = x * maximum(minimum(x / 6 + 0.5, 1), 0){error}
reference: {{onnx: HardSwish, torch: 'torch.nn.functional.hardswish(x)'}}
"""


def scaled(op: Op, factor: float) -> Op:
    outputs = {o.name for o in op.outputs}
    body = tuple(
        replace(s, value=Call("mul", (s.value, Const(factor, Weak.FLOAT)), s.value.type)) if s.target in outputs else s
        for s in op.body
    )
    return replace(op, body=body)


def hard_swish(folder: Path, error: str = "") -> Family:
    path = folder / "hard_swish.yaml"
    path.write_text(HARD_SWISH.format(error=error))
    return load_family(path)


def call(family: Family) -> Case:
    return next(
        c for c in accepted(family.forward, random=1) if "sizes" in c.name and all(a and a.data.size for a in c.inputs.values())
    )


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "embedding", "cosine_similarity"])
def test_derived_gradients_are_torchs_own_and_wrong_ones_are_not(name: str, second: bool) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    case, rng = call(family), np.random.default_rng(5)
    outputs = evaluate(family.forward, case.arrays(), case.attributes)
    cotangents = {n: random_values(rng, v.shape, v.dtype) for n, v in outputs.items()}
    moved = {n: a for n, a in case.arrays().items() if a is not None and a.dtype.kind == "f"}
    directions = {n: np.asarray(rng.standard_normal(a.shape)).astype(a.dtype) for n, a in moved.items()} if second else {}
    right = check_gradient(family, case, cotangents, directions)
    assert right is not None
    assert right.ok, right.message
    assert family.backward is not None
    key = "backward_backward" if second else "backward"
    op = getattr(family, key)
    wrong = check_gradient(replace(family, **{key: scaled(op, 1.001)}), case, cotangents, directions)
    assert wrong is not None
    assert not wrong.ok


def test_a_second_gradient_that_torch_knows_to_be_0_has_values() -> None:
    family = load_family(SPECS / "onnx/abs.yaml")
    case = call(family)
    (x,) = case.arrays().values()
    assert x is not None
    one = np.ones(x.shape, x.dtype)
    found = check_gradient(family, case, {"y": one}, {"x": one})
    assert found is not None
    assert found.ok, found.message


def test_torchs_own_rounding_is_allowed_and_a_wrong_formula_is_not(tmp_path: Path) -> None:
    right, wrong = hard_swish(tmp_path), hard_swish(tmp_path, " * 1.00000000000002")
    for case in accepted(right.forward, random=4):
        found = check_reference(right, case)
        assert found is None or found.ok, found.message
    failed = [f for c in accepted(wrong.forward, random=4) if (f := check_reference(wrong, c)) is not None and not f.ok]
    assert failed


def test_the_rounding_of_a_node_case_is_allowed_and_a_wrong_formula_is_not(tmp_path: Path) -> None:
    nodes = collect(["HardSwish"])
    for error, status in (("", Status.PASSED), (" * 1.000001", Status.FAILED)):
        family = hard_swish(tmp_path, error)
        cases, _ = onnx_cases(family, nodes)
        assert cases
        for found in cases:
            expected = evaluate(family.forward, found.case.arrays(), found.case.attributes)
            assert hold_standard(family, Item("ONNX node case", found.case, expected), found).status is status


def test_samples_arrive_in_the_order_of_the_function() -> None:
    # OpInfo gives the table first, the function takes the numbers first.
    cases, others = opinfo_cases(load_family(SPECS / "embedding.yaml"))
    assert len(cases) >= 12
    assert all(str(c.arrays()["ids"].dtype).startswith("int") for c in cases)
    assert all("does not have" in reason for _, reason in others)


def test_a_call_that_prepares_an_argument_has_no_samples() -> None:
    # The other side of the condition calls `pad` on x itself.
    cases, others = opinfo_cases(load_family(SPECS / "conv1d.yaml"))
    assert cases
    assert not any("opinfo-nn.functional.pad" in name for name in [*(c.name for c in cases), *(name for name, _ in others)])


def test_samples_that_want_indices_are_calls_for_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    every = opinfo._dtypes
    monkeypatch.setattr(opinfo, "_dtypes", lambda op, info: [t for t in every(op, info) if t.itemsize == 8])
    cases, others = opinfo_cases(load_family(SPECS / "max_pool2d.yaml"))
    assert len(cases) == 1152
    assert all("must have 4 axes" in reason for _, reason in others)
    case = next(c for c in cases if "float64" in c.name)
    found = check_reference(load_family(SPECS / "max_pool2d.yaml"), case)
    assert found is not None
    assert found.ok, found.message


def test_samples_that_choose_a_way_to_compute_are_calls_and_an_infinite_norm_is_refused() -> None:
    cases, others = opinfo_cases(load_family(SPECS / "cdist.yaml"))
    assert {c.attributes["p"] for c in cases} == {1, 1.5, 2, 2.5, 3}
    assert {reason for _, reason in others} == {f"cdist: p = {p} violates its check: 1 <= p < inf" for p in ("0", "0.5", "inf")}


@pytest.mark.parametrize("path", sorted(opinfo._WITHOUT_EFFECT))
def test_arguments_said_to_have_no_effect_have_none(path: str) -> None:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    function, seen = opinfo.resolve_function(path), set()
    for info in (i for i in op_db if i.name == path):
        for sample in info.sample_inputs("cpu", torch.float64):
            args, kwargs = opinfo._arguments(path, info, sample)
            given = {n: v for (n, _), v in zip(opinfo._parameters(path, len(args), kwargs), args)} | kwargs
            idle = opinfo._WITHOUT_EFFECT[path] & set(given)
            if idle:
                seen |= idle
                torch.testing.assert_close(function(**given), function(**{n: v for n, v in given.items() if n not in idle}))
    assert seen == opinfo._WITHOUT_EFFECT[path]


def test_a_dtype_that_samples_have_anyway_is_no_argument() -> None:
    cases, others = opinfo_cases(load_family(SPECS / "softmax.yaml"))
    told = [c for c in cases if "with_dtype" in c.name]
    assert told
    assert {str(a.dtype) for c in told for n, a in c.arrays().items() if n == "x" and a is not None} == {"float64"}
    assert any(reason == "dtype = torch.float64, which softmax does not have" for _, reason in others)


def test_an_attribute_of_the_op_has_an_effect_by_whatever_name() -> None:
    family = load_family(SPECS / "embedding.yaml")
    attribute = Attribute("padding_idx", AttributeKind.INT, default=7)
    cases, _ = opinfo_cases(replace(family, forward=replace(family.forward, attributes=(attribute,))))
    assert {-1, 2} <= {c.attributes.get("padding_idx") for c in cases}


def test_calls_torch_refuses_are_told_apart() -> None:
    family = load_family(SPECS / "scatter_add.yaml")
    case = next(c for c in accepted(family.forward, random=0) if c.inputs["index"].data.size and c.inputs["x"].data.size == 0)
    with pytest.raises(RefusedByTorchError):
        check_reference(family, case)


def test_what_is_too_large_lies_elsewhere_where_axes_are_permuted() -> None:
    family = load_family(SPECS / "permute.yaml")
    x = np.arange(24.0).reshape(2, 3, 4)
    x[1, 2, 3] = 1e300
    found = check_reference(family, Case("c", "permute", {"x": TensorArg(x)}, {"perm": [2, 0, 1]}))
    assert found is not None
    assert found.ok
