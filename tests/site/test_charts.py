"""Charts of times: bars as long as the times, and what is told of all ops."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from opc.site.charts import bars, cases, overview, table
from opc.testing.bench.benchmark import Benchmark, Measurement
from tests.cli.conftest import Outcome, opc, spec, write

__all__ = ["opc"]  # the fixture

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    Measurement("ops", "some/short", "opc torch", 2e-3),
    Measurement("ops", "some/short", "opc numpy", 1e-3, 2.0),
    Measurement("ops", "some/short", "torch", 4e-3, 0.5),
    Measurement("ops", "some/short", "memcpy", 1e-4, 20.0),
    Measurement("ops", "some/short", "onnxruntime", None, note="not here: <none>"),
    Measurement("ops", "some_other", "opc torch", 3e-3),
    Measurement("ops", "some_other", "torch", 1e-3, 3.0),
    Measurement("gpu", "some bfloat16", "opc torch", 1e-6),
    Measurement("gpu", "some bfloat16", "torch", 2e-6, 0.5),
    Measurement("tiny", "some", "opc torch", 1e-6),
]
BENCH = Benchmark({"processor": "A"}, rows=ROWS)


def test_an_op_has_its_own_calls_and_no_other_s() -> None:
    assert [(c.section, c.name, c.times) for c in cases(BENCH, "some")] == [
        ("ops", "some/short", 4.0),
        ("gpu", "some bfloat16", 2.0),
    ]


def test_bars_are_as_long_as_the_times() -> None:
    text = bars("some", cases(BENCH, "some"))
    assert text == bars("some", cases(BENCH, "some"))
    picture = ElementTree.fromstring(text)
    lengths = [float(e.attrib["width"]) for e in picture.iter(f"{SVG}rect")]
    longest = max(lengths)
    assert [length / longest for length in lengths] == pytest.approx([0.5, 0.25, 1, 0.025, 0.5, 1], abs=1e-3)
    kinds = [e.attrib["class"] for e in picture.iter(f"{SVG}rect")]
    assert kinds == ["opc-ours", "opc-ours", "opc-theirs", "opc-theirs", "opc-ours", "opc-theirs"]
    assert picture.attrib["aria-labelledby"].split() == [picture[0].attrib["id"], picture[1].attrib["id"]]
    assert picture[1].text is not None
    assert "some/short, forward: opc torch 2 ms, opc numpy 1 ms, torch 4 ms, memcpy 100 us." in picture[1].text


def test_the_table_has_what_did_not_run() -> None:
    last = table(cases(BENCH, "some")[:1]).splitlines()[-1]
    assert last == "| some/short, forward | onnxruntime | - |  | not here: &#60;none&#62; |"


def test_the_overview_compares_the_quickest() -> None:
    page = overview(BENCH, ["some"])
    assert "on processor A" in page
    assert "Of 2 calls, 1 are at least as fast as in the quickest framework." in page
    assert "| [some/short](../gallery/some.md) | opc numpy, 1 ms | torch, 4 ms | 4.00 |" in page
    assert re.search(r"\| some&#95;other \| opc torch, 3 ms \| torch, 1 ms \| 0.33 \|", page)
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page)]
    ahead, behind = pictures[0].findall(f"{SVG}rect")
    one = next(e for e in pictures[0].iter(f"{SVG}path") if e.attrib["class"] == "opc-axis").attrib["d"]
    middle = float(one[1:].split()[0])
    assert float(ahead.attrib["x"]) == middle
    assert float(behind.attrib["x"]) + float(behind.attrib["width"]) == pytest.approx(middle, abs=0.11)
    assert len(pictures) == 2


def test_the_command_takes_what_bench_printed(opc: Callable[..., Outcome], tmp_path: Path) -> None:
    rows = [Measurement("ops", "leaky_relu", "opc torch", 1e-3), Measurement("ops", "leaky_relu", "torch", 2e-3, 0.5)]
    given = write(tmp_path / "bench.json", json.dumps(Benchmark(rows=rows).as_dict()))
    spec(tmp_path)
    assert opc("site", "--pages", "leaky_relu.yaml", "--bench", given).err == "site: 3 pages, 1 of them of ops\n"
    assert "## Speed" in (tmp_path / "site/pages/gallery/leaky_relu.md").read_text()
    assert "- Speed: benchmarks/index.md" in (tmp_path / "site/mkdocs.yml").read_text()
    other = opc("site", "--pages", "leaky_relu.yaml", "--bench", write(tmp_path / "other.json", '{"rows": [{}]}'))
    assert (other.code, "no result of opc bench --json" in other.err) == (2, True)
