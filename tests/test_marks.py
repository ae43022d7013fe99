"""What silences a check says why on its line, and tests are not skipped for want of what the extra `test` installs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN = sorted(p for folder in ("opc", "runtime") for p in (ROOT / folder).rglob("*.py"))
TEMPLATES = sorted((ROOT / "opc").rglob("*.py.j2"))
TESTS = sorted(p for p in (ROOT / "tests").rglob("*.py") if p != Path(__file__))
IGNORED = re.compile(r"# type: ignore")
# mypy reads opc alone, and refuses a mark that silences nothing.
REASONED = re.compile(r"# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]  # (?!as above)\S")
SILENCED = re.compile(r"# noqa")
# ruff refuses one that silences nothing.
EXPLAINED = re.compile(r"# noqa: [A-Z]+\d+(, [A-Z]+\d+)*  # \S")
LEFT = re.compile(r"\b(TODO|FIXME|XXX)\b|pytest\.(mark\.)?xfail|importorskip")
BARE = re.compile(r"pytest\.skip\(\)|pytest\.mark\.skip\b(?!if)|skipif\((?!.*reason=)")


def is_bare(line: str, *, own: bool) -> bool:
    """Whether the line silences a check without a reason."""
    ignores = bool(IGNORED.search(line)) and not (own and REASONED.search(line))
    return ignores or (bool(SILENCED.search(line)) and not EXPLAINED.search(line))


def is_wrong(line: str, *, own: bool) -> bool:
    """Whether a mark on the line has no place there."""
    return is_bare(line, own=own) or bool(LEFT.search(line) or BARE.search(line))


def test_marks_of_every_file() -> None:
    places = [(path, own) for paths, own in ((OWN, True), (TESTS, False)) for path in paths]
    lines = [(path, own, n, line) for path, own in places for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{path.relative_to(ROOT)}:{n}: {line.strip()}" for path, own, n, line in lines if is_wrong(line, own=own)] == []


def test_marks_of_generated_files() -> None:
    """A test of a package is skipped where its framework is not installed."""
    lines = [(path, n, line) for path in TEMPLATES for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{path.relative_to(ROOT)}:{n}: {line.strip()}" for path, n, line in lines if is_bare(line, own=True)] == []


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("x = f()  # type: ignore", True),
        ("x = f()  # type: ignore[misc]", True),
        ("x = f()  # type: ignore[misc]  # as above", True),
        ("x = f()  # type: ignore[misc]  # why", False),
        ("import x  # noqa", True),
        ("import x  # noqa: F401", False),
        ("import x  # noqa: F401 - why", True),
        ("# TODO: later", True),
        ("@pytest.mark.xfail(reason='why')", False),
        ("torch = pytest.importorskip('torch')", False),
        ("@pytest.mark.skip", False),
        ("@pytest.mark.skipif(WINDOWS)", False),
        ("    pytest.skip()", False),
    ],
)
def test_a_mark_without_reason_is_found(line: str, own: bool) -> None:
    assert is_wrong(line, own=own)
