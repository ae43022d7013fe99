"""README's table of backends: its last column is what docs/proof.md says, which `opc test --markdown` wrote.

`python tests/docs/backends_table.py` brings README up to date.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README, PROOF = ROOT / "README.md", ROOT / "docs" / "proof.md"
ROW = re.compile(r"^\| ([^|]+) \| (?:([^|]+) \| )?([^|]+) \|$", re.MULTILINE)


def table(text: str) -> str:
    """Return the table under the heading of backends, or the first of a page that has none."""
    section = text.partition("\n## Backends\n")[2] or text
    return section[section.index("| backend ") :].split("\n\n")[0]


def proved(page: str) -> dict[str, str]:
    """Return what is proved on each backend, by its title."""
    return {m[1]: m[3] for m in ROW.finditer(table(page)) if m[1] not in ("backend", "---")}


def updated(readme: str, page: str) -> str:
    """Return README with what the page says; backends that README does not know yet are added without a description."""
    old = table(readme)
    known = {m[1]: m[2] for m in ROW.finditer(old)}
    rows = [f"| {title} | {known.get(title) or '...'} | {text} |" for title, text in proved(page).items()]
    return readme.replace(old, "\n".join([*old.splitlines()[:2], *rows]))


if __name__ == "__main__":
    README.write_text(updated(README.read_text(), PROOF.read_text()))
