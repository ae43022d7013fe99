"""`opc test --sanitize` on codelets: what they do wrong on the emulated Poplar fails the calls they do it in."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from opc.backends.poplar import sdk
from opc.backends.poplar.files import bodies
from opc.ir.op import Family
from opc.testing import codelets, sanitize
from opc.testing.plan import Item
from opc.testing.results import Report, Result, Status
from tests.narrow import narrow

SPECS = Path(__file__).parents[2] / "specs"
WRONG = """
    volatile int shift = 40;
    static_cast<void>(1 << shift);
    if (FIELD.size() > 0) static_cast<void>(opc::load(*(FIELD.begin() + FIELD.size())));
    worker = 0;
"""


def wrong_bodies(family: Family) -> dict[str, str]:
    """The files of a family, with codelets that shift too far, read beyond a field, and write what other workers write."""
    head = r"poplar::Output<poplar::Vector<\w+>> (\w+);.*?compute\(unsigned worker\) \{"
    return {
        path: re.sub(head, lambda m: m[0] + WRONG.replace("FIELD", m[1]), text, flags=re.DOTALL)
        for path, text in bodies(family).items()
    }


def failed(report: Report, column: str) -> list[Result]:
    return [r for r in report.results if r.backend == column and r.status is Status.FAILED]


@pytest.mark.rotating
@pytest.mark.skipif(not sdk.probe().available, reason="the emulation of Poplar is not made: opc env create popart")
def test_what_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codelets, "bodies", wrong_bodies)
    monkeypatch.setattr(codelets, "MOST", {"forward": 3, "derived": 0})
    report, spec = Report(), narrow("depth_to_space", tmp_path / "specs")
    spec.write_text(f"{spec.read_text()}gradient: none\n")
    codelets.sanitize_codelets(report, [spec], ("address", "undefined", "thread"), tmp_path, 2)
    assert list(report.backends) == ["codelets address+undefined", "codelets thread"]
    assert not report.mistakes
    both = "\n".join(r.message for r in failed(report, "codelets address+undefined"))
    assert "shift exponent 40" in both
    assert "heap-buffer-overflow" in both
    races = failed(report, "codelets thread")
    assert any("data race" in r.message for r in races), [r.message for r in races]


@pytest.mark.rotating
@pytest.mark.skipif(not sdk.probe().available, reason="the emulation of Poplar is not made: opc env create popart")
def test_calls_that_data_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that end behind the keys have no value: such a call is to be refused, and one with a value is not."""
    spec = narrow("varlen_attention", tmp_path / "specs")
    spec.write_text(f"{spec.read_text()}gradient: none\n")

    def run() -> Report:
        report = Report()
        codelets.sanitize_codelets(report, [spec], ("undefined",), tmp_path, 2)
        assert not report.mistakes
        return report

    report = run()
    assert not failed(report, "codelets undefined")
    assert Counter(r.kind for r in report.results) == {"forward": codelets.MOST["forward"], "refused": codelets.MOST["refused"]}

    for module in (codelets, sanitize):
        monkeypatch.setattr(module, "expected", lambda op, kind, case: Item(kind, case, {}))
    assert {r.message.split(":")[0] for r in failed(run(), "codelets undefined")} == {"was refused, but must be accepted"}


def test_ops_without_codelets_have_no_column(tmp_path: Path) -> None:
    report = Report()
    codelets.sanitize_codelets(report, [SPECS / "relu.yaml"], ("address",), tmp_path)
    assert not report.backends
    assert not report.results
