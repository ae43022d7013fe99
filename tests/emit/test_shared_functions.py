"""Stages that compute alike are compiled once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.emit.kernel.files import kernel_files
from opc.loops.nodes import Kernel
from opc.lower import alone
from opc.lower.build import kernel
from opc.lower.build.context import Nest
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"
GROWTH = Path(__file__).parents[1] / "transform" / "growth"


@pytest.mark.parametrize("op", ["y", "backward_d_x", "jvp_t_y", "backward_jvp_t_d_x"])
def test_cases_share_functions_whatever_the_length_of_their_names(op: str) -> None:
    """A mean is divided by all a window has or by what is counted: three cases of two attributes, two ways to compute."""
    text = kernel_files(load_family(SPECS / "avg_pool2d.yaml"))["kernel/avg_pool2d_loops.cpp"]
    assert len(re.findall(rf"^(?:OPC_SELDOM )?OPC_ROW_NEST void avg_pool2d_{op}_(?:not_)?(?:count|ceil)", text, re.M)) == 2


@pytest.mark.parametrize("op", ["w_mean", "d_y_sum_partial_mean"])
def test_ops_of_a_family_share_functions_whatever_their_arguments_and_statements_are_called(op: str) -> None:
    """The gradient adds up the weights, and what a term of the loss is, as the op itself does."""
    loops = kernel_files(load_family(SPECS / "cross_entropy.yaml"))["kernel/cross_entropy_loops.cpp"]
    assert not re.search(rf"void cross_entropy_backward_{op}\(", loops)


def test_what_cases_share_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    built = kernel.row_nest

    def counted(nest: Nest) -> Kernel:
        written.append(nest.stage.assign.target)
        return built(nest)

    monkeypatch.setattr(kernel, "row_nest", counted)
    alone._answers.cache_clear()
    header = kernel_files(compile_text((GROWTH / "grid_reflect.yaml").read_text()))["kernel/grid_reflect_loops.h"]
    # Of 192 that were named 131 were written; since fewer cases differ, it is 121 of 168.
    assert 0 < len(written) <= 121 < header.count("opc::row_nest_function ")


def test_an_op_fills_what_its_loops_read_of_the_arguments_they_share() -> None:
    files = kernel_files(load_family(SPECS / "softmax.yaml"))
    assert files["kernel/softmax_loops.h"].count("struct call_arguments {") == 1
    filled = re.findall(r"softmax_loops::call_arguments arguments = \{(.*)\};", files["kernel/softmax.cpp"])
    assert filled == [*["attributes, 0, 0"] * 4, "attributes, inputs[3] != nullptr, inputs[2] != nullptr"]
