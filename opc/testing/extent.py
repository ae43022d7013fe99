"""How much of an op's proof is run: the whole, or a part that the quick tier has time for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

_T = TypeVar("_T")

EVERY_OP = ("numpy",)
"""The backends that every op is run on, at once or by turns; all others run the covering set or a part, and what changed."""

EVERY_CHOSEN = ("numpy", "torch")
"""Those that run the whole covering set."""


TURNS = 4
"""How many runs of the quick tier by turns it takes until each op has run that needs not run each time."""


class Extent(Enum):
    """The whole proof of an op, that of an op of the covering set, or that of any other op.

    All but `WHOLE` have few calls of each kind; `SAMPLE` has half as many as the others, and no checks of what a framework's own
    tools make of the op. `LOOPS` is that of an op of the covering set whose signature others have too: it has the checks of
    frameworks whose code is made of the body, and not of those that call the compiled kernel.
    """

    WHOLE = "whole"
    COVER = "cover"
    LOOPS = "loops"
    SAMPLE = "sample"

    @property
    def times(self) -> int | None:
        """How many times the calls of a sample are run, None for all there are."""
        return {Extent.WHOLE: None, Extent.COVER: 2, Extent.LOOPS: 2, Extent.SAMPLE: 1}[self]

    def checks(self, wraps: bool) -> bool:
        """Whether the checks of a framework are run; `wraps` says that its code calls the compiled kernel."""
        return self is not Extent.SAMPLE and not (self is Extent.LOOPS and wraps)

    @property
    def differentiates(self) -> bool:
        """Whether there are calls through a framework's autograd: what a sample is run on, NumPy and devices, has none."""
        return self is not Extent.SAMPLE

    def halves(self, backend: str, wraps: bool) -> bool:
        """Whether a backend runs half of the calls that are alike: its code calls the kernel, and `EVERY_OP` makes them all."""
        return self in (Extent.COVER, Extent.LOOPS) and wraps and backend not in EVERY_OP

    def limit(self, sample: int) -> int | None:
        """Return how many there are of what a sample has that many of; None for no limit."""
        return None if self.times is None else self.times * sample

    def most(self, every: int, part: int) -> int:
        """Return how many of `every` are run, of which a sample has one in `part`."""
        return every if self.times is None else min(every, every * self.times // part)


def waiting(things: Sequence[_T], turn: int | None) -> list[_T]:
    """Return those of `things` that do not run in a turn; none where `turn` is None. Neighbours have different turns."""
    return [] if turn is None else [thing for number, thing in enumerate(things) if (number - turn) % TURNS]


def alternating(things: Sequence[_T], turn: int | None) -> list[_T]:
    """Return every other one of `things`, those that do not run in a turn and run in the next; none where `turn` is None."""
    return [] if turn is None else [thing for number, thing in enumerate(things) if (number - turn) % 2]


__all__ = ["EVERY_CHOSEN", "EVERY_OP", "TURNS", "Extent", "alternating", "waiting"]
