"""What several backends ask of one family: PopART, PopXL and PopRT share the most part of their files."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from opc.ir.op import Family

_R = TypeVar("_R")

_MOST_KEPT = 8
"""Families: the backends of one are asked one after the other."""


def of_family(compute: Callable[[Family], _R]) -> Callable[[Family], _R]:
    """Have a function of a family keep its latest answers, found by identity: to compare two families takes long."""
    kept: deque[tuple[Family, _R]] = deque(maxlen=_MOST_KEPT)

    @functools.wraps(compute)
    def ask(family: Family) -> _R:
        # Other threads may add to it meanwhile.
        for known, answer in tuple(kept):
            if known is family:
                return answer
        answer = compute(family)
        kept.append((family, answer))
        return answer

    return ask
