"""What is left out of the tests where nothing has changed: each listed file says all that it reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import unchanged
from tests.docs.pages import PAGES, page_id
from tests.unchanged import READ, ROOT, depends, left_out, made_of, reads, shows

LISTED = [p for p in sorted((ROOT / "tests").rglob("test_*.py")) if reads(p) is not None]
# What runs backends that it knows by name.
BY_NAME = re.compile(r"\b(build_specs|build_families|run_tests|opc\.load|registry\.\w+)\(|\"-m\", \"opc\"")
FUZZ = ROOT / "tests/fuzz/test_classes.py"


def changed(*names: str) -> set[Path]:
    return {ROOT / name for name in names}


def fuzz_depends_on(name: str) -> bool:
    return depends(made_of(FUZZ), reads(FUZZ) or (), changed(name))


def test_what_is_listed_is_there() -> None:
    assert all((ROOT / place).exists() for place in READ)
    assert {place for place in READ if not any(place in (p, p.rpartition("/")[0]) for p in names(LISTED))} == set()
    every = {place for table in (READ, unchanged.PAGES) for places in table.values() for place in places}
    assert [place for place in every if not (ROOT / place).exists()] == []
    assert unchanged.PAGES.keys() <= {page_id(page) for page in PAGES}


def names(paths: list[Path]) -> list[str]:
    return [p.relative_to(ROOT).as_posix() for p in paths]


@pytest.mark.parametrize("path", LISTED, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_that_run_backends_by_name_name_them(path: Path) -> None:
    own = [p for p in made_of(path) if p.is_relative_to(ROOT / "tests")]
    found = [f"{p.name}: {m[0]}" for p in own for m in BY_NAME.finditer(p.read_text())]
    if not any(place.startswith("opc/backends") for place in reads(path) or ()):
        assert found == []


@pytest.mark.parametrize(
    "name",
    [
        "tests/fuzz/test_classes.py",
        "tests/fuzz/classes.py",  # what it imports
        "tests/emit/kernel_library.py",  # from another folder
        "opc/ir/expr.py",  # through others
        "opc/lower/rows/flatten.py",
        "tests/fuzz/__main__.py",  # what may be run beside it
        "tests/fuzz/poison.h",  # data beside it
        "opc/backends/onnx/templates/function.py.j2",  # data of what it imports
        "runtime/include/opc/core/math.h",  # what is said
        "specs/matmul.yaml",
        "pyproject.toml",
        "tests/conftest.py",
    ],
)
def test_a_file_depends_on(name: str) -> None:
    assert fuzz_depends_on(name)


@pytest.mark.parametrize(
    "name",
    [
        "opc/lower/cuda/kernels.py",
        "opc/emit/poplar/files.py",
        "opc/backends/paddle/backend.py",
        "runtime/include/opc/cuda/tiles.h",
        "tests/emit/cuda/golden/softmax.cu",
        "tests/fuzz/test_fuzz.py",
        "docs/testing.md",
    ],
)
def test_a_file_does_not_depend_on(name: str) -> None:
    assert not fuzz_depends_on(name)


def test_pages_depend_on_what_they_show() -> None:
    for name in (
        "docs/popart.md",
        "opc/backends/popart/session.py",
        "opc/lower/poplar/codelets.py",
        "runtime/include/opc/poplar/x.h",
    ):
        assert shows("docs/popart.md", changed(name))
    assert not shows("docs/popart.md", changed("docs/paddle.md", "opc/backends/rknn/backend.py", "opc/emit/cuda/files.py"))


def test_nothing_is_left_out_where_git_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged, "touched", lambda: None)
    assert [*unchanged.arguments()] == []
    monkeypatch.setattr(unchanged, "touched", lambda: ("0", frozenset[Path]()))
    assert left_out(FUZZ)
    assert not left_out(ROOT / "tests/cli/test_cli.py")
    ignored = [*unchanged.arguments()]
    assert len(ignored) == len(LISTED) + len(unchanged.PAGES)
    assert "--ignore=tests/fuzz/test_classes.py" in ignored
