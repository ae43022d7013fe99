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
from opc.ir.budget import within_depth
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
        # As the compiler does: how deep Python's own parser follows hangs on this.
        within_depth(lambda: elaborate(loads(text, "bad.yaml", whole=False), found))()
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


WHOLE = """\
op: ⟦Foo⟧
domain: opc.nn
version: ⟦one⟧
doc: d
types: {T: floating, U: ⟦3⟧}
inputs: {x: 'T[N]', z: ⟦[1]⟧, w: 'U[N]'}
⟦atributes⟧: {alpha: float}
attributes: {k: {type: int, ⟦defualt⟧: 2}, b: {type: ⟦flaot⟧}}
outputs: {y: 'T[N]', u: 'T[K // 2]', v: 'T[N]'}
require: ⟦N > 0⟧
kernel: |
  y[n] = ⟦xx⟧[n] * alpha + z[n] + w[n]
  u[j] = x[j] * k * b + cast(U, 1)
  v = ⟦expp⟧(x)
examples: [{x: [1.0], q: 1}]
"""


def test_mistakes_of_keys_and_body_are_told_at_once_in_order_of_place() -> None:
    text, spans = unmark(WHOLE)
    found = [(d.span.line, d.span.column, d.span.end_line, d.span.end_column) for d in diagnose(text)]
    assert found == [(*place(text, start), *place(text, end)) for start, end in spans]


@pytest.mark.parametrize(
    "slip",
    [
        ("doc: A test.", "doc: ⟦3⟧"),
        ("version: 1", "version: ⟦0⟧"),
        ("op: foo", "op: ⟦Foo⟧"),
        ("types: {T: floating}", "types: {T: ⟦3⟧}"),
        ("types: {T: floating}", "⟦type⟧: {T: floating}"),
        ("inputs: {x: 'T[N]'", "⟦colour⟧: red\ninputs: {x: 'T[N]'"),
        ("inputs: {x: 'T[N]', w: 'T[C]'}", "inputs: {x: 'T[N]', w: ⟦3⟧}"),
        ("inputs: {x: 'T[N]', w: 'T[C]'}", "inputs: {x: 'T[N]', w: {type: 'T[C]', ⟦dco⟧: d}}"),
        ("attributes: {a: float}", "⟦attribute⟧: {a: float}"),
        ("attributes: {a: float}", "attributes: {a: {type: float, default: 1, check: ⟦3⟧}}"),
        ("shape: {K: N // 2}", "shape: {K: ⟦[N]⟧}"),
        ("shape: {K: N // 2}", "⟦shapes⟧: {K: N // 2}"),
        ("shape: {K: N // 2}", "shape: {K: N // 2}\nrequire: ⟦N > 0⟧"),
        ("shape: {K: N // 2}", "shape: {K: N // 2}\ngradient: ⟦off⟧"),
        ("shape: {K: N // 2}", "shape: {K: N // 2}\ngradient: {⟦body⟧: ''}"),
        ("shape: {K: N // 2}", "shape: {K: N // 2}\n⟦gradient⟧: {saves: [y]}"),
        ("shape: {K: N // 2}", "shape: {K: N // 2}\nexamples: ⟦3⟧"),
    ],
    ids=lambda slip: slip[1].splitlines()[0],
)
def test_a_mistake_of_form_hides_none_in_the_body_and_makes_none(slip: tuple[str, str]) -> None:
    base = (
        "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: floating}\ninputs: {x: 'T[N]', w: 'T[C]'}\n"
        "attributes: {a: float}\nshape: {K: N // 2}\noutputs: {y: 'T[N]', z: 'T[K]', v: 'T[C]'}\nkernel: |\n"
        "  y[n] = x[n] * a + ⟦expp⟧(x[n])\n  z[k] = x[2*k] * a + K\n  v[c] = w[c] + C + ⟦ww⟧[c]\n"
    )
    assert [d.message for d in diagnose(unmark(base)[0])] == ["unknown function 'expp'", "unknown name 'ww'"]
    text, spans = unmark(base.replace(*slip))
    found = [(d.span.line, d.span.column) for d in diagnose(text)]
    assert found == [place(text, start) for start, _ in spans], "\n".join(d.render() for d in diagnose(text))
