"""Which tests run when: each rotating one in one of the turns, and in no other."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rotation import TURNS, asked, of_turn


@dataclass(eq=False)
class Item:
    nodeid: str
    marker: pytest.Mark | None = None

    @property
    def path(self) -> Path:
        return Path(self.nodeid.partition("::")[0])

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marker if self.marker is not None and self.marker.name == name else None


ALWAYS = [Item("tests/a.py::test_a"), Item("tests/b.py::test_b", pytest.mark.usefixtures.mark)]
ALONE = [Item(f"tests/b.py::test_c[{n}]", pytest.mark.rotating.mark) for n in range(10)]
TOGETHER = [Item(f"tests/{file}.py::test_{n}", pytest.mark.rotating("file").mark) for file in "cdefg" for n in range(3)]
ITEMS = [ALWAYS[0], *ALONE, ALWAYS[1], *TOGETHER]


def test_each_runs_in_one_turn_and_those_of_a_file_in_the_same() -> None:
    turns = [of_turn(ITEMS, turn) for turn in range(TURNS)]
    for taken, left in turns:
        assert sorted([*taken, *left], key=ITEMS.index) == ITEMS
        assert [item for item in ITEMS if item in taken] == taken
        assert set(ALWAYS) <= set(taken)
    for item in [*ALONE, *TOGETHER]:
        assert sum(item in taken for taken, _ in turns) == 1
    for file in "cdefg":
        parts = [{item in taken for item in TOGETHER if item.nodeid.startswith(f"tests/{file}.py")} for taken, _ in turns]
        assert all(len(part) == 1 for part in parts)


def test_all_of_a_changed_file_run_in_each_turn() -> None:
    changed = {Path("tests/b.py"), Path("tests/d.py")}
    for turn in range(TURNS):
        plain, taken = of_turn(ITEMS, turn)[0], of_turn(ITEMS, turn, changed)[0]
        assert taken == [item for item in ITEMS if item in plain or item.path in changed]


def test_turns_begin_again() -> None:
    assert of_turn(ITEMS, 1) == of_turn(ITEMS, 1 + TURNS)
    assert of_turn(ITEMS, 1) != of_turn(ITEMS, 2)


def test_turns_have_as_many_tests() -> None:
    counts = [len(of_turn(ALONE, turn)[0]) for turn in range(TURNS)]
    assert max(counts) - min(counts) <= 1


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest) -> list[int]:
    return asked(request, "number")


@pytest.mark.parametrize("number", [3, 1, 2])
@pytest.mark.parametrize("other", [4, 5])
def test_what_is_shared_is_made_for_the_tests_that_run(shared: list[int], number: int, other: int) -> None:
    assert number in shared
    assert shared == [n for n in (3, 1, 2) if n in shared]


@pytest.mark.parametrize("number", [7])
def test_what_is_shared_is_made_for_no_test_that_does_not_use_it(request: pytest.FixtureRequest, number: int) -> None:
    assert number not in request.getfixturevalue("shared")
