"""What several backends ask of one family: PopART, PopXL and PopRT share the most part of their files."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from opc import config
from opc.ir.op import Family

_R = TypeVar("_R")

_MOST_KEPT = 8
"""Families: the backends of one are asked one after the other."""


def of_family(compute: Callable[[Family], _R]) -> Callable[[Family], _R]:
    """Have a function of a family, and of the SDK to generate for, keep its latest answers.

    The family is found by identity: to compare two takes long.
    """
    kept: deque[tuple[Family, str, _R]] = deque(maxlen=_MOST_KEPT)

    @functools.wraps(compute)
    def ask(family: Family) -> _R:
        sdk = config.load().sdk
        # Other threads may add to it meanwhile.
        for known, version, answer in tuple(kept):
            if known is family and version == sdk:
                return answer
        answer = compute(family)
        kept.append((family, sdk, answer))
        return answer

    return ask
