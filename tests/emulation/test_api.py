"""Headers and the tables of what they declare say the same, for every library of the emulation."""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.emulation.sdk import EMULATION

API = EMULATION / "api"
TABLES = sorted(path.stem for path in API.glob("*.yaml"))
SINCE = {"unknown", "1.2", "1.3", "1.4", *(f"2.{n}" for n in range(7)), *(f"3.{n}" for n in range(5))}

spec = importlib.util.spec_from_file_location("declarations", API / "declarations.py")
assert spec is not None
assert spec.loader is not None
declarations = importlib.util.module_from_spec(spec)
sys.modules["declarations"] = declarations  # Its dataclasses look there for their module.
spec.loader.exec_module(declarations)


@pytest.mark.parametrize("library", TABLES)
def test_headers_and_table_agree(library: str) -> None:
    assert declarations.differences(library) == []


@pytest.mark.parametrize("library", TABLES)
def test_every_entry_says_which_sdk_has_it(library: str) -> None:
    assert {e.since for listed in declarations.table(library).values() for e in listed} <= SINCE


def test_libraries_without_a_table_are_none() -> None:
    libraries = {path.name for path in (EMULATION / "include").iterdir() if any(path.glob("*.hpp"))}
    assert libraries - set(TABLES) == set()


def test_a_header_that_differs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "A.hpp").write_text(
        "namespace small {\nclass A {\n  int hidden;\npublic:\n  A() : hidden(0) {}\n  int get(int x = 3) const { return x; }\n"
        "  /// For the emulation's own use.\n  int mine();\n};\nnamespace detail { void helper(); }\n"
        "enum class E { ONE, TWO };\ntemplate <class T> void f(const T &a, T &&b);\nextern int n;\nconst int p{1}, q{2};\n}\n"
    )
    monkeypatch.setattr(declarations, "INCLUDE", tmp_path)
    monkeypatch.setattr(declarations, "API", tmp_path)
    declarations.write("small")
    assert declarations.differences("small") == []
    assert [(e.name, e.signature) for e in declarations.table("small")["small/A.hpp"]] == [
        ("small::A", "class A"),
        ("small::A::A", "A()"),
        ("small::A::get", "int get(int x = 3) const"),
        ("small::E", "enum class E"),
        ("small::E::ONE", "ONE"),
        ("small::E::TWO", "TWO"),
        ("small::f", "template<class T> void f(const T &a, T &&b)"),
        ("small::p", "const int p"),
        ("small::q", "const int q"),
    ]
    header = folder / "A.hpp"
    header.write_text(header.read_text().replace("x = 3", "x = 4"))
    assert declarations.differences("small") == [
        "small/A.hpp: not in the table: int get(int x = 4) const",
        "small/A.hpp: not declared: int get(int x = 3) const",
    ]
