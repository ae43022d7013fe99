"""Parts of a proof: kept as data, joined, and told apart where they don't go together."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from opc.testing.keeping import from_data, joined, to_data
from opc.testing.markdown import markdown
from opc.testing.report import reference_text, verdict
from opc.testing.results import Column, Report, Result, Status


def report(op: str) -> Report:
    passed = Result(op, "numpy", "forward", "case 0", Status.PASSED, 0.25, 0.5)
    results = [
        *(replace(passed, name=f"case {k}", ratio=k / 10) for k in range(8)),
        *(Result(op, "torch", "OpInfo sample", f"sample {k}", Status.PASSED) for k in range(3)),
        *(Result(op, "torch", "gradient", f"case {k}", Status.NOT_RUN, message="no strides") for k in range(2)),
    ]
    return Report({"numpy": Column("NumPy", "2.0"), "torch": Column("PyTorch", "3.0")}, results, {}, 2.0)


def test_what_is_kept_says_the_same() -> None:
    whole = report("relu")
    again = from_data(json.loads(json.dumps(to_data(whole))))
    assert len(again.results) == 5
    assert again.totals() == whole.totals()
    assert again.cell("relu", "numpy").ratio == 0.7
    assert markdown(again, "x") == markdown(whole, "x")
    assert reference_text(again, "OpInfo sample") == "3 on torch"
    assert verdict(again) == verdict(whole) == "all that ran is right; 2 calls and checks did not run"


def test_failures_are_kept_one_by_one() -> None:
    whole = report("relu")
    wrong = Result("relu", "numpy", "forward", "case 9", Status.FAILED, float("inf"), message="wrong")
    whole.add([wrong, replace(wrong, name="case 10")])
    again = from_data(to_data(whole))
    assert [r.name for r in again.results if r.status is Status.FAILED] == ["case 9", "case 10"]
    assert verdict(again) == "2 failed"


def test_parts_are_joined() -> None:
    whole = joined([report("relu"), report("selu")])
    assert whole.ops == ("relu", "selu")
    assert whole.seconds == 4.0
    assert whole.totals() == {"forward": 16, "OpInfo sample": 6}


def test_parts_that_do_not_go_together() -> None:
    other = report("selu")
    other.backends["torch"] = Column("PyTorch", "3.1")
    with pytest.raises(ValueError, match=r"different versions of PyTorch: 3\.0, 3\.1"):
        joined([report("relu"), other])
    with pytest.raises(ValueError, match="two parts hold relu"):
        joined([report("relu"), report("relu")])


def test_the_verdict_names_what_nothing_ran_on() -> None:
    whole = report("relu")
    whole.backends["rknn"] = Column("RKNN", reason="not installed")
    assert verdict(whole).endswith("; 2 calls and checks did not run; nothing ran on RKNN")
    assert verdict(Report()) == "nothing was proved"
