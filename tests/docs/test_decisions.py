"""Pages of decisions have one form, are listed, and give no figure that the page they link to does not."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, page_id

FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(p for p in FOLDER.glob("*.md") if p.name != "README.md")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def measured(page: Path) -> list[tuple[Path, str]]:
    """Return (linked page, text) of every line under "Measured"."""
    lines = page.read_text().split("\n## Measured\n")[1].split("\n- ")[1:]
    found = [re.match(r"\[[^]]+\]\(([^)#]+)[^)]*\): (.*)", line.strip(), re.DOTALL) for line in lines]
    assert all(found)
    return [(page.parent / m[1], m[2]) for m in found if m is not None]


def test_every_page_is_listed() -> None:
    listed = re.findall(r"^\| \[([^]]+)\]\(([^)]+)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert {target for _, target in listed} == {p.name for p in PAGES}
    assert [title for title, target in listed if not (FOLDER / target).read_text().startswith(f"# {title}\n")] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_page_has_the_sections(page: Path) -> None:
    assert re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE) == ["Context", "Decision", "Consequences", "Measured"]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_figures_stand_on_the_page_that_is_linked(page: Path) -> None:
    assert measured(page)
    for source, text in measured(page):
        known = set(NUMBER.findall(source.read_text()))
        assert set(NUMBER.findall(text)) <= known, f"{page_id(page)} and {page_id(source)} differ: {text}"
