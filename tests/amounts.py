"""How much of what is drawn at random the tests draw, and at how many points they hold something."""

import os

MANY = bool(os.environ.get("OPC_FUZZ"))
"""Whether as much is drawn as `nox -s fuzz` draws."""


def examples(few: int, many: int) -> int:
    """Return a number of examples: few of the tests, many of `nox -s fuzz`. Other runs draw others."""
    return many if MANY else few
