"""Schedules: the transformations that the loops of a stage go through, as data.

The heuristics of a target ask for each transformation that would be right whether it is to be done (`Decisions.take`); what was
done is the schedule, which `opc show --loops` prints. For an experiment the answers are overridden by name: `-interleave`,
`batch(4)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from fnmatch import fnmatchcase

from opc.records import dataclass

NAMES = (
    "fuse",
    "group",
    "gather",
    "vectorise",
    "peel",
    "nontemporal",
    "segments",
    "convert",
    "interleave",
    "prefetch",
    "batch",
    "scatter",
    "scan",
    "sort",
    "split",
    "tile",
    "products",
    "channels",
    "version",
)
"""Every transformation, in the order in which they are done."""


class ScheduleError(Exception):
    """An override that names no transformation or no stage, or that would be incorrect; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Transformation:
    """One transformation with its arguments: `batch(3)`."""

    name: str
    args: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.args)})" if self.args else self.name


@dataclass(frozen=True, slots=True)
class Schedule:
    """The transformations of one stage, in order."""

    steps: tuple[Transformation, ...] = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps)) or "plain loops"

    def __contains__(self, name: str) -> bool:
        return any(t.name == name for t in self.steps)

    def args(self, name: str) -> tuple[str, ...]:
        """Return the arguments of a transformation, none of one that is not done."""
        for t in self.steps:
            if t.name == name:
                return t.args
        return ()


@dataclass(frozen=True, slots=True)
class Override:
    """What is done otherwise in the stages whose names match a pattern: a transformation is left out, or done with arguments."""

    stages: str
    change: Transformation
    left_out: bool

    def matches(self, stage: str, name: str) -> bool:
        """Whether this says something of a transformation of a stage."""
        return self.change.name == name and fnmatchcase(stage, self.stages)


def overrides(texts: Iterable[str]) -> tuple[Override, ...]:
    """Return what `STAGE: -interleave, batch(4)` says, for each text.

    Raises:
        ScheduleError: when a text is not of that form or names no transformation.
    """
    return tuple(o for text in texts for o in _overrides(text))


def _overrides(text: str) -> Iterator[Override]:
    stages, colon, rest = text.rpartition(":")
    for part in re.findall(r"[^,(]+(?:\([^)]*\))?", rest):
        found = re.fullmatch(r"\s*(-?)\s*([a-z]+)\s*(?:\(([^)]*)\))?\s*", part)
        if found is None:
            raise ScheduleError(f"{part.strip()!r} is not of the form name, -name or name(argument)")
        minus, name, args = found.groups()
        if name not in NAMES:
            raise ScheduleError(f"there is no transformation {name!r}; there are {', '.join(NAMES)}")
        given = tuple(a.strip() for a in (args or "").split(",") if a.strip())
        yield Override(stages.strip() if colon else "*", Transformation(name, given), minus == "-")


@dataclass(slots=True)
class Decisions:
    """The decisions of one stage as they are taken."""

    stage: str
    overrides: tuple[Override, ...] = ()
    taken: dict[Transformation, None] = field(default_factory=dict)

    def take(self, name: str, *args: str, worth: bool = True) -> bool:
        """Whether a transformation that would be right is to be done: where it is `worth` it, unless that is overridden."""
        args = self.arguments(name, args)
        for o in self.overrides:
            if o.matches(self.stage, name):
                worth = not o.left_out
        if worth:
            self.taken[Transformation(name, args)] = None
        return worth

    def arguments(self, name: str, args: tuple[str, ...]) -> tuple[str, ...]:
        """Return the arguments of a transformation: those of an override, where one has some."""
        for o in self.overrides:
            if o.matches(self.stage, name) and o.change.args:
                args = o.change.args
        return args

    @property
    def schedule(self) -> Schedule:
        """What was decided, in the order in which it is done."""
        return Schedule(tuple(sorted(self.taken, key=lambda t: NAMES.index(t.name))))


_ACTIVE: ContextVar[tuple[Override, ...]] = ContextVar("overrides", default=())


def active() -> tuple[Override, ...]:
    """Return the overrides that are in force."""
    return _ACTIVE.get()


@contextmanager
def overridden(found: tuple[Override, ...]) -> Iterator[None]:
    """Lower with overrides."""
    before = _ACTIVE.set(found)
    try:
        yield
    finally:
        _ACTIVE.reset(before)
