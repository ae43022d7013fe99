"""A reference has every public name, as it is written, and runs nothing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main

import opc as package
from opc.backends.base import Backend
from opc.cli.main import app
from opc.diagnostics import SpecError
from opc.site.reference import module_page, program_page
from tests.cli.conftest import Outcome, opc, spec
from tests.docs.test_commands import commands

__all__ = ["opc"]  # the fixture


def headings(page: str, level: str) -> list[str]:
    return re.findall(rf"^{level} `?([^`\n]+)`?$", page, re.MULTILINE)


def test_a_package_has_what_it_exports_from_wherever() -> None:
    page = module_page("opc")
    assert headings(page, "##") == package.__all__
    assert "load(spec: str | os.PathLike[str]) -> LoadedOp" in page
    assert "| raises | |\n|---|---|\n| <code>SpecError</code> | with every mistake in the spec," in page


def test_a_class_has_its_public_methods() -> None:
    page = module_page("opc.backends.base")
    below = page.partition("\n## `Backend`\n")[2]
    public = [n for n, f in vars(Backend).items() if not n.startswith("_") and (inspect.isfunction(f) or isinstance(f, property))]
    assert len(public) > 8
    assert set(public) <= set(headings(below, "###"))
    assert "class Availability\n    available: bool\n    version: str | None = None\n" in page


SOURCE = '''"""Of <b>some</b> use: `a < b`."""
raise RuntimeError("never run")

LEAST: int = 3
"""The least."""

def public(a, /, b: int = 2, *rest: str, c: "float" = 0.5, **more: object) -> list[int]:
    """Do something.

    Args:
        a: One | two.
        b: Three.

    Raises:
        ValueError: when it is *not*.
    """

def keyword(*, only: bool) -> None:
    """Do nothing."""

def _private() -> None:
    """Hidden."""

def silent() -> None: ...
'''


def test_a_module_is_read_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_module.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    page = module_page("some_module")
    assert headings(page, "##") == ["LEAST", "public", "keyword"]
    assert "Of &lt;b>some&lt;/b> use: `a < b`." in page
    assert "LEAST: int = 3" in page
    assert "public(a, /, b: int = 2, *rest: str, c: float = 0.5, **more: object) -> list[int]" in page.replace("'float'", "float")
    assert "keyword(*, only: bool) -> None" in page
    assert "| <code>a</code> | One &#124; two. |" in page
    assert "| <code>ValueError</code> | when it is *not*. |" in page


def test_what_is_not_there_is_told(opc: Callable[..., Outcome], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no Python module no_such_module"):
        module_page("no_such_module")
    spec(tmp_path)
    assert opc("site", "--pages", "leaky_relu.yaml", "--api", "no.such.module").code == 1
    assert opc("site", "--pages", "leaky_relu.yaml", "--api", "opc.cli.main:none").code == 2
    assert opc("site", "--pages", "leaky_relu.yaml", "--api", "opc.cli.main:COMMANDS").code == 2
    made = opc("site", "--pages", "leaky_relu.yaml", "--api", "opc.diagnostics", "--api", "opc.cli.main:app")
    assert (made.code, made.err) == (0, "site: 4 pages, 1 of them of ops\n")
    assert (
        "- Reference:\n  - The command opc: api/opc.cli.main.md\n  - opc.diagnostics: api/opc.diagnostics.md\n"
        in (tmp_path / "site/mkdocs.yml").read_text()
    )


def test_a_command_line_has_every_command_and_option() -> None:
    page = program_page("opc", typer.main.get_command(app))
    assert headings(page, "##") == [f"opc {name}" for name in commands()]
    for name, options in commands().items():
        part = page.partition(f"\n## opc {name}\n")[2].partition("\n## ")[0]
        assert [o for o in options if o not in part] == [], name
