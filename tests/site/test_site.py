"""A site of the documentation and of ops of different kinds: nothing from elsewhere, every link leads somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from opc.cli.console import guarded
from opc.cli.main import app
from opc.diagnostics import SpecError
from opc.site.docs import contents, pages_of
from opc.testing.keeping import to_data
from opc.testing.markdown import markdown, proved
from opc.testing.results import Column, Report, Result, Status
from tests.cli.conftest import BAD, SPECS, Outcome, opc, spec, write

__all__ = ["opc"]  # the fixture

ROOT = Path(__file__).parents[2]
SHOWN = ("conv2d", "embedding", "gelu", "matmul", "max_pool2d", "softmax")
# What a browser asks for by itself when it shows a page.
RESOURCES = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}

Opc = Callable[..., Outcome]


@dataclass
class Read(HTMLParser):
    """What a page holds: its ids, where its links lead, what it asks for."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        # The address that a page is known by is none that it asks for.
        if (name := RESOURCES.get(tag, "")) in given and given.get("rel") != "canonical":
            self.resources.append(given[name])


@pytest.fixture(scope="module", params=["mkdocs", "zensical"])
def html(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the HTML of a site of the documentation and a few ops, made by either builder."""
    out = tmp_path_factory.mktemp("made") / "site"
    specs = [str(SPECS / f"{name}.yaml") for name in SHOWN]
    own = ["--api", "opc", "--bench", str(ROOT / "docs/benchmarks.json")]
    call = ["site", "--docs", str(ROOT / "docs"), "--title", "opc", "-o", str(out), *own, *specs]
    other = request.param == "zensical"
    assert guarded(lambda: app([*call, *(["--pages"] if other else [])], prog_name="opc")) == 0
    if other:
        build = (Path(sys.executable).with_name("zensical"), "build", "--strict", "-f", out / "mkdocs.yml")
        done = subprocess.run(build, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def pages(html: Path) -> dict[Path, Read]:
    found = {}
    for path in sorted(html.rglob("*.html")):
        found[path] = Read()
        found[path].feed(path.read_text())
    return found


@pytest.mark.rotating
def test_the_site_has_every_page_of_the_documentation_and_every_op(html: Path) -> None:
    docs = [p.relative_to(ROOT).with_suffix("") for p in (ROOT / "docs").rglob("*.md")]
    folders = [p.parent if p.name == "README" else p for p in docs]
    wanted = [
        *map(Path, ("", "CHANGELOG", "CONTRIBUTING", "gallery")),
        *folders,
        *(Path("gallery", name) for name in SHOWN),
        Path("api/opc"),
        Path("benchmarks"),
    ]
    assert [p for p in wanted if not (html / p / "index.html").is_file()] == []


def test_no_page_asks_another_host_for_anything(html: Path, pages: dict[Path, Read]) -> None:
    asked = {r for page in pages.values() for r in page.resources}
    assert len(asked) > 5
    assert [r for r in asked if urlsplit(r).netloc or urlsplit(r).scheme not in ("", "data")] == []
    styles = [p.read_text() for p in html.rglob("*.css")]
    urls = [u for text in styles for u in re.findall(r"(?:url\(|@import )['\"]?([^'\")]+)", text)]
    assert [u for u in urls if u.startswith(("http", "//"))] == []


def test_every_page_lets_the_keyboard_move_wide_tables(html: Path, pages: dict[Path, Read]) -> None:
    """By a script of the site's own, which Chromium is asked about by `nox -s site`."""
    assert [path for path, page in pages.items() if not any(r.endswith("opc.js") for r in page.resources)] == []
    assert (html / "opc.js").is_file()


def test_ids_are_unique_and_links_resolve(html: Path, pages: dict[Path, Read]) -> None:
    wrong, seen = [], 0
    for path, page in pages.items():
        wrong += [f"{path}: id {i} twice" for i in page.ids if page.ids.count(i) > 1]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            place = Path(normpath(path.parent / unquote(parts.path))) if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            seen += 1
            if not place.is_file() or (parts.fragment and unquote(parts.fragment) not in pages[place].ids):
                wrong.append(f"{path.relative_to(html)}: {link}")
    assert wrong == []
    assert seen > 1000


def test_an_op_s_page_has_its_formula_its_plot_and_its_spec(html: Path) -> None:
    page = (html / "gallery/gelu/index.html").read_text()
    assert page.count("<math ") == 3
    assert page.count('<svg class="opc-plot"') == 1
    spec_text = re.sub(r"<[^>]*>", "", page.partition('id="spec"')[2])
    assert "op: gelu\ndomain: opc.nn\nversion: 1\n" in spec_text
    assert "<math" in (html / "gallery/conv2d/index.html").read_text()
    conv2d = (html / "gallery/conv2d/index.html").read_text()
    assert '<svg class="opc-plot"' not in conv2d
    assert (conv2d.count('<svg class="opc-reads"'), conv2d.count('<svg class="opc-plot opc-bench"')) == (6, 1)


SOME = """op: some
domain: docs
version: 1
doc: 'Signs | of <b>Markdown</b> *and* [HTML](x) & `code` are none: a_b_c.'
types: {T: floating}
inputs: {x: 'T[N]'}
attributes: {mode: {type: str, values: ['a|b', c], default: c, doc: 'One | of *two*.'}}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = x[i] if mode == 'a|b' else 0
"""


def test_what_a_spec_says_is_text(opc: Opc, tmp_path: Path) -> None:
    write(tmp_path / "specs/some.yaml", SOME)
    made = opc("site")
    assert (made.code, made.out) == (0, "site/html/index.html\n")
    page = (tmp_path / "site/html/gallery/some/index.html").read_text()
    plain = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", page)))
    assert "Signs | of <b>Markdown</b> *and* [HTML](x) & `code` are none: a_b_c." in plain
    assert "One | of *two*. One of a|b, c." in plain
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        assert len(re.findall(r"<t[dh]", row)) in (2, 3, 6)


def test_a_page_says_what_was_proved(opc: Opc, tmp_path: Path) -> None:
    report = Report({"numpy": Column("NumPy", "2.4"), "onnx": Column("ONNX")})
    report.add([Result("some", "numpy", "values", "call", Status.PASSED, ratio=0.25, count=12)])
    report.add([Result("some", "onnx", "values", "call", Status.EMULATED, count=1200)])
    write(tmp_path / "specs/some.yaml", SOME)
    found = {}
    for name, text in (("proof.json", json.dumps(to_data(report))), ("proof.md", markdown(report, "opc test"))):
        assert opc("site", "--pages", "--proof", write(tmp_path / name, text)).code == 0
        page = (tmp_path / "site/pages/gallery/some.md").read_text()
        found[name] = [line for line in page.splitlines() if line.startswith(("| NumPy |", "| ONNX |"))]
    assert found["proof.json"] == ["| NumPy | carries it | 12 0.25 |", "| ONNX | carries it | 1200 0.00 emulated |"]
    assert found["proof.md"] == ["| NumPy | carries it | 12 |", "| ONNX | carries it | 1,200, emulated |"]
    assert opc("site", "--pages").code == 0
    assert "| NumPy | carries it |\n" in (tmp_path / "site/pages/gallery/some.md").read_text()


def test_the_page_of_this_project_s_proof_is_read() -> None:
    found = proved((ROOT / "docs/proof.md").read_text())
    assert len({op for op, _ in found}) > 60
    assert found["inverse", "CUDA"] == "refused"


def test_a_page_of_an_earlier_run_goes_and_bytes_stay(opc: Opc, tmp_path: Path) -> None:
    spec(tmp_path), spec(tmp_path, "relu")
    assert opc("site", "--pages", ".").err == "site: 3 pages, 2 of them of ops\n"
    first = {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()}
    assert opc("site", "--pages", ".").code == 0
    assert {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()} == first
    (tmp_path / "relu.yaml").unlink()
    assert opc("site", "--pages", ".").code == 0
    left = {p.name for p in (tmp_path / "site/pages/gallery").iterdir()}
    assert left == {"index.md", "leaky_relu.md"}


def test_mistakes_are_told(opc: Opc, tmp_path: Path) -> None:
    spec(tmp_path)
    write(tmp_path / "own/notes.txt", "kept")
    refused = opc("site", "leaky_relu.yaml", "-o", "own")
    assert (refused.code, "own holds something else than a site that opc made" in refused.err) == (2, True)
    assert opc("site", "leaky_relu.yaml", "--docs", "none").code == 2
    write(tmp_path / "again/other.yaml", (tmp_path / "leaky_relu.yaml").read_text())
    twice = opc("site", "leaky_relu.yaml", "again", "--pages")
    assert (twice.code, "again/other.yaml and leaky_relu.yaml both describe leaky_relu" in twice.err) == (1, True)
    broken = opc("site", write(tmp_path / "broken.yaml", BAD), "--pages")
    assert (broken.code, "broken.yaml:1" in broken.err) == (1, True)
    proof = opc("site", "leaky_relu.yaml", "--pages", "--proof", write(tmp_path / "proof.json", "{}"))
    assert (proof.code, "no results of opc test" in proof.err) == (2, True)


def test_links_of_pages_lead_to_pages(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "[docs](docs/a.md) and [license](LICENSE), [folder](docs), [specs](specs)\n")
    write(tmp_path / "docs/a.md", "[spec](../specs/x.yaml) `[no](link.md)`\n\n```\n[none](none.md)\n```\n[up](../README.md#x)\n")
    write(tmp_path / "LICENSE", "Text with ``` in it.")
    made = {(tmp_path / "specs"): "gallery/index.md", (tmp_path / "specs/x.yaml"): "gallery/x.md"}
    pages = pages_of(tmp_path, tmp_path / "docs", made)
    assert pages == {
        "README.md": "[docs](docs/a.md) and [license](LICENSE.md), folder, [specs](gallery/index.md)\n",
        "docs/a.md": "[spec](../gallery/x.md) `[no](link.md)`\n\n```\n[none](none.md)\n```\n[up](../README.md#x)\n",
        "LICENSE.md": "# LICENSE\n\n````text\nText with ``` in it.\n````\n",
    }
    write(tmp_path / "docs/b.md", "[gone](gone.md)")
    with pytest.raises(SpecError, match=r"docs/b\.md links to gone\.md, which is no file of the project"):
        pages_of(tmp_path, tmp_path / "docs", made)


def test_the_navigation_is_that_of_the_table_of_contents() -> None:
    assert contents("# All\n\n[x](x.md)\n\n## One\n\n- [a](a.md): b\n- [c](c.md#d), [e](https://host/)\n\n## Two\n\nnone\n") == {
        "One": [("a", "a.md"), ("c", "c.md")]
    }
