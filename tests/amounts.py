"""How much of what is drawn at random the tests draw, and at how many points they hold something."""

import os
from collections.abc import Iterable
from itertools import product
from typing import Any

MANY = bool(os.environ.get("OPC_FUZZ"))
"""Whether as much is drawn as `nox -s fuzz` draws."""


def examples(few: int, many: int) -> int:
    """Return a number of examples: few of the tests, many of `nox -s fuzz`. Other runs draw others."""
    return many if MANY else few


def alternately(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of one of each of three choices or more: all for `nox -s fuzz`, else every other one.

    Those are left whose places have an even sum, so that any two of different choices still come together.
    """
    numbered = product(*(enumerate(choice) for choice in choices))
    return [tuple(value for _, value in one) for one in numbered if MANY or sum(place for place, _ in one) % 2 == 0]
