"""Which tests run when: each rotating one in one of the turns, and in no other."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rotation import TURNS, asked, dealt, of_turn


@dataclass(eq=False)
class Item:
    nodeid: str
    markers: tuple[pytest.Mark, ...] = ()

    @property
    def path(self) -> Path:
        return Path(self.nodeid.partition("::")[0])

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (m for m in self.markers if m.name == name)


def rotating(*args: str, seconds: float = 0) -> pytest.Mark:
    return pytest.mark.rotating(*args, seconds=seconds).mark


ALWAYS = [Item("tests/a.py::test_a"), Item("tests/b.py::test_b", (pytest.mark.usefixtures.mark,))]
ALONE = [Item(f"tests/b.py::test_c[{n}]", (pytest.mark.rotating.mark,)) for n in range(10)]
TOGETHER = [Item(f"tests/{file}.py::test_{n}", (rotating("file"),)) for file in "cdefg" for n in range(3)]
LONG = [
    Item(f"tests/h.py::test_{s}", (pytest.mark.rotating.mark, rotating(seconds=s))) for s in (7, 40, 9, 30, 6, 12, 8, 11, 10, 5)
]
ITEMS = [ALWAYS[0], *ALONE, ALWAYS[1], *TOGETHER, *LONG]


def test_each_runs_in_one_turn_and_those_of_a_file_in_the_same() -> None:
    turns = [of_turn(ITEMS, turn) for turn in range(TURNS)]
    for taken, left in turns:
        assert sorted([*taken, *left], key=ITEMS.index) == ITEMS
        assert [item for item in ITEMS if item in taken] == taken
        assert set(ALWAYS) <= set(taken)
    for item in [*ALONE, *TOGETHER, *LONG]:
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


def test_the_longest_are_alone_in_their_turns() -> None:
    times = [[int(item.nodeid.rpartition("_")[2]) for item in of_turn(LONG, turn)[0]] for turn in range(TURNS)]
    assert sorted(map(sum, times)) == [9, 10, 11, 12, 13, 13, 30, 40]
    assert [40] in times
    assert [30] in times


def test_a_file_takes_as_long_as_one_of_its_marks_says() -> None:
    long = Item("tests/c.py::test_3", (rotating("file"), rotating("file", seconds=50)))
    for turn in range(TURNS):
        names = {item.path.stem for item in of_turn([*TOGETHER, *LONG, long], turn)[0] if item.path.stem in "ch"}
        assert names in ({"c"}, {"h"})


def test_few_move_when_a_test_is_added() -> None:
    before = {**{f"tests/{file}.py::test_{n}": 0.0 for file in "abc" for n in range(20)}, "tests/b.py": 0.0}
    before |= {f"tests/d.py::test_{n}": 10.0 + n for n in range(12)}
    added = {"tests/a.py::test_new": 0.0, "tests/d.py::test_new": 14.5}
    after = dealt({**added, **before})
    moved = {unit for unit, turn in dealt(before).items() if after[unit] != turn}
    assert moved == {f"tests/a.py::test_{n}" for n in range(20)} | {u for u in moved if before[u] and before[u] < 14.5}


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
