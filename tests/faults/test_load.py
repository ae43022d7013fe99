"""A slice of kills, threads and large tensors, and that each would see what it looks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.faults import big, kills, threads


@pytest.mark.rotating
@pytest.mark.parametrize("first", range(0, len(kills.BLOWS), 5))
def test_a_build_after_each_blow_is_right(first: int) -> None:
    tally = kills.run(5, "tests", first=first)
    assert tally.faults == []
    assert tally.counts["all"] == 5


@pytest.mark.rotating
def test_what_a_blow_leaves_is_seen() -> None:
    with kills.prepared(None) as place:
        factor = kills.FACTORS[0]
        assert kills.wrong(place, factor) == []
        place.whole[factor] = kills.files_of(place.out)
        (place.out / "scaled/numpy/.unfinished").write_text("half")
        assert kills.wrong(place, factor) == ["left behind: scaled/numpy/.unfinished"]


@pytest.mark.rotating
def test_threads_and_forked_workers() -> None:
    tally = threads.run(1, threads=8)
    assert tally.faults == []
    assert tally.counts["calls"] >= 8


def test_a_wrong_result_of_a_thread_is_seen() -> None:
    answers = iter([b"right", b"wrong", b"right"])
    calls = iter([False, False, True])

    def op(x: object) -> object:  # it goes wrong once
        return type("Bytes", (), {"tobytes": lambda self: next(answers)})()

    assert threads.calls(op, 0, b"right", lambda: next(calls)) == (3, 1)


@pytest.mark.rotating
def test_the_cases_of_large_tensors_on_small_ones() -> None:
    tally = big.run(("numpy",), count=10_007)
    assert tally.faults == []
    assert [name for name in tally.counts if "no memory" in name] == []


@pytest.mark.parametrize("name", big.CASES)
def test_a_last_element_that_is_wrong_is_seen(name: str) -> None:
    def spoilt(*arrays: np.ndarray) -> np.ndarray:
        """The op, but for elements that a 16-bit counter would not reach."""
        x = arrays[0].copy()
        x.reshape(-1)[-1] = 0
        match name:
            case "point":
                return x + 1
            case "row":
                return x - x.min(axis=1, keepdims=True)
            case "gather":
                return x[arrays[1]]
            case _:
                return x.max()

    assert big.CASES[name](spoilt, 70_001) != []


def test_a_page_gets_what_was_counted(tmp_path: Path) -> None:
    from tests.faults.tally import BEGIN, END, Tally, write_page

    tally = Tally("big", measured={"elements": "7"})
    tally.keep(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, tmp_path, ["big", "none"])
    assert page.read_text() == (
        f"before\n{BEGIN}\n| part | what | count |\n|---|---|---|\n| big | elements | 7 |\n| big | faults | 0 |\n{END}\nafter\n"
    )
