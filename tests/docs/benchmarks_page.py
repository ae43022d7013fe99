"""docs/benchmarks.md and docs/gpu_benchmarks.md: their tables are what runs of `opc bench` printed.

`python tests/docs/benchmarks_page.py RUN...` puts the rows of these runs in the place of the page's own, the figures of targets
too, and says how many targets the page then shows as missed; `--gpu` in front of the runs means the page of GPUs. Rows of calls
that no run has stay, so that some ops can be measured alone. What stands between the tables is written by hand. A run is what
`opc bench --json` printed, or `--markdown`. Beside each page lie the rows that the charts of the site are drawn from, in a file
of the same name that ends in `.json`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from opc.site.charts import SHOWN
from opc.testing.bench.benchmark import SECTIONS, Benchmark, Measurement
from opc.testing.bench.report import as_markdown, means

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


def by_call(table: str) -> dict[str, list[str]]:
    """Return the rows of a table by the call that they are of, without its head."""
    found: dict[str, list[str]] = {}
    for line in [line for line in table.splitlines() if line.startswith("|")][2:]:
        found.setdefault(line.split("|")[1].strip(), []).append(line)
    return found


def cells(line: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def merged(old: str, new: str) -> str:
    """Return a table with the rows of a newer one in the place of those of the same calls, and the columns of the wider one."""
    before, now = cells(old.splitlines()[0]), cells(new.splitlines()[0])
    titles, wider = (before, old) if set(now) <= set(before) else (now, new)
    if not {*before, *now} <= set(titles):
        raise ValueError(f"the tables have other columns: {before} and {now}")

    def fitted(table: str, own: list[str]) -> dict[str, list[str]]:
        def row(line: str) -> str:
            found = dict(zip(own, cells(line), strict=True))
            return f"| {' | '.join(found.get(t, '') for t in titles)} |"

        return {call: [row(line) for line in lines] for call, lines in by_call(table).items()}

    rows = (fitted(old, before) | fitted(new, now)).values()
    return "\n".join([*wider.splitlines()[:2], *(line for lines in rows for line in lines)])


def with_means(page: str) -> str:
    """Return the page with the geometric mean of each section of cases below its table."""
    found = Benchmark(rows=[*printed(page)])
    for title, body in sections(page, "##").items():
        section = next((name for name in SECTIONS if heading(name) == title), "")
        if text := means(section, found):
            table = "\n".join(line for line in body.splitlines() if line.startswith("|"))
            page = page.replace(f"## {title}\n\n{body}", f"## {title}\n\n{table}\n\n{text}")
    return page


def updated(page: str, runs: Iterable[str]) -> str:
    """Return the page with the rows that the runs have."""
    old = sections(page, "##")
    new, figures = dict(old), rows(old[TARGETS])
    for run in runs:
        found = sections(run, "###")
        figures |= rows(found.pop(TARGETS, ""))
        unknown = sorted(found.keys() - old.keys())
        if unknown:
            raise ValueError(f"the page has no section {unknown[0]!r}")
        new |= {title: merged(new[title], body) for title, body in found.items()}
    head = "\n".join(line for line in old[TARGETS].splitlines()[:2])
    new[TARGETS] = "\n".join([head, *figures.values()])
    for title, body in new.items():
        page = page.replace(f"## {title}\n\n{old[title]}", f"## {title}\n\n{body}")
    return with_means(page)


def missed(page: str) -> int:
    """Return how many targets the page shows as missed."""
    return sum(row.endswith("| missed |") for row in rows(sections(page, "##")[TARGETS]).values())


def heading(section: str) -> str:
    """Return what a section is called on the page."""
    return f"{SECTIONS[section][0].upper()}{SECTIONS[section][1:]}"


def printed(page: str) -> Iterator[Measurement]:
    """Yield the rows of the page that charts are drawn from, as exact as they are printed."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    found = sections(page, "##")
    for section in SHOWN:
        for line in (line for lines in by_call(found.get(heading(section), "")).values() for line in lines):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            op, contender, time, ratio = cells[:4]
            number, _, unit = time.partition(" ")
            seconds = None if time == "-" else float(f"{float(number) * units[unit]:.3g}")
            yield Measurement(section, op, contender, seconds, float(ratio) if ratio else None, note=note(cells))


def note(cells: list[str]) -> str:
    """Return what stands in the last column of a row, which has no title: a figure is none."""
    return "" if not cells[-1] or cells[-1][0].isdigit() else cells[-1]


def kept(page: str, runs: Iterable[Benchmark]) -> str:
    """Return the text of the rows beside a page: those of the runs, and of the page where no run has the call."""
    runs = list(runs)
    found: list[Measurement] = []
    for section in SHOWN:
        calls: dict[str, list[Measurement]] = {}
        for source in (printed(page), *(run.rows for run in runs)):
            own: dict[str, list[Measurement]] = {}
            for r in source:
                if r.section == section:
                    own.setdefault(r.op, []).append(r)
            calls |= own
        found += [r for rows in calls.values() for r in rows]
    lines = ",\n".join(
        json.dumps({k: v for k, v in asdict(r).items() if k == "seconds" or (k == "ratio" and v == 0) or v not in (None, "", 0)})
        for r in found
    )
    machine = re.search(r"^(processor) (.+?), vectors|on an NVIDIA (\S+) with", page, re.MULTILINE)
    told = {} if machine is None else {"processor": machine[2]} if machine[1] else {"gpu": f"NVIDIA {machine[3]}"}
    return f'{{"machine": {json.dumps(told)}, "peak": {{}}, "targets": [], "rows": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    gpu = sys.argv[1:2] == ["--gpu"]
    path, names = (GPU_PAGE, sys.argv[2:]) if gpu else (PAGE, sys.argv[1:])
    exact = [Benchmark.from_dict(json.loads(Path(name).read_text())) for name in names if name.endswith(".json")]
    texts = [Path(name).read_text() for name in names if not name.endswith(".json")]
    page = updated(path.read_text(), [*texts, *map(as_markdown, exact)])
    path.write_text(page)
    path.with_suffix(".json").write_text(kept(page, exact))
    print(f"{missed(page)} targets are missed")
