"""Stages that compute alike are compiled once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import load_family

SPECS = Path(__file__).parents[2] / "specs"


@pytest.mark.parametrize("op", ["y", "backward_d_x", "jvp_t_y", "backward_jvp_t_d_x"])
def test_cases_share_functions_whatever_the_length_of_their_names(op: str) -> None:
    """A mean is divided by all a window has or by what is counted: three cases of two attributes, two ways to compute."""
    text = kernel_files(load_family(SPECS / "avg_pool2d.yaml"))["kernel/avg_pool2d_loops.cpp"]
    assert len(re.findall(rf"^OPC_ROW_NEST void avg_pool2d_{op}_(?:not_)?(?:count|ceil)", text, re.M)) == 2
