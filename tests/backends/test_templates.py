"""The code of templates is kept as Python keeps that of modules, and used only where it is right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import jinja2
import pytest

from opc.backends import template_code, templates

TEMPLATE = "greeting.txt.j2"
NUMBERS = count()

Render = Callable[[], str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The templates of a package outside the source tree, with Python set to keep byte code beside its source."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    # Imported modules stay, so that each test needs a package of its own.
    made = tmp_path / f"opc_test_templates_{next(NUMBERS)}" / "templates"
    made.mkdir(parents=True)
    (made.parent / "__init__.py").write_text("")
    (made / TEMPLATE).write_text("Hello {{ name }}!\n")
    monkeypatch.syspath_prepend(tmp_path)
    return made


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the templates that Jinja compiles, in order."""
    names: list[str] = []
    compile_source = jinja2.Environment.compile

    def told(self: jinja2.Environment, source: str, name: str, filename: str) -> object:
        names.append(name)
        return compile_source(self, source, name, filename)

    monkeypatch.setattr(jinja2.Environment, "compile", told)
    return names


@pytest.fixture
def render(folder: Path, compiled: list[str]) -> Render:
    """Render the template as a new process would: by a new environment."""

    def rendered() -> str:
        environment = templates.environment.__wrapped__(folder.parent.name)
        return str(environment.get_template(TEMPLATE).render(name="world"))

    return rendered


def kept(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and p.name != TEMPLATE]


def test_blanks_and_names_are_strict(folder: Path, render: Render) -> None:
    (folder / TEMPLATE).write_text("a\n  {% if true %}\nb {{ name }}\n  {% endif %}\nc\n")
    assert render() == "a\nb world\nc\n"
    assert render() == "a\nb world\nc\n"
    (folder / TEMPLATE).write_text("{{ nobody }}")
    for _ in range(2):
        with pytest.raises(jinja2.UndefinedError, match="nobody"):
            render()


def test_code_is_compiled_once(folder: Path, render: Render, compiled: list[str]) -> None:
    assert render() == "Hello world!\n"
    (place,) = kept(folder)
    assert place.parent == folder / "__pycache__"
    assert place.name == f"{TEMPLATE}.{sys.implementation.cache_tag}.pyc"
    written = place.stat().st_mtime_ns
    assert render() == "Hello world!\n"
    assert compiled == [TEMPLATE]
    assert place.stat().st_mtime_ns == written


def test_a_changed_template_is_compiled_anew(folder: Path, render: Render, compiled: list[str]) -> None:
    render()
    (folder / TEMPLATE).write_text("Adieu {{ name }}!\n")
    assert [render(), render()] == ["Adieu world!\n"] * 2
    assert compiled == [TEMPLATE] * 2
    assert len(kept(folder)) == 1


@pytest.mark.parametrize("what", ["Jinja", "Python"])
def test_another_version_compiles_anew(render: Render, compiled: list[str], monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    render()
    if what == "Jinja":
        monkeypatch.setattr(jinja2, "__version__", "0.0")
    else:
        monkeypatch.setattr(template_code.importlib.util, "MAGIC_NUMBER", b"\0\0\r\n")
    assert render() == "Hello world!\n"
    assert compiled == [TEMPLATE] * 2


def test_other_settings_compile_anew(folder: Path, compiled: list[str]) -> None:
    (folder / TEMPLATE).write_text("{% if true %}\nx\n{% endif %}\n")
    loader = jinja2.FileSystemLoader(folder)
    for trim, text in ((True, "x\n"), (False, "\nx\n")):
        code = template_code.TemplateCode(f"{trim}")
        environment = jinja2.Environment(loader=loader, trim_blocks=trim, bytecode_cache=code)
        assert environment.get_template(TEMPLATE).render() == text
    assert compiled == [TEMPLATE] * 2


def test_python_told_to_write_none_still_reads(
    folder: Path, render: Render, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [render(), render()] == ["Hello world!\n"] * 2
    assert compiled == [TEMPLATE] * 2
    assert kept(folder) == []
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    render()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    render()
    assert compiled == [TEMPLATE] * 3


def test_code_goes_where_python_keeps_its_own(
    folder: Path, render: Render, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setattr(sys, "pycache_prefix", str(elsewhere))
    assert [render(), render()] == ["Hello world!\n"] * 2
    assert compiled == [TEMPLATE]
    assert kept(folder) == []
    (place,) = elsewhere.rglob(f"{TEMPLATE}*")
    assert place.parent == elsewhere / folder.relative_to("/")


@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "text"])
def test_damaged_code_is_written_anew(folder: Path, render: Render, compiled: list[str], damage: str) -> None:
    render()
    (place,) = kept(folder)
    whole = place.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "empty": b"",
        "half": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
        "text": b"no code\n",
    }
    place.write_bytes(damaged[damage])
    assert [render(), render()] == ["Hello world!\n"] * 2
    assert compiled == [TEMPLATE] * 2
    assert place.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(folder: Path, render: Render, compiled: list[str]) -> None:
    # A file stands in the way rather than a folder without rights: root may write there all the same.
    (folder / "__pycache__").write_text("")
    assert [render(), render()] == ["Hello world!\n"] * 2
    assert compiled == [TEMPLATE] * 2


def test_what_cannot_be_put_in_place_leaves_nothing(folder: Path, render: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(template_code.os, "replace", refuse)
    assert render() == "Hello world!\n"
    assert kept(folder) == []


def test_code_is_as_readable_as_its_source(folder: Path, render: Render) -> None:
    (folder / TEMPLATE).chmod(0o600)
    render()
    (place,) = kept(folder)
    assert place.stat().st_mode & 0o777 == 0o600


def test_a_python_that_keeps_no_code_keeps_none(
    folder: Path, render: Render, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    assert [render(), render()] == ["Hello world!\n"] * 2
    assert compiled == [TEMPLATE] * 2
    assert kept(folder) == []


def test_templates_from_no_file_are_compiled(compiled: list[str], folder: Path) -> None:
    for _ in range(2):
        environment = jinja2.Environment(
            loader=jinja2.DictLoader({TEMPLATE: "Hello"}), bytecode_cache=template_code.TemplateCode("")
        )
        assert environment.get_template(TEMPLATE).render() == "Hello"
    assert compiled == [TEMPLATE] * 2
