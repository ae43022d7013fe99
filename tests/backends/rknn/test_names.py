"""What specs call ops in ONNX and in single backends."""

from pathlib import Path

import pytest

from opc.backends.rknn.backend import RknnBackend
from opc.backends.rknn.names import OperatorName, rknn_name
from opc.build.generate import generate
from opc.diagnostics import SpecError
from opc.pipeline import compile_text

SPEC = """
op: twice
domain: opc.nn
version: 1
doc: Twice x.
{}
types: {{T: floating}}
inputs: {{x: 'T[...]'}}
outputs: {{y: 'T[...]'}}
kernel: y = 2 * x
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("", OperatorName("rknn_cst", "cstTwice")),
        ("onnx_name: Doubled", OperatorName("rknn_cst", "cstDoubled")),
        ("onnx_name: cstDoubled", OperatorName("rknn_cst", "cstDoubled")),
        ("names: {rknn: cstOther}", OperatorName("rknn_cst", "cstOther")),
        ("names: {rknn: 'mine::cstOther'}", OperatorName("mine", "cstOther")),
    ],
)
def test_the_op_has_the_name_of_the_spec(line: str, name: OperatorName) -> None:
    assert rknn_name(compile_text(SPEC.format(line))) == name


def test_derived_ops_begin_with_the_onnx_name() -> None:
    family = compile_text(SPEC.format("onnx_name: TwiceX"))
    assert [op.class_name for op in family.ops][:2] == ["TwiceX", "TwiceXBackward"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("onnx_name: twice", "a capital among them"),
        ("onnx_name: Tw-ice", "can't be an op type of ONNX"),
        ("onnx_name: ReferenceOp", "uses the name for something else"),
        ("names: {rknn: 'a b'}", "can't be what a backend calls the op"),
    ],
)
def test_a_bad_name_is_a_mistake(line: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        compile_text(SPEC.format(line))


@pytest.mark.parametrize(
    ("line", "message"),
    [("names: {rkn: cstX}", "no backend 'rkn'"), ("names: {torch: x}", "'torch' has no name of its own")],
)
def test_a_name_nobody_reads_is_a_mistake(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message):
        generate(compile_text(SPEC.format(line)), tmp_path, [RknnBackend()])


def test_a_backend_that_is_not_installed_may_be_named(tmp_path: Path) -> None:
    made = generate(compile_text(SPEC.format("names: {somebody_elses: x}")), tmp_path, [RknnBackend()])
    assert "rknn/custom_op.py" in made.written


def test_what_rknn_can_not_carry_is_refused() -> None:
    half = compile_text(SPEC.format("").replace("floating", "[float16]"))
    wide = compile_text(SPEC.format("").replace("floating", "[float64]"))
    reasons = [RknnBackend().requires(family)[0].message for family in (half, wide)]
    assert "can't be float32" in reasons[0]
    assert "no tensors of" in reasons[1]
    assert RknnBackend().requires(compile_text(SPEC.format(""))) == ()
