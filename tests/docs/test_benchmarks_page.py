"""The page of benchmarks takes over what runs printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opc.site.charts import cases
from opc.testing.bench.benchmark import Benchmark, Measurement
from opc.testing.bench.report import seconds_text
from tests.docs.benchmarks_page import GPU_PAGE, PAGE, kept, missed, printed, updated, with_means

OLD = """# Benchmarks

Some words.

## Small

| op | time |
|---|---:|
| a | 1 ms |

## Large

| op | time |
|---|---:|
| a | 9 ms |

## Targets

| figure | measured |  |
|---|---:|---|
| a: small | 1 | held |
| a: large | 2 | missed |
"""

RUN = """machine

### Small

| op | time |
|---|---:|
| a | 2 ms |

### Targets

| figure | measured |  |
|---|---:|---|
| a: small | 3 | missed |
"""


def test_sections_and_figures_of_a_run_replace_the_old_ones() -> None:
    page = updated(OLD, [RUN])
    assert page == OLD.replace("1 ms", "2 ms").replace("| a: small | 1 | held |", "| a: small | 3 | missed |")
    assert (missed(OLD), missed(page)) == (1, 2)


def test_a_run_of_some_calls_leaves_the_others() -> None:
    page = updated(OLD, [RUN.replace("| a | 2 ms |", "| b | 2 ms |").replace("a: small", "b: small")])
    assert "| a | 1 ms |\n| b | 2 ms |\n" in page
    assert "| a: small | 1 | held |" in page
    assert "| b: small | 3 | missed |" in page
    wider = RUN.replace("| time |", "| time | note |").replace("---:|\n| a | 2 ms |", "---:|---|\n| a | 2 ms | - |")
    assert "| a | 2 ms | - |\n\n## Large" in updated(OLD, [wider])


def test_the_page_says_the_geometric_mean_of_its_cases() -> None:
    page = PAGE.read_text()
    assert page.count("The geometric mean of the time of the best of ours") == 2
    assert with_means(page) == page


def test_a_run_of_a_section_that_the_page_lacks_is_told() -> None:
    with pytest.raises(ValueError, match="Tiny"):
        updated(OLD, [RUN.replace("### Small", "### Tiny")])


def test_the_page_itself_can_be_read() -> None:
    page = PAGE.read_text()
    assert updated(page, []) == page


@pytest.mark.parametrize("path", [PAGE, GPU_PAGE], ids=lambda p: p.stem)
def test_what_charts_are_drawn_from_is_what_the_page_says(path: Path) -> None:
    def shown(row: Measurement) -> tuple[str, ...]:
        return (
            row.section,
            row.op,
            row.contender,
            seconds_text(row.seconds),
            "" if row.ratio is None else f"{row.ratio:.2f}",
            row.note,
        )

    bench = Benchmark.from_dict(json.loads(path.with_suffix(".json").read_text()))
    page = path.read_text()
    assert [*map(shown, bench.rows)] == [*map(shown, printed(page))]
    # Every time and ratio that the tables print is among them.
    lines = [line for line in page.splitlines() if re.match(r"\| \S+.* \| [^|]*(opc|torch|onnxruntime|copy)", line)]
    for row in bench.rows:
        assert any(line.startswith(f"| {row.op} | {row.contender} | {seconds_text(row.seconds)} |") for line in lines)
    assert len(cases(bench)) > 60


def test_a_run_s_exact_rows_are_kept() -> None:
    row = Measurement("ops", "some", "torch", 1.23456e-3, 0.51234, note="as it is")
    rows = Benchmark.from_dict(json.loads(kept(PAGE.read_text(), [Benchmark(rows=[row])]))).rows
    assert row in rows
    assert len(rows) == len([*printed(PAGE.read_text())]) + 1
