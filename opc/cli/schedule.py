"""The option --schedule: what the loops of stages go through otherwise than opc would have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from opc.cli.console import WrongUse

if TYPE_CHECKING:
    from opc.compiler import Compiled
    from opc.loops.schedule import Override

Schedules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--schedule", help="What the loops go through otherwise, as 'STAGE: -interleave, batch(4)'; may be repeated."),
]


@contextmanager
def rescheduled(texts: Sequence[str]) -> Iterator[tuple[Override, ...]]:
    """Lower with what --schedule says.

    Raises:
        WrongUse: when a text has another form, or names no transformation.
    """
    from opc.loops.schedule import ScheduleError, overridden, overrides

    try:
        found = overrides(texts)
    except ScheduleError as error:
        raise WrongUse(f"--schedule: {error}") from None
    with overridden(found):
        yield found


def stage_names(compiled: Compiled) -> Iterator[str]:
    """Yield the names of the programs of a spec's kernels, and of their stages."""
    yield from (v.program.name for variants in compiled.programs.values() for v in variants)
    yield from (s.name for variants in compiled.programs.values() for v in variants for s in v.program.stages)


def check_stages(changes: Sequence[Override], stages: Iterable[str]) -> None:
    """Raise WrongUse for a change of a schedule that no stage is called by."""
    names = tuple(dict.fromkeys(stages))
    for change in changes:
        if not any(fnmatchcase(name, change.stages) for name in names):
            raise WrongUse(f"--schedule: no stage is called '{change.stages}'; there are {', '.join(names)}")
