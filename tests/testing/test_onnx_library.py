"""specs/onnx: each spec has ONNX's own test cases of its operator, and gives their outputs; its examples hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.diagnostics import Diagnostics
from opc.pipeline import load_family
from opc.testing.oracle.evaluation import evaluate
from opc.testing.plan import Item, hold_standard
from opc.testing.references.examples import check_examples
from opc.testing.references.onnx import collect, onnx_cases, op_types
from opc.testing.results import Status

SPECS = sorted((Path(__file__).parents[2] / "specs/onnx").glob("*.yaml"))


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_a_spec_gives_what_the_standards_cases_say(path: Path) -> None:
    found = Diagnostics()
    family = load_family(path, found)
    assert [d.message for d in found.items] == []
    assert (family.name, family.forward.domain) == (path.stem, "opc.onnx")
    assert [message for _, message in check_examples(family) if message] == []
    cases, _ = onnx_cases(family, collect(op_types(family)))
    assert cases
    for case in cases:
        expected = evaluate(family.forward, case.case.arrays(), case.case.attributes)
        result = hold_standard(family, Item("ONNX node case", case.case, expected), case)
        assert result.status is Status.PASSED, result.message
