"""The benchmark's times: fair turns, the right ratios, and as many rounds as tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from opc.testing.bench import timing as bench_timing
from opc.testing.bench import worker
from opc.testing.bench.benchmark import Goal
from opc.testing.bench.timing import Contender, Timing, time_in_turn
from opc.testing.bench.worker import quickest


def test_no_contender_always_follows_the_same_one() -> None:
    order: list[str] = []
    contenders = [Contender(name, lambda name=name: order.append(name)) for name in "abc"]
    timings = time_in_turn(contenders, rounds=20, warmups=0)
    rounds = ["".join(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert {"".join(sorted(r)) for r in rounds} == {"abc"}
    assert set(rounds) == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert [len(t.seconds) for t in timings] == [20, 20, 20]


def test_the_quickest_is_found_by_its_median() -> None:
    slow, quick, absent = Contender("slow", None), Contender("quick", None), Contender("absent", None)
    timings = [Timing(slow, (1.0, 9.0, 9.0)), Timing(absent, ()), Timing(quick, (5.0, 5.0, 5.0))]
    found = quickest(timings)
    assert found is not None
    assert found.contender is quick
    assert quickest([Timing(absent, ())]) is None


def test_the_verdict_knows_noise() -> None:
    assert Goal("x", 1.0, 1.0).verdict == "held"
    assert Goal("x", 1.02, 1.0, low=0.99).verdict == "held within noise"
    assert Goal("x", 1.02, 1.0, low=1.01).verdict == "missed"
    assert Goal("x", 1.02, 1.0).verdict == "missed"


def test_calls_of_a_round_are_averaged() -> None:
    count = 0

    def run() -> None:
        nonlocal count
        count += 1

    (timing,) = time_in_turn([Contender("a", run)], rounds=3, calls=10, warmups=2)
    assert count == 3 * 10 + 2
    assert len(timing.seconds) == 3


def test_a_contender_that_fails_says_why() -> None:
    def broken() -> None:
        raise ValueError("no such op\nand more")

    fine, failed = time_in_turn([Contender("a", lambda: None), Contender("b", broken)], rounds=3)
    assert fine.median is not None
    assert (failed.median, failed.contender.note) == (None, "ValueError: no such op")
    assert fine.ratio(failed) is None


def test_a_hopeless_contender_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(float(i) for i in range(10_000))
    calls = {"quick": 0, "slow": 0}

    def run(name: str, seconds: int) -> None:
        calls[name] += 1
        for _ in range(seconds):
            next(clock)

    monkeypatch.setattr(bench_timing, "perf_counter", lambda: next(clock))
    quick = Contender("quick", lambda: run("quick", 0))
    slow = Contender("slow", lambda: run("slow", 500))
    timings = time_in_turn([quick, slow], rounds=5, warmups=3)
    assert calls == {"quick": 3 - 1 + 5, "slow": 2} or calls["slow"] == 2
    assert timings[1].seconds == (501.0,)
    assert timings[0].ratio(timings[1]) == pytest.approx(1 / 501)


def test_ratios_are_taken_round_by_round() -> None:
    # A machine that halves its speed midway changes both, and no ratio.
    ours = Timing(Contender("opc", None), (1.0, 1.0, 2.0, 2.0))
    theirs = Timing(Contender("peer", None), (2.0, 2.0, 4.0, 4.0))
    assert ours.ratio(theirs) == 0.5


def test_quick_calls_are_timed_several_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_timing, "SHORTEST", 10.0)
    clock = iter(float(i) for i in range(10_000))
    monkeypatch.setattr(bench_timing, "perf_counter", lambda: next(clock))
    calls = {"a": 0, "b": 0}

    def run(name: str) -> None:
        calls[name] += 1

    time_in_turn([Contender(n, partial(run, n)) for n in calls], rounds=3, warmups=2)
    assert calls == {"a": 2 + 3 * 10, "b": 2 + 3 * 10}, "one took a second of the ten"


def test_calls_timed_alone_begin_alike() -> None:
    order: list[str] = []
    contenders = [Contender(n, partial(order.append, n)) for n in "ab"]
    time_in_turn(contenders, rounds=3, calls=1, warmups=0, before=lambda: order.append("before"))
    calls = [tuple(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert sorted(calls) == [("a", "before", "a")] * 3 + [("b", "before", "b")] * 3


def test_several_calls_at_a_time_find_what_the_ones_before_left() -> None:
    order: list[str] = []
    time_in_turn([Contender("a", partial(order.append, "a"))], 3, calls=5, warmups=0, before=lambda: order.append("before"))
    assert order == ["a"] * 15


def test_rounds_are_added_until_the_times_are_enough() -> None:
    asked: list[int] = []

    def enough(timings: Sequence[Timing]) -> bool:
        asked.append(len(timings[0].seconds))
        return asked[-1] >= 12

    (timing,) = time_in_turn([Contender("a", lambda: None)], rounds=4, enough=enough)
    assert asked == [4, 8, 12]
    assert len(timing.seconds) == 12


def test_no_rounds_are_added_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_timing, "LONGEST", 0.0)
    (timing,) = time_in_turn([Contender("a", lambda: None)], rounds=4, enough=lambda _: False)
    assert len(timing.seconds) == 4


@pytest.mark.parametrize(("rounds", "interval", "low"), [(5, (1.0, 5.0), 2.0), (15, (4.0, 12.0), 4.0), (100, (41.0, 60.0), 41.0)])
def test_the_interval_of_a_median(rounds: int, interval: tuple[float, float], low: float) -> None:
    ours = Timing(Contender("opc", None), tuple(float(n + 1) for n in range(rounds)))
    theirs = Timing(Contender("peer", None), (1.0,) * rounds)
    assert ours.interval(theirs) == interval
    assert ours.low_ratio(theirs) == low, "no less than the lower quartile"


@pytest.mark.parametrize(("limit", "tells"), [(0.5, True), (2.0, False), (2.5, False), (3.0, True), (None, True)])
def test_rounds_tell_once_the_limit_is_outside_of_the_interval(limit: float | None, tells: bool) -> None:
    ours = Timing(Contender("opc numpy", None), (2.0, 2.0, 3.0, 2.0, 2.5, 2.0))
    slow = Timing(Contender("opc torch", None), (9.0,) * 6)
    theirs = Timing(Contender("torch", None), (1.0,) * 6)
    assert worker.decided([slow, ours, theirs], limit) == tells
