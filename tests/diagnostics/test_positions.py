"""Every diagnostic points at the right place: a table of bad specs, which reaches every place in the sources that reports one."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.diagnostics import Diagnostic, Diagnostics, Severity, SpecError
from opc.spec.loader import load, loads
from tests.diagnostics import body_cases, signature_cases, spec_cases
from tests.diagnostics.harness import Case, place, unmark

CASES = [*spec_cases.CASES, *signature_cases.CASES, *body_cases.CASES]
ROOT = Path(__file__).parents[2] / "opc"
REPORTERS = ("error", "warning", "_error", "_stop")
FRONT_END = [
    *(ROOT / "analysis").glob("*.py"),
    *(ROOT / "analysis/elaborate").glob("*.py"),
    *(ROOT / "analysis/bounds").glob("*.py"),
]


def diagnose(text: str) -> list[Diagnostic]:
    """Return every diagnostic of a spec, warnings of a good one included."""
    found = Diagnostics()
    try:
        elaborate(loads(text, "bad.yaml"), found)
    except SpecError as error:
        return list(error.diagnostics)
    return found.items


@pytest.mark.parametrize("row", CASES, ids=str)
def test_diagnostic_stands_where_it_should(row: Case) -> None:
    text, spans = unmark(row.text)
    found = diagnose(text)
    everything = "\n".join(d.render() for d in found)
    for message in row.messages:
        assert any(message in d.message for d in found), everything
    for (start, end), message in zip(spans, row.messages):
        wanted = (*place(text, start), *place(text, end))
        shown = {(d.span.line, d.span.column, d.span.end_line, d.span.end_column): d for d in found if message in d.message}
        assert wanted in shown, everything
        assert shown[wanted].render().startswith(f"bad.yaml:{wanted[0]}:{wanted[1]}: ")
    errors = [d for d in found if d.severity is Severity.ERROR]
    assert all(any(message in d.message for message in row.messages) for d in errors), everything


def _sites(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the file and line of every call that records a diagnostic."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPORTERS:
            yield str(path), node.lineno


def test_the_table_reaches_every_place_that_reports_a_mistake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reached: set[tuple[str, int]] = set()

    def recording(method: Callable[..., None]) -> Callable[..., None]:
        def record(*args: Any, **kwargs: Any) -> None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(str(ROOT)):
                reached.add((frame.f_code.co_filename, frame.f_lineno))
                frame = frame.f_back
            method(*args, **kwargs)

        return record

    monkeypatch.setattr(Diagnostics, "error", recording(Diagnostics.error))
    monkeypatch.setattr(Diagnostics, "warning", recording(Diagnostics.warning))
    for row in CASES:
        diagnose(unmark(row.text)[0])
    (tmp_path / "bad.yaml").write_bytes(b"op: foo\n\xff")
    with pytest.raises(SpecError):
        load(tmp_path / "bad.yaml")
    files = [*(ROOT / "spec").glob("*.py"), *(ROOT / "lang").glob("*.py"), *FRONT_END]
    sites = {site for path in files for site in _sites(path)}
    missing = sorted(f"{Path(p).relative_to(ROOT)}:{line}" for p, line in sites - reached)
    assert not missing, "\n".join(missing)
