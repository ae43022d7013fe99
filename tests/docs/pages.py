"""The pages that readers have, and the fenced blocks in them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted(p for p in ROOT.glob("*.md") if p != README), *sorted((ROOT / "docs").rglob("*.md"))]


def page_id(page: Path) -> str:
    """Return what a test calls a page."""
    return page.relative_to(ROOT).as_posix()
