"""The HTML report: failures in groups, what can be filtered, and where the report comes from."""

from __future__ import annotations

import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import opc
from opc.site.project import project_files
from opc.testing.html import groups, idle, write_html
from opc.testing.origin import commit, origin
from opc.testing.results import Column, Report, Result, Status

WRONG = "y[{at}] is {got}, but must be {want}; error over bound {ratio}, {count} of {size} elements wrong; from x[{at}] = {got}"


def failure(name: str, message: str, op: str = "relu", backend: str = "torch", ratio: float = 2.0) -> Result:
    return Result(op, backend, "forward", name, Status.FAILED, ratio, message=message)


def wrong(at: str, got: str, want: str, ratio: str = "12", count: int = 1, size: int = 15) -> str:
    return WRONG.format(at=at, got=got, want=want, ratio=ratio, count=count, size=size)


FAILURES = [
    failure("relu/001", wrong("0, 1", "1.5", "0.5 +- 1e-07"), ratio=3.0),
    failure("relu/002", wrong("7", "-1e-45", "0.25", "inf", 3, 3), ratio=9.0),
    failure("relu/003", wrong("1, 2, 3", "NaN", "-inf"), backend="numpy"),
    failure("relu/004", "RuntimeError: no such device"),
    failure("tanh/001", wrong("0", "1.5", "0.5"), op="tanh"),
    failure("relu/005", "y has shape [3, 4], not [3]"),
    failure("relu/006", "y has shape [2], not [3, 3]"),
]


def test_equal_failures_are_one_group() -> None:
    found = groups([Result("relu", "torch", "forward", "right", Status.PASSED), *FAILURES])
    names = [[r.name for r in group.failures] for group in found]
    assert names == [["relu/001", "relu/002"], ["relu/003"], ["relu/004"], ["tanh/001"], ["relu/005", "relu/006"]]
    assert found[0].first.name == "relu/001"
    assert found[0].ratio == 9.0


class Page(HTMLParser):
    """What filters look at: rows with an op, and cells with a backend and a status."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[dict[str, str | None]] = []
        self.every: list[dict[str, str | None]] = []
        self.cells: list[dict[str, str | None]] = []
        self.options: list[str | None] = []
        self.scripts: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "tr":
            self.every.append(found)
        if tag == "tr" and "data-op" in found:
            self.rows.append(found)
        elif tag == "td" and "data-backend" in found:
            self.cells.append(found)
        elif tag == "option":
            self.options.append(found.get("value"))
        elif tag == "script":
            self.scripts.append(found)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Page]:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    columns = {
        "numpy": Column("NumPy", "2.4.6"),
        "torch": Column("PyTorch", "2.13.0+cpu"),
        "rknn": Column("RKNN", reason="absent"),
    }
    right = [Result("relu", "numpy", "forward", "relu/001", Status.PASSED), Result("tanh", "rknn", "build", "t", Status.REFUSED)]
    report = Report(columns, [*right, *FAILURES])
    write_html(report, tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text()
    write_html(report, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == text
    return text, Page(text)


def test_rows_and_cells_say_what_they_are_filtered_by(page: tuple[str, Page]) -> None:
    _, found = page
    table = [row for row in found.rows if "data-backend" not in row]
    assert [row["data-op"] for row in table] == ["relu", "tanh"]
    assert {(c["data-backend"], c["data-status"]) for c in found.cells} == {
        ("numpy", "failed"),
        ("torch", "failed"),
        ("rknn", "not run"),
        ("numpy", "not run"),
        ("rknn", "refused"),
    }
    failures = [row for row in found.rows if "data-backend" in row]
    assert [(r["data-op"], r["data-backend"], r["data-status"]) for r in failures][:2] == [
        ("relu", "torch", "failed"),
        ("relu", "numpy", "failed"),
    ]
    assert len(failures) == 5
    assert [o for o in found.options if o] == ["numpy", "torch", "rknn"]
    assert found.scripts == [{}]


def test_what_did_not_run_is_told_with_its_reason() -> None:
    report = Report({"numpy": Column("NumPy"), "rknn": Column("RKNN")})
    skipped = [
        Result(op, "rknn", "gradient", f"{op}/{n}", Status.NOT_RUN, message="no autograd") for op in "ab" for n in range(2)
    ]
    refused = [Result(op, "rknn", "build", op, Status.REFUSED, message=f"{op} has bool") for op in "dc"]
    report.add([*skipped, *refused, Result("a", "numpy", "forward", "a/1", Status.PASSED)])
    assert [(r.backend, r.status, r.reason, r.ops, r.count) for r in idle(report)] == [
        ("rknn", Status.REFUSED, "has bool", ("c", "d"), 2),
        ("rknn", Status.NOT_RUN, "gradient: no autograd", ("a", "b"), 4),
    ]


def test_the_style_is_that_of_the_site(page: tuple[str, Page]) -> None:
    text, found = page
    colours = files("opc.testing").joinpath("templates", "colours.css").read_text()
    assert colours in text
    assert colours in project_files("some", {"gallery/index.md": ""})["pages/opc.css"]
    assert "http" not in text.replace("https://github.com", "")
    rows = [row for row in found.every if "data-ops" in row]
    assert [(r["data-ops"], r["data-backend"], r["data-status"]) for r in rows] == [("tanh", "rknn", "refused")]


def test_a_group_shows_its_first_and_holds_the_others(page: tuple[str, Page]) -> None:
    text, _ = page
    assert "and 1 more like it" in text
    assert text.index("relu/001: y[0, 1] is 1.5") < text.index("relu/002: y[7] is -1e-45")


def test_a_report_says_where_it_comes_from(page: tuple[str, Page]) -> None:
    text, _ = page
    for part in (opc.__version__, "2.13.0+cpu", "2.4.6", "2023-11-14 22:13 UTC", "core", "Python 3"):
        assert part in text


def test_the_commit_is_that_of_the_folder(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert commit(tmp_path) == ""
    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "first")
    head = git("rev-parse", "HEAD").strip()
    assert commit(tmp_path) == head
    (tmp_path / "a").write_text("2")
    assert origin(tmp_path).commit == f"{head}, with changes"
