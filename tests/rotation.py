"""Tests that take turns: of those marked `rotating`, one run of the whole suite takes an eighth, the next commit's the next.

What such tests share is a fault that would show in several of them: other sizes, other element types, other ops of one form. One
that takes many seconds and is about what seldom changes takes turns too. All tests of a file that a change touched run.
`--turn 2` takes those whose turn it is at the commits of that number, as `nox` does; without it, as in `nox -s fuzz`, all run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

TURNS = 8
"""How many runs it takes until each of them has run."""


class Marked(Protocol):
    """What of a collected test matters here."""

    nodeid: str
    path: Path

    def get_closest_marker(self, name: str) -> object | None: ...


_T = TypeVar("_T", bound=Marked)


def of_turn(items: Iterable[_T], turn: int, changed: Collection[Path] = ()) -> tuple[list[_T], list[_T]]:
    """Return the tests that run in a turn, in their order, and those that do not.

    Marked tests are dealt out one by one; those of a file that is marked as a whole, which share what is built for it, together;
    those of `changed` files have no turn.
    """
    taken: list[_T] = []
    left: list[_T] = []
    groups: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("rotating")
        if marker is None:
            taken.append(item)
            continue
        whole = "file" in getattr(marker, "args", ())
        group = item.nodeid.partition("::")[0] if whole else item.nodeid
        number = groups.setdefault(group, len(groups))
        (taken if number % TURNS == turn % TURNS or item.path in changed else left).append(item)
    return taken, left


def asked(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """Return the values that a parameter has in the tests of this run that use a fixture, in their order, each once.

    So what tests share is made for those whose turn it is.
    """
    users = [i for i in request.session.items if i.path == request.path and request.fixturename in getattr(i, "fixturenames", ())]
    calls = [i.callspec.params for i in users if isinstance(i, pytest.Function) and hasattr(i, "callspec")]
    return list(dict.fromkeys(c[parameter] for c in calls if parameter in c))
