"""Specs in which something was wrong once, on the emulation of a GPU: those that were wrong there, with `OPC_FUZZ` all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opc.backends.cuda.session import CudaSession
from opc.backends.cuda.toolkit import EMULATED, VARIABLE
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case, Maker
from tests.amounts import MANY
from tests.fuzz.calls import parents
from tests.fuzz.classes import CONDITIONS, PRODUCTS, SUMS, TURNED
from tests.fuzz.device import compile_together, wrong_in
from tests.fuzz.isolated import isolated
from tests.fuzz.proof import table_calls
from tests.fuzz.test_classes import CALLS, EVERY, calls_of, compiled, drawn, family, one_of
from tests.fuzz.test_written import cases
from tests.fuzz.written import THEMES, specs

FOUND = (
    "factors_of_what_is_broadcast",
    "groups_of_other_sizes",
    "of_a_group",
    "places_in_an_own_group",
    "places_where_they_are_asked_for",
    "running_sums_of_what_is_ordered",
)
"""Those of `EVERY` that had no kernels for a GPU, or wrong ones."""

TOGETHER = 10
"""The kernels of so many are compiled as one library."""


def calls_of_sizes(one: Family) -> Iterator[tuple[Op, Case]]:
    """Yield calls of each op of a family: of all sizes, of each attribute's values, some without some of the operands."""
    above = parents(one)
    for place, op in enumerate(one.ops):
        made = drawn(place)
        yield from (c for turn, c in enumerate(calls_of(op, Maker(op, above.get(id(op)), 2_000))) if made(turn))


def calls_of_themes(one: Family) -> Iterator[tuple[Op, Case]]:
    """Yield calls of each op of a family, at the sizes that choose between ways to run it."""
    above = parents(one)
    for op in one.ops:
        yield from ((op, case) for case in cases(op, above.get(id(op))))


def hold(families: list[Family], made: Callable[[Family], Iterator[tuple[Op, Case]]], folder: Path) -> None:
    """Hold the kernels of some ops to the oracle; each op in a process of its own, which a crash or a hang ends."""
    found = []
    for begin in range(0, len(families), TOGETHER):
        (place := folder / f"{begin}").mkdir()
        together = families[begin : begin + TOGETHER]
        compile_together(together, place)
        for one in together:

            def run(one: Family = one, place: Path = place) -> list[str]:
                os.environ[VARIABLE] = EMULATED
                return list(wrong_in(CudaSession(one, place / one.name), made(one)))

            found += [f"{one.name}: {message}" for message in isolated(run, 600)]
    assert not found, "\n".join(found[:5])


@pytest.mark.rotating
def test_every_form(tmp_path: Path) -> None:
    hold([one_of(name) for name in (EVERY if MANY else FOUND)], calls_of_sizes, tmp_path)


def test_axes_of_less_than_nothing(tmp_path: Path) -> None:
    """The product of two such sizes is a number of points, for which there is no memory."""

    def every_call(one: Family) -> Iterator[tuple[Op, Case]]:
        above = parents(one)
        for op in one.ops:
            yield from calls_of(op, Maker(op, above.get(id(op)), 2_000))

    name = "looked_up_in_less_than_nothing"
    hold([family(name, *EVERY[name])], every_call, tmp_path)


if MANY:

    @pytest.mark.parametrize("texts", [CONDITIONS, PRODUCTS, SUMS, TURNED], ids=["conditions", "products", "sums", "turned"])
    def test_specs(texts: dict[str, tuple[str, str]], tmp_path: Path) -> None:
        hold([compiled(family(name, *text)) for name, text in texts.items()], lambda one: table_calls(one, CALLS), tmp_path)


@pytest.mark.rotating
@pytest.mark.parametrize("theme", THEMES if MANY else ["recurrence"])
def test_themes(theme: str, tmp_path: Path) -> None:
    hold([compile_text(text, theme) for text in specs(theme, THEMES[theme])], calls_of_themes, tmp_path)
