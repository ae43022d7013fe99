"""What several backends ask of one family: PopART, PopXL and PopRT share the most part of their files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from opc import config
from opc.ir.node import cached_by_identity
from opc.ir.op import Family

_R = TypeVar("_R")


def of_family(compute: Callable[[Family], _R]) -> Callable[[Family], _R]:
    """Have a function of a family, and of the SDK to generate for, keep its latest answers."""

    @cached_by_identity()
    def answer(family: Family, _: str) -> _R:
        return compute(family)

    @functools.wraps(compute)
    def ask(family: Family) -> _R:
        return answer(family, config.load().sdk)

    return ask
