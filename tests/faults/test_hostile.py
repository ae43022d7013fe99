"""Hostile specs, folders and projects: a part of those of `nox -s faults`, and that what gets out would be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import hostile, projects
from tests.faults.folders import FOLDERS
from tests.faults.skeletons import skeleton
from tests.faults.words import CANARY, FILES, NAMES, WORDS

HARM = {
    "a.py": ('"""Words."""\nx = "words"\n', f'"""Words."""\nimport {CANARY}\nx = "words"\n'),
    "a.cpp": ('/* words */ f("words");', '/* words */ int x; /**/ f("words");'),
    "b.cpp": ("// words\nint x;", "// words \\\nint x;"),
    "c.c": ("// words\nint x;", "// words ??/\nint x;"),
    "d.c": ('f("words");', 'f("wo"); g("rds");'),
    "a.json": ('{"a": "words"}', '{"a": "words", "b": "words"}'),
    "a.toml": ('a = "words"', 'a = "words"\n[b]'),
    "a.yml": ("a: words", "a: words\nb: 1"),
    "a.html": ("<p>words</p>", "<p>words<script>x</script></p>"),
    "a.md": ("# words", "# words\n\n<b>x</b>"),
    "CMakeLists.txt": ('set(x "words")', 'set(x "words")\nset(y z)'),
    "exports.map": ("/* words */ {global: f;};", "/* words */ {global: g;};"),
    "Makefile": ("# words\nall: x", f"# words\n\ttouch {CANARY}\nall: x"),
    "a.sh": ("run 'words'", "run words"),
}
"""Files with words in them, and with words that got out."""


@pytest.mark.parametrize("path", HARM)
def test_words_that_get_out_are_seen(path: str) -> None:
    good, bad = HARM[path]
    assert skeleton(path, good) == skeleton(path, good.replace("words", "other words"))
    assert skeleton(path, good) != skeleton(path, bad)


def test_a_crossed_fence_is_seen() -> None:
    with hostile.fenced() as fence:
        assert fence.crossed() == []
        fence.victim.write_text("another's")
        (fence.elsewhere / "new").write_text("")
        (fence.work / CANARY).write_text("")
        assert len(fence.crossed()) == 3


def test_words_stay_words_in_every_file_of_a_package() -> None:
    assert hostile.words(projects.EVERYTHING) == ("the same code", [])


def test_the_name_of_a_file_stays_a_name_in_every_file_of_a_package() -> None:
    assert hostile.file_name(FILES[2]) == ("the same code", [])


@pytest.mark.rotating
@pytest.mark.parametrize("name", FILES[1::2])
def test_the_name_of_a_file_stays_a_name(name: str) -> None:
    assert hostile.file_name(name, backends=("numpy", "torch")) == ("the same code", [])


@pytest.mark.parametrize("key", hostile.NAMED)
@pytest.mark.rotating
def test_names_of_all_kinds(key: str) -> None:
    for name in NAMES[::4]:
        assert hostile.naming(key, name)[1] == []


def test_files_that_make_readers_explode() -> None:
    assert {name: found for name, data in hostile.BOMBS.items() if (found := hostile.reading(data))[1]} == {}
    assert hostile.reading(hostile.BOMBS["billion laughs"])[0] == "refused"


@pytest.mark.rotating
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_lead_elsewhere(name: str) -> None:
    assert hostile.links(name)[1] == []


@pytest.mark.rotating
@pytest.mark.parametrize("name", projects.TABLES)
def test_settings_run_nothing(name: str) -> None:
    assert projects.project(projects.TABLES[name])[1] == []


@pytest.mark.rotating
@pytest.mark.parametrize("make", [projects.site, projects.distribution])
def test_words_stay_words_on_a_site_and_in_a_distribution(make: object) -> None:
    assert callable(make)
    assert make(projects.EVERYTHING)[1] == []


@pytest.mark.parametrize("name", FILES)
def test_archives_hold_specs_under_plain_names(name: str) -> None:
    assert projects.archived(name)[1] == []


@pytest.mark.parametrize("name", WORDS)
def test_words_stay_words_where_an_editor_shows_them(name: str) -> None:
    assert projects.hovered(WORDS[name])[1] == []


@pytest.mark.rotating
def test_an_op_with_such_words_runs() -> None:
    assert projects.runs(projects.EVERYTHING) == ("right", [])


def test_what_is_kept_can_be_looked_at_again(tmp_path: Path) -> None:
    tally = hostile.run("YAML: tag")
    tally.keep(tmp_path)
    assert (tmp_path / "hostile.json").exists()
    assert tally.faults == []
