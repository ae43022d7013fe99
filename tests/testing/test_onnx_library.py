"""specs/onnx: each spec has ONNX's own test cases of its operator, and gives their outputs; its examples hold.

What of the standard there is, and why the rest is not, says specs/onnx/README.md, which is held to the specs here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.analysis.elaborate.typing import reference_of
from opc.diagnostics import Diagnostics
from opc.ir.op import Family
from opc.pipeline import forward_op, load_family
from opc.spec.files import apart, file_of, in_folder
from opc.spec.loader import load
from opc.testing.oracle.evaluation import evaluate
from opc.testing.plan import Item, hold_standard
from opc.testing.references.examples import check_examples
from opc.testing.references.names import OPERATORS
from opc.testing.references.onnx import collect, onnx_cases, op_types
from opc.testing.results import Status

ROOT = Path(__file__).parents[2]
SPECS = in_folder(ROOT / "specs/onnx")
DEPRECATED = {"Scatter", "Upsample"}
WITHOUT_CASE = {"global_lp_pool", "max_roi_pool"}
"""Specs of operators that the standard has no test case of."""


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_a_spec_gives_what_the_standards_cases_say(path: Path) -> None:
    found = Diagnostics()
    family = load_family(path, found)
    assert [d.message for d in found.items] == []
    # A name that generated code needs, such as shape, has an underscore more.
    assert (family.name.rstrip("_"), family.forward.domain) == (path.stem, "opc.onnx")
    assert [message for _, message in check_examples(family) if message] == []
    cases, _ = onnx_cases(family, collect(op_types(family)))
    if file_of(path) == path:
        assert bool(cases) == (path.stem not in WITHOUT_CASE)
    for case in cases:
        expected = evaluate(family.forward, case.case.arrays(), case.case.attributes)
        result = hold_standard(family, Item("ONNX node case", case.case, expected), case)
        assert result.status is Status.PASSED, result.message


@pytest.mark.rotating
@pytest.mark.parametrize("file", sorted({file_of(p) for p in SPECS} - {*SPECS}), ids=lambda p: p.stem)
def test_a_spec_of_several_ranks_has_a_case_of_the_standard_at_one_of_them(file: Path) -> None:
    families = [load_family(op) for op in apart(file)]
    assert any(onnx_cases(family, collect(op_types(family)))[0] for family in families)


def without_derivatives(path: Path) -> Family:
    """Return an op with what it refers to: deriving the gradients of all would take most of the time."""
    spec = load(path)
    return Family(forward_op(spec), reference=reference_of(spec))


@pytest.mark.rotating(seconds=8)
def test_the_page_says_of_each_operator_whether_it_is_there() -> None:
    text = (ROOT / "specs/onnx/README.md").read_text()
    aside, lacking = (set(re.findall(r"`([A-Z]\w+)`", part)) for part in (text.split("\n\n")[1], text.split("|---|---|")[1]))
    families = [without_derivatives(path) for path in (*SPECS, *in_folder(ROOT / "specs"))]
    there = {operator for family in families for operator in op_types(family)}
    assert [aside & lacking, aside & there, lacking & there] == [set(), set(), set()]
    assert aside | lacking | there == OPERATORS - DEPRECATED
    told = re.search(r"(\d+) of the (\d+) others", text)
    assert told is not None
    assert [int(n) for n in told.groups()] == [len(there), len(there) + len(lacking)]
    assert f", {len(aside)} are no functions of tensors" in text
    assert f"\n{len(lacking)} have none yet" in text
    nodes = collect(tuple(sorted(there)))
    of = sum(map(len, nodes.values()))
    calls = {case.case.name.partition("onnx-")[2] for family in families for case in onnx_cases(family, nodes)[0]}
    assert f"{len(calls):,} of the standard's {of:,} test cases of these operators" in text.replace("\n", " ")
