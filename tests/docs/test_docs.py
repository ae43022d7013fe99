"""Every spec in README and docs compiles, and every example in one comes out."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, page_id

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield (page:line, text) of every fenced block of a language."""
    for page in PAGES:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            if match[1] == language:
                line = text[: match.start()].count("\n") + 2
                yield f"{page_id(page)}:{line}", match[2]


SPECS = [(place, text) for place, text in blocks("yaml") if re.search(r"^op: (?!wrong)", text, re.MULTILINE)]


def test_there_are_specs_to_check() -> None:
    assert len(SPECS) >= 8


@pytest.mark.parametrize(("place", "text"), SPECS, ids=[p for p, _ in SPECS])
def test_spec_compiles_and_its_examples_hold(place: str, text: str) -> None:
    from opc.pipeline import family_of
    from opc.spec.instances import numbers_of
    from opc.spec.loader import loads
    from opc.testing.references.examples import check_examples

    for number in numbers_of(text) or (None,):
        family = family_of(loads(text, place, whole=False, number=number))
        assert [f"{name}: {wrong}" for name, wrong in check_examples(family) if wrong] == []


@pytest.mark.rotating
@pytest.mark.parametrize(("place", "text"), SPECS, ids=[p for p, _ in SPECS])
def test_kernels_of_a_spec_give_what_its_examples_say(place: str, text: str, tmp_path: Path) -> None:
    from opc.pipeline import family_of
    from opc.spec.instances import numbers_of
    from opc.spec.loader import loads
    from opc.testing.oracle.evaluation import evaluate
    from opc.testing.oracle.tolerance import compare
    from opc.testing.references.examples import example_cases
    from tests.emit.kernel_library import KernelLibrary
    from tests.fuzz.kernels import compile_together

    for number in numbers_of(text) or (None,):
        family = family_of(loads(text, place, whole=False, number=number))
        if family.native:
            continue  # whose examples are run where its code is built
        library = KernelLibrary(family, compile_together([family], tmp_path / str(number), "-O0"))
        for case in example_cases(family):
            inputs = case.arrays()
            want = evaluate(family.forward, inputs, case.attributes)
            found = library.call(family.forward, inputs, case.attributes)
            for name, bounded in want.items():
                compared = compare(name, found[name], bounded)
                assert compared.ok, f"{case.name}: {compared.message}"


def test_the_list_of_functions_is_complete() -> None:
    from opc.ir.functions import CALLABLE

    text = (ROOT / "docs" / "language.md").read_text()
    section = text.split("## Functions")[1].split("## ")[0]
    listed = re.findall(r"`([a-z0-9_ \n]+)`", section)[-1].split()
    assert sorted(listed) == sorted(set(CALLABLE))


def anchors(page: Path) -> set[str]:
    """Return what links to the headings of a page are called."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_inside_the_project_resolve(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose):
        place = page.parent / target if target else page
        assert place.exists(), f"{page_id(page)} links to {target}"
        assert not anchor or anchor in anchors(place), f"{page_id(page)} links to {target}#{anchor}"


def test_the_table_of_contents_has_every_page() -> None:
    listed = {
        (folder / target).resolve()
        for folder, name in ((ROOT / "docs", "README.md"), (ROOT / "docs/decisions", "README.md"))
        for target in re.findall(r"\]\(([^)#:]+)", (folder / name).read_text())
    }
    assert {p for p in (ROOT / "docs").rglob("*.md") if p != ROOT / "docs/README.md"} <= listed


def test_the_page_on_packages_names_every_file() -> None:
    page = (ROOT / "docs" / "package.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = ROOT / "generated" / "leaky_relu"
    files = {str(p.relative_to(package)) for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    shown = {f for f in files if not f.startswith("build/") and f not in ("__init__.py", "tests/__init__.py")}
    assert named == shown


@pytest.mark.parametrize("name_of_page", ["benchmarks.md", "gpu_benchmarks.md"])
def test_a_benchmark_page_shows_every_section_and_says_what_is_missed(name_of_page: str) -> None:
    from opc.testing.bench.benchmark import GPU_SECTIONS, SECTIONS

    own = {name for name in SECTIONS if (name in GPU_SECTIONS) == (name_of_page == "gpu_benchmarks.md")}
    page = (ROOT / "docs" / name_of_page).read_text()
    for title in (SECTIONS[name] for name in own):
        assert f"## {title[0].upper()}{title[1:]}" in page
    rows = [line for line in page.split("## Targets")[1].splitlines() if line.startswith("| ")][1:]
    verdicts = [row.rstrip(" |").rpartition("| ")[2] for row in rows]
    assert len(verdicts) >= 30
    assert set(verdicts) <= {"held", "held within noise", "missed"}
    assert f"{verdicts.count('missed')} targets are missed" in page
