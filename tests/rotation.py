"""Tests that take turns: of those marked `rotating`, one run of the whole suite takes an eighth, the next commit's the next.

What such tests share is a fault that would show in several of them: other sizes, other element types, other ops of one form. One
that takes many seconds and is about what seldom changes takes turns too. All tests of a file that a change touched run.
`--turn 2` takes those whose turn it is at the commits of that number, as `nox` does; without it, as in `nox -s fuzz`, all run.

Those that take longest say so, `rotating(seconds=30)`, and are dealt out first, so that no turn takes much longer than another.
The number tells how long a test takes beside others, on any machine; what takes less than 7 s goes without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar
from zlib import crc32

import pytest

TURNS = 8
"""How many runs it takes until each of them has run."""


class Marked(Protocol):
    """What of a collected test matters here."""

    nodeid: str
    path: Path

    def iter_markers(self, name: str) -> Iterable[pytest.Mark]: ...


_T = TypeVar("_T", bound=Marked)


def of_turn(items: Iterable[_T], turn: int, changed: Collection[Path] = ()) -> tuple[list[_T], list[_T]]:
    """Return the tests that run in a turn, in their order, and those that do not; those of `changed` files have no turn."""
    items = list(items)
    turns = dealt(_seconds(items))
    taken: list[_T] = []
    left: list[_T] = []
    for item in items:
        own = turns.get(_unit(item))
        (taken if own is None or own == turn % TURNS or item.path in changed else left).append(item)
    return taken, left


def dealt(seconds: dict[str, float]) -> dict[str, int]:
    """Return the turns of tests, and of files whose tests run together, from how long each takes; 0 where none says so.

    Those that say so go to the turn that has least of them, from the longest on; the others of a file one by one to the turns
    from the file's own on. So a test that is added moves those that are shorter, or the later ones of its file.
    """
    turns: dict[str, int] = {}
    loads = [0.0] * TURNS
    for unit in sorted((u for u, s in seconds.items() if s), key=lambda u: (-seconds[u], u)):
        turns[unit] = loads.index(min(loads))
        loads[turns[unit]] += seconds[unit]
    next_of: dict[str, int] = {}
    for unit in seconds:
        if unit not in turns:
            file = unit.partition("::")[0]
            turns[unit] = next_of.setdefault(file, crc32(file.encode()) % TURNS)
            next_of[file] = (turns[unit] + 1) % TURNS
    return turns


def _seconds(items: Iterable[Marked]) -> dict[str, float]:
    """Return how long the marked tests and files take that have a turn, as far as their marks tell, in their order."""
    found: dict[str, float] = {}
    for item in items:
        for marker in item.iter_markers("rotating"):
            found[_unit(item)] = max(found.get(_unit(item), 0), marker.kwargs.get("seconds", 0))
    return found


def _unit(item: Marked) -> str:
    """Return what has one turn: a test, or the file of those that are marked as a whole, which share what is built for it."""
    whole = any("file" in marker.args for marker in item.iter_markers("rotating"))
    return item.nodeid.partition("::")[0] if whole else item.nodeid


def asked(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """Return the values that a parameter has in the tests of this run that use a fixture, in their order, each once.

    So what tests share is made for those whose turn it is.
    """
    users = [i for i in request.session.items if i.path == request.path and request.fixturename in getattr(i, "fixturenames", ())]
    calls = [i.callspec.params for i in users if isinstance(i, pytest.Function) and hasattr(i, "callspec")]
    return list(dict.fromkeys(c[parameter] for c in calls if parameter in c))
