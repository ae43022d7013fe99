"""What silences a check says why on its line, and tests are not skipped for want of what the extra `test` installs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN = sorted((ROOT / "opc").rglob("*.py"))
TESTS = sorted(p for p in (ROOT / "tests").rglob("*.py") if p != Path(__file__))
IGNORED = re.compile(r"# type: ignore")
# mypy reads opc alone, and refuses a mark that silences nothing.
REASONED = re.compile(r"# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]  # (?!as above)\S")
LEFT = re.compile(r"\b(TODO|FIXME|XXX)\b|pytest\.(mark\.)?xfail|importorskip")
BARE = re.compile(r"pytest\.skip\(\)|pytest\.mark\.skip\b(?!if)|skipif\((?!.*reason=)")


def is_wrong(line: str, *, own: bool) -> bool:
    """Whether a mark on the line has no place there."""
    unreasoned = bool(IGNORED.search(line)) and not (own and REASONED.search(line))
    return unreasoned or bool(LEFT.search(line) or BARE.search(line))


def test_marks_of_every_file() -> None:
    places = [(path, own) for paths, own in ((OWN, True), (TESTS, False)) for path in paths]
    lines = [(path, own, n, line) for path, own in places for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{path.relative_to(ROOT)}:{n}: {line.strip()}" for path, own, n, line in lines if is_wrong(line, own=own)] == []


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("x = f()  # type: ignore", True),
        ("x = f()  # type: ignore[misc]", True),
        ("x = f()  # type: ignore[misc]  # as above", True),
        ("x = f()  # type: ignore[misc]  # why", False),
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
