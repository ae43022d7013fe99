"""What a spec of several ranks or counts has one of for each axis or operand, by name, and its texts cut into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise

from opc.records import dataclass
from opc.spec.text import STRING

_TOKEN = re.compile(rf"{STRING}|#[^\n]*|\.\s*[A-Za-z]\w*|[A-Za-z_]\w*|\.?\d[\w.]*|\*\*|\S")
_WORD = re.compile(rf"{STRING}|#[^\n]*|(?<![\w.])([A-Za-z]\w*)")


@dataclass(frozen=True, slots=True)
class Copies:
    """The names that stand for something else in each copy of what is written for each axis of a group, or each operand."""

    number: int
    """How many copies there are: the rank, or the count."""
    groups: tuple[str, ...] = ()
    """The groups that have so many axes."""
    packs: frozenset[str] = frozenset()
    """The operands and dimensions of which there are so many."""
    owner: str = ""
    """The group or the operand whose numbers `ranks` or `counts` list."""
    lists: frozenset[str] = frozenset()
    """The attributes that are lists of so many elements."""
    temporaries: frozenset[str] = frozenset()
    """The temporaries of a body of which there are so many."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """The groups that have another number of axes, with it."""
    others: frozenset[str] = frozenset()
    """These, and the operands and dimensions of which there is another number: they are written out apart."""

    @property
    def of(self) -> str:
        """What each copy is one of."""
        return "axis" if self.groups else "operand"

    def sizes(self, group: str) -> list[str]:
        """Return the names of the sizes of a group's axes."""
        return self.each(group)

    def indices(self, group: str) -> list[str]:
        """Return the names of the indices along a group's axes."""
        return self.each(group.lower())

    def each(self, name: str) -> list[str]:
        """Return what a name is in each copy."""
        return [f"{name}{i}" for i in range(self.number)]

    def names_group(self, kind: str) -> bool:
        """Whether the type of an operand has the axes of one of the groups."""
        return any(a.text == "*" and b.text in self.groups for a, b in pairwise(tokens(kind)))

    def counts(self, name: str) -> bool:
        """Whether a list with an element for each names this."""
        return name in self.groups or name in self.packs

    def for_each(self, name: str) -> str:
        """Return what to write where there is to be one of an operand, of which there is one, for each of several."""
        return f"for a '{name}' of each write counts: {{{name}: {self.owner}}}"

    def is_several(self, name: str) -> bool:
        """Whether a name stands for an operand, a dimension or a temporary of each copy."""
        return name in self.packs or name in self.temporaries


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a sign of a text, and where it stands."""

    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return a text cut into tokens; a comment or a text in quotes is one."""
    return [Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(text)]


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names in a text with their places, those in quotes and comments left out."""
    return ((m.start(1), m[1]) for m in _WORD.finditer(text) if m[1] is not None)
