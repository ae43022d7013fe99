"""Which instances of functions a kernel is compiled with, and which of them with few passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.emit.kernel.files import kernel_files
from opc.ir.op import Op
from opc.lower.wide import widened_types
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"


def _text(name: str) -> str:
    return kernel_files(load_family(SPECS / f"{name}.yaml"))[f"kernel/{name}_loops.cpp"]


def _op(spec: str, name: str) -> Op:
    return next(op for op in load_family(SPECS / f"{spec}.yaml").ops if op.name == name)


def test_functions_of_derivatives_of_gradients_alone_are_marked() -> None:
    text = _text("softmax")
    marked = set(re.findall(r"^OPC_SELDOM (?:OPC_ROW_NEST )?void (?:batched_)?(\w+)\(", text, re.M))
    functions = set(re.findall(r"^(?:OPC_SELDOM )?(?:OPC_ROW_NEST )?void (?:batched_)?(\w+)\(", text, re.M))
    assert marked == {f for f in functions if re.match(r"softmax_(backward_backward|jvp|backward_jvp)", f)}
    assert "softmax_backward" in functions


def test_no_instance_computes_what_no_call_wants_alone() -> None:
    """Whatever is wanted of a gradient needs the maximum and the sum of a row, so that neither is wanted alone."""
    table = _text("cross_entropy").split("extern const table loops")[1]
    (entry,) = re.findall(r"\{\{\{?cross_entropy_backward_1_sum<float.*?\},", table, re.S)
    assert re.findall(r"true|false|nullptr", entry) == ["true"] * 3 + ["nullptr"] * 3


@pytest.mark.parametrize(
    ("spec", "op", "wide"),
    [
        ("cross_entropy", "cross_entropy", False),
        ("cross_entropy", "cross_entropy_backward_backward", True),
        ("nll_loss", "nll_loss_backward_backward", True),
        ("gather", "gather", False),
    ],
)
def test_indices_are_widened_where_an_op_is_seldom_run(spec: str, op: str, wide: bool) -> None:
    found = [t.name for t in widened_types(_op(spec, op))]
    assert found == (["I"] if wide else [])


SQUARES = """
op: at_squares
domain: test
version: 1
doc: Elements at squares.
types: {T: [float32], I: [int64, int32]}
inputs: {x: 'T[M]', i: 'I[N]'}
outputs: {y: 'T[N]'}
kernel: y[n] = x[i[n]{square}]
"""


@pytest.mark.parametrize(("square", "wide"), [(" * i[n]", []), ("", ["I"])])
def test_types_that_values_are_computed_in_are_not_widened(square: str, wide: list[str]) -> None:
    """A square of int32 wraps in that."""
    jvp = compile_text(SQUARES.replace("{square}", square)).jvp
    assert jvp is not None
    assert [t.name for t in widened_types(jvp)] == wide
