"""docs/benchmarks.md and docs/gpu_benchmarks.md: their tables are what runs of `opc bench --markdown` printed.

`python tests/docs/benchmarks_page.py RUN.md...` puts the sections of these runs in the place of the page's own, the figures of
targets too, and says how many targets the page then shows as missed; `--gpu` in front of the runs means the page of GPUs. What
stands between the tables is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
GPU_PAGE = PAGE.with_name("gpu_benchmarks.md")
TARGETS = "Targets"


def sections(text: str, level: str) -> dict[str, str]:
    """Return what stands under each heading of a level, by title."""
    parts = re.split(rf"^{level} (.+)\n", text, flags=re.MULTILINE)
    return {title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def rows(table: str) -> dict[str, str]:
    """Return the rows of a table by their first column, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return {line.split("|")[1].strip(): line for line in lines}


def updated(page: str, runs: Iterable[str]) -> str:
    """Return the page with the sections that the runs have."""
    old = sections(page, "##")
    new, figures = dict(old), rows(old[TARGETS])
    for run in runs:
        found = sections(run, "###")
        figures |= rows(found.pop(TARGETS, ""))
        unknown = sorted(found.keys() - old.keys())
        if unknown:
            raise ValueError(f"the page has no section {unknown[0]!r}")
        new |= found
    head = "\n".join(line for line in old[TARGETS].splitlines()[:2])
    new[TARGETS] = "\n".join([head, *figures.values()])
    for title, body in new.items():
        page = page.replace(f"## {title}\n\n{old[title]}", f"## {title}\n\n{body}")
    return page


def missed(page: str) -> int:
    """Return how many targets the page shows as missed."""
    return sum(row.endswith("| missed |") for row in rows(sections(page, "##")[TARGETS]).values())


if __name__ == "__main__":
    gpu = sys.argv[1:2] == ["--gpu"]
    path, names = (GPU_PAGE, sys.argv[2:]) if gpu else (PAGE, sys.argv[1:])
    page = updated(path.read_text(), (Path(name).read_text() for name in names))
    path.write_text(page)
    print(f"{missed(page)} targets are missed")
