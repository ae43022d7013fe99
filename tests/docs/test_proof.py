"""The page that says what is proved where, and README's table made from it, are of this project's specs, backends and pins."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import requires
from pathlib import Path
from types import ModuleType

import pytest

from opc.backends import registry
from opc.distribution import NAME
from opc.spec.files import in_folder

ROOT = Path(__file__).parents[2]
SPECS = sorted(p.stem for folder in ("specs", "specs/native") for p in (ROOT / folder).glob("*.yaml"))
PINNED = {"ONNX Runtime": "onnxruntime", "PyTorch": "torch", "MindSpore": "mindspore", "RKNN": "rknn-toolkit2"}


def tool() -> ModuleType:
    """Return `backends_table.py`, which lies beside this file."""
    spec = importlib.util.spec_from_file_location("backends_table", Path(__file__).with_name("backends_table.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "proof.md").read_text()


def test_the_readmes_table_is_made_from_the_proof(page: str) -> None:
    readme = (ROOT / "README.md").read_text()
    assert tool().updated(readme, page) == readme, "run python tests/docs/backends_table.py"
    assert "| ... |" not in readme


def test_every_backend_and_every_op_is_there(page: str) -> None:
    every = registry.select()
    # Those that the proof alone has join the page when it is made anew.
    beside = {found.title for b in every if (found := registry.companion(b)) is not None}
    beside |= {registry.load(name).title for name in registry.NAMED}
    assert set(tool().proved(page)) - beside == {b.title for b in every}
    assert re.findall(r"^\| (\w+) \| (?!oracle)", page.partition("\n## Ops\n")[2], re.MULTILINE) == SPECS


def test_every_op_of_a_library_has_a_row_or_is_told_of() -> None:
    page = (ROOT / "docs" / "proof_libraries.md").read_text()
    faults = page.partition("\n## What is not right\n")[2]
    right, specs = 0, 0
    for library in ("onnx", "fused"):
        part = page.partition(f"\n## specs/{library}\n")[2].partition("\n## ")[0]
        rows = dict(re.findall(r"^\| (\w+?)_? \| ([\d,]+ \|.*) \|$", part, re.MULTILINE))
        there = {p.stem for p in in_folder(ROOT / "specs" / library)}
        good = {name for name, cells in rows.items() if "failed" not in cells}
        assert set(rows) <= there
        assert [name for name in sorted(there - good) if f"`{name}`" not in faults] == []
        right, specs = right + len(good), specs + len(there)
    assert f"Of {specs} specs, {right} had no failure" in page


def test_all_was_right_on_the_pinned_versions(page: str) -> None:
    proved = tool().proved(page)
    assert [text for text in proved.values() if "failed" in text or "not run" in text] == []
    pins = dict(re.findall(r"^([\w-]+)==([\w.]+)", "\n".join(requires(NAME) or ()), re.MULTILINE))
    for title, distribution in PINNED.items():
        assert pins[distribution] in proved[title]


def test_a_new_backend_gets_a_row() -> None:
    readme = "# x\n\n## Backends\n\nProved:\n\n| backend | gets | proved on |\n|---|---|---|\n| A | all | old |\n\nEnd.\n"
    page = "# y\n\n| backend | proved |\n|---|---|\n| A | 2 ops, A 1.0 |\n| B C | 1 op emulated |\n\n## Refused\n"
    assert tool().updated(readme, page).splitlines()[8:10] == ["| A | all | 2 ops, A 1.0 |", "| B C | ... | 1 op emulated |"]
