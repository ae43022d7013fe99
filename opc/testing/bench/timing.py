"""Timing contenders in turn."""

from __future__ import annotations

import gc
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

SLOW = 50.0
"""How many times slower than the quickest a contender may be to be timed more than once."""

PATIENCE = 1.0
"""Seconds of a call, not the first one, after which no more calls warm up."""

SHORTEST = 1e-4
"""Seconds that a timing takes at least: a call of some microseconds would mostly measure what the call before left in the
caches."""

LONGEST = 2.0
"""Seconds of rounds after which no more are added to find which is quicker."""

CONFIDENCE = 1.96
"""Standard deviations on either side of the middle: nineteen in twenty intervals of medians hold the true one."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to be timed: `run` makes one call; None when it can't run here, and `note` then says why.

    `outputs` are the arrays or tensors that a call writes to; empty when it makes new ones, which it returns.
    """

    name: str
    run: Callable[[], object] | None
    note: str = ""
    outputs: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one contender's call, round by round; empty when it did not run."""

    contender: Contender
    seconds: tuple[float, ...]

    @property
    def median(self) -> float | None:
        """The median time of a call."""
        return statistics.median(self.seconds) if self.seconds else None

    def of_each(self, calls: int) -> Timing:
        """Return the times of one of the calls that each timed call makes."""
        return replace(self, seconds=tuple(s / calls for s in self.seconds))

    def ratios(self, other: Timing) -> tuple[float, ...]:
        """Return this time over the other's in each round, of medians where the rounds differ; empty when one did not run."""
        if not self.seconds or not other.seconds:
            return ()
        if len(self.seconds) != len(other.seconds):
            return (statistics.median(self.seconds) / statistics.median(other.seconds),)
        return tuple(a / b for a, b in zip(self.seconds, other.seconds, strict=True))

    def ratio(self, other: Timing) -> float | None:
        """Return the median over rounds of this time over the other's, None when one of them did not run."""
        ratios = self.ratios(other)
        return statistics.median(ratios) if ratios else None

    def excess(self, other: Timing) -> float | None:
        """Return the median over rounds of the seconds by which this is longer than the other, None when one did not run."""
        if not self.seconds or not other.seconds:
            return None
        return statistics.median(a - b for a, b in zip(self.seconds, other.seconds, strict=False))

    def interval(self, other: Timing) -> tuple[float, float] | None:
        """Return the confidence interval of the median over rounds of this time over the other's, None when one did not run.

        It assumes nothing about the distribution of times: a round is below the median with probability one half.
        """
        ratios = sorted(self.ratios(other))
        if not ratios:
            return None
        outside = _outside(len(ratios))
        return ratios[outside], ratios[-1 - outside]

    def low_ratio(self, other: Timing) -> float | None:
        """Return a lower bound of the ratio of this time to the other's, None when one did not run.

        That is the lower end of the interval of the median, but no less than the lower quartile.
        """
        ratios = sorted(self.ratios(other))
        return ratios[max(_outside(len(ratios)), (len(ratios) - 1) // 4)] if ratios else None


def _outside(count: int) -> int:
    """Return how many of `count` sorted values lie outside the confidence interval of their median on each side."""
    return max(0, math.floor((count - CONFIDENCE * math.sqrt(count)) / 2))


def time_in_turn(
    contenders: Sequence[Contender],
    rounds: int,
    calls: int | None = None,
    warmups: int = 3,
    enough: Callable[[Sequence[Timing]], bool] = lambda _: True,
    before: Callable[[], object] | None = None,
    clock: Callable[[], float] | None = None,
) -> list[Timing]:
    """Time `rounds` rounds of `calls` calls of each contender, each round in an order of its own.

    Without `calls`, there are as many as take the quickest contender `SHORTEST`.

    The order is random, but the same in every run of the benchmark: who comes before a contender leaves sleeping threads and
    pages looked up behind, and no contender should always inherit the same one's. Where calls are timed one at a time, the
    contender is called once more ahead of each, and then `before`; of several, all but the first find what the ones before left.

    `clock` measures seconds of calls, by default wall-clock time.

    A contender that fails in its warm-up does not run; its timing is empty and says why. One that takes over `SLOW` times the
    quickest's time is not timed again. As long as the times are not `enough`, as many rounds again follow, for `LONGEST` at most.
    """
    ready: list[Contender] = []
    first: list[float] = []
    for contender in contenders:
        first.append(math.inf)
        try:
            if contender.run is not None:
                for k in range(warmups):
                    first[-1] = min(first[-1], _time(contender.run, 1, clock))
                    # A first call may compile something; only from the second on is it this slow by nature.
                    if k > 0 and first[-1] > PATIENCE:
                        break
        # A peer may refuse an op or a machine in any way it likes; that is its row, not the end of the benchmark.
        except Exception as error:
            ready.append(Contender(contender.name, None, f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"))
        else:
            ready.append(contender)
    if calls is None:
        quickest = min(first)
        calls = max(1, math.ceil(SHORTEST / quickest)) if math.isfinite(quickest) and quickest > 0 else 1
    slow = [math.isfinite(t) and t > SLOW * min(first) for t in first]
    times: list[list[float]] = [[t] if is_slow else [] for t, is_slow in zip(first, slow, strict=True)]
    collecting = gc.isenabled()
    gc.disable()
    number, start = 0, perf_counter()
    try:
        while True:
            for i in random.Random(number).sample(range(len(ready)), len(ready)):
                run = ready[i].run
                if run is not None and not slow[i]:
                    if calls == 1 and before is not None:
                        run()  # Its code is in the caches then, whoever was timed before.
                        before()
                    times[i].append(_time(run, calls, clock))
            number += 1
            if number % rounds == 0:
                timings = [Timing(contender, tuple(t)) for contender, t in zip(ready, times, strict=True)]
                if perf_counter() - start > LONGEST or enough(timings):
                    return timings
    finally:
        if collecting:
            gc.enable()


def _time(run: Callable[[], object], calls: int, clock: Callable[[], float] | None = None) -> float:
    repeat, clock = range(calls), clock or perf_counter
    start = clock()
    for _ in repeat:
        run()
    return (clock() - start) / calls
