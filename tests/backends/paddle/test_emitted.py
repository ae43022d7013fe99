"""What the backend writes and refuses, without Paddle."""

import pytest

from opc.backends.paddle.backend import PaddleBackend, PaddleInferenceBackend
from opc.ir.op import Family
from opc.pipeline import compile_text

SIMPLE = """
op: {name}
domain: opc.test
version: 1
doc: The square.
types: {{T: [float32]}}
inputs: {{x: 'T[...]'}}
outputs: {{y: 'T[...]'}}
inplace: {{y: x}}
kernel: |
  y = x * x
"""


def source(family: Family) -> str:
    return PaddleBackend().emit(family)[f"paddle/{family.name}_paddle.cpp"]


def test_registers_the_op_its_gradients_and_each_derived_op(pantry: Family) -> None:
    text = source(pantry)
    for line in (
        "PD_BUILD_OP(opc_paddle_test_pantry)",
        "PD_BUILD_GRAD_OP(opc_paddle_test_pantry)",
        "PD_BUILD_DOUBLE_GRAD_OP(opc_paddle_test_pantry)",
        "PD_BUILD_OP(opc_paddle_test_pantry_backward)",
        'paddle::Optional("w")',
        'paddle::Grad(paddle::Optional("w"))',
        '"scale: std::string"',
        '"shift: std::vector<int64_t>"',
    ):
        assert line in text, line


def test_in_place_operator_writes_to_its_input() -> None:
    text = source(compile_text(SIMPLE.format(name="square"), "square.yaml"))
    assert "PD_BUILD_OP(opc_test_square_in_place)" in text
    assert '.SetInplaceMap({{"x", "y"}})' in text


def test_name_that_paddle_takes_for_a_gradient_is_refused() -> None:
    family = compile_text(SIMPLE.format(name="clip_grad_norm"), "clip.yaml")
    (refusal,) = PaddleBackend().requires(family)
    assert "_grad" in refusal.message


def test_both_backends_write_the_same_files(pantry: Family) -> None:
    assert PaddleBackend().emit(pantry) == PaddleInferenceBackend().emit(pantry)


@pytest.mark.parametrize("path", ["paddle/setup.py", "paddle/CMakeLists.txt"])
def test_embedding_names_every_instruction_set(pantry: Family, path: str) -> None:
    text = PaddleBackend().emit(pantry)[path]
    assert "-march=x86-64-v3" in text
    assert "-march=x86-64-v4" in text
    assert "-mprefer-vector-width=512" in text
