"""Texts of a spec with groups of several ranks, written out for one number of axes.

`*S` becomes the axes of the group, and `*(S*stride - 1)` its expression once for each axis: in it, the group is the index along
that axis (in a shape, the size), and a list with an element for each axis is that element. The new characters stand where those
stood that they come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TypeAlias

from opc.diagnostics import Diagnostics
from opc.names import JOINED, REDUCTIONS
from opc.records import dataclass, replace
from opc.spec.text import STRING, SourceText

_TOKEN = re.compile(rf"{STRING}|#[^\n]*|\.\s*[A-Za-z]\w*|[A-Za-z_]\w*|\.?\d[\w.]*|\*\*|\S")
_WORD = re.compile(rf"{STRING}|#[^\n]*|(?<![\w.])([A-Za-z]\w*)")
_NESTED = ("minimum", "maximum")


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names in a text with their places, those in quotes and comments left out."""
    return ((m.start(1), m[1]) for m in _WORD.finditer(text) if m[1] is not None)


@dataclass(frozen=True, slots=True)
class Axes:
    """The groups of a spec that have so many axes, and its lists that have an element for each of them."""

    groups: tuple[str, ...]
    rank: int
    lists: frozenset[str]
    apart: frozenset[str] = frozenset()
    """The temporaries of a body of which each axis has one."""

    def sizes(self, group: str) -> list[str]:
        """Return the names of the sizes of a group's axes."""
        return [f"{group}{i}" for i in range(self.rank)]

    def indices(self, group: str) -> list[str]:
        """Return the names of the indices along a group's axes."""
        return [f"{group.lower()}{i}" for i in range(self.rank)]


Named: TypeAlias = Callable[[str], Sequence[str]]
"""What a group stands for: the indices along its axes, or their sizes."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Writes texts out; mistakes are recorded."""

    axes: Axes
    found: Diagnostics

    def body(self, text: SourceText, outputs: Collection[str]) -> SourceText:
        """Return a body, which assigns these outputs. A statement that assigns another name, and has a group, a list or such a
        name beside all stars, is one of each axis."""
        apart: frozenset[str] = frozenset()
        while True:
            writer = _Writer(text, replace(self.axes, apart=apart), self.axes.indices, self.found)
            more = {writer.text_of(s.start) for s in writer.statements() if any(writer.is_bare(i) for i in s)} - {*outputs}
            if more <= apart:
                writer.refuse_assigned_groups()
                taken = {f"{name}{i}": name for name in apart for i in range(self.axes.rank)}
                for start, name in words(text.value):
                    if name in taken:
                        span = text.span(start, start + len(name))
                        self.found.error(f"'{name}' is the '{taken[name]}' of an axis", span, "take another name")
                return _joined(text, writer.body())
            apart |= more

    def shape(self, text: SourceText) -> SourceText:
        """Return the type and shape of an operand."""
        return self._written(text, self.axes.sizes)

    def sizes(self, text: SourceText) -> SourceText:
        """Return an expression of sizes and attributes."""
        return self._written(text, self.axes.sizes)

    def size(self, text: SourceText, axis: int) -> SourceText:
        """Return an expression of sizes and attributes for one axis."""
        return self._written(text, self.axes.sizes, axis)

    def reference(self, text: SourceText) -> SourceText:
        """Return a call of something else, which has lists as Python does: `*padding` is its elements."""
        return self._written(text, None)

    def list_type(self, text: SourceText) -> SourceText:
        """Return the type of an attribute: `int[*S]` with the number of axes."""
        tokens = _tokens(text.value)
        for star, name, close in zip(tokens, tokens[1:], tokens[2:]):
            if star.text == "*" and name.text in self.axes.groups and close.text == "]":
                return text.replace(star.start, name.end, str(self.axes.rank))
        return text

    def is_per_axis(self, text: str) -> bool:
        """Whether an expression names a group or a list beside any `*(...)`: it is one for each axis."""
        writer = _Writer(SourceText.of(text, ""), self.axes, self.axes.sizes, Diagnostics())
        return any(writer.is_bare(i) for i in range(len(writer.tokens)))

    def count_axes(self, text: str) -> int | None:
        """Return how many axes an operand of this type has; None where that is the same for all ranks, or open."""
        if not any(a.text == "*" and b.text in self.axes.groups for a, b in pairwise(_tokens(text))):
            return None
        written = Texts(self.axes, Diagnostics()).shape(SourceText.of(text, ""))
        writer = _Writer(written, self.axes, None, Diagnostics())
        inside = [i for i, opener in enumerate(writer.opener) if opener >= 0 and writer.opener[opener] < 0]
        if any(writer.is_star(i) or writer.text_of(i) == "." for i in inside):
            return None
        return 1 + sum(writer.text_of(i) == "," for i in inside)

    def _written(self, text: SourceText, named: Named | None, axis: int | None = None) -> SourceText:
        return _joined(text, _Writer(text, self.axes, named, self.found).whole(axis))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int


def _tokens(text: str) -> list[_Token]:
    return [_Token(m[0], m.start(), m.end()) for m in _TOKEN.finditer(text)]


def _joined(whole: SourceText, parts: Iterator[SourceText]) -> SourceText:
    made = list(parts)
    positions = tuple(p for part in made for p in part.positions)
    return SourceText("".join(part.value for part in made), whole.source, positions, whole.begin)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes one text out, token by token."""

    text: SourceText
    axes: Axes
    named: Named | None
    found: Diagnostics
    tokens: list[_Token] = field(init=False)
    partner: dict[int, int] = field(init=False)
    """The bracket that closes each one that opens."""
    opener: list[int] = field(init=False)
    """The bracket that each token stands in, -1 for none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", _tokens(self.text.value))
        partner: dict[int, int] = {}
        opener: list[int] = []
        open_now: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.text in (")", "]", "}") and open_now:
                partner[open_now.pop()] = i
            opener.append(open_now[-1] if open_now else -1)
            if token.text in ("(", "[", "{"):
                open_now.append(i)
        object.__setattr__(self, "partner", partner)
        object.__setattr__(self, "opener", opener)

    def run(self, low: int, high: int, axis: int | None) -> Iterator[SourceText]:
        """Yield tokens `low` to `high` (exclusive) written out, with what stands between them; in an expression of one axis, for
        this one."""
        at, i = self.tokens[low].start, low
        while i < high:
            after, new = self._step(i, axis)
            if new is not None:
                yield self.text.cut(at, self.tokens[i].start)
                yield from new
                at = self.tokens[after - 1].end
            i = after
        yield self.text.cut(at, self.tokens[high - 1].end)

    def whole(self, axis: int | None) -> Iterator[SourceText]:
        """Yield the whole text written out."""
        if not self.tokens:
            yield self.text
            return
        yield self.text.cut(0, self.tokens[0].start)
        yield from self.run(0, len(self.tokens), axis)
        yield self.text.cut(self.tokens[-1].end, len(self.text.value))

    def statements(self) -> list[range]:
        """Return the tokens of each statement of a body; a comment on a line of its own is one too."""
        begins = [i for i, opener in enumerate(self.opener) if opener < 0 and (i == 0 or self._breaks(i))]
        return [range(low, high) for low, high in pairwise([*begins, len(self.tokens)])]

    def refuse_assigned_groups(self) -> None:
        """Record statements that assign a group as if it were a temporary."""
        for s in self.statements():
            if self.text_of(s.start) in self.axes.groups:
                self._refuse(s.start, f"'{self.text_of(s.start)}' is a group of axes", "take another name")

    def _breaks(self, i: int) -> bool:
        """Whether a token stands on another line than the one before it ends on."""
        return "\n" in self.text.value[self.tokens[i - 1].end : self.tokens[i].start]

    def body(self) -> Iterator[SourceText]:
        """Yield a body written out, each of its statements once or once for each axis."""
        at = 0
        for statement in self.statements():
            start, end = self.tokens[statement.start].start, self.tokens[statement.stop - 1].end
            yield self.text.cut(at, start)
            at = end
            if self.text_of(statement.start) not in self.axes.apart:
                yield from self.run(statement.start, statement.stop, None)
                continue
            copies = [list(self.run(statement.start, statement.stop, a)) for a in range(self.axes.rank)]
            yield from self._separated(statement.start, copies, "\n")
        yield self.text.cut(at, len(self.text.value))

    def _step(self, i: int, axis: int | None) -> tuple[int, list[SourceText] | None]:
        """Return the token behind those that are written next, and what is written for them; None for what they are."""
        name = self.text_of(i)
        if self.is_star(i):
            return self._star(i, axis)
        if name in ("size", "position", "rank", "axis") and self.text_of(i + 1) == "(":
            call = self._of_group(i, axis)
            if call is not None:
                return call
        if name == "unravel" and self.text_of(i + 1) == "(" and axis is not None and self.named is not None:
            call = self._unravelled(i, axis)
            if call is not None:
                return call
        if (name in JOINED or name in _NESTED) and self.text_of(i + 1) == "(" and self.is_star(i + 2):
            close = self.partner.get(i + 1, -1)
            inside = self._inside(i + 2)
            if inside is not None and inside[2] == close:
                return close + 1, self._folded(i, name, inside, axis)
        if name in self.axes.lists and axis is not None and self.text_of(i + 1) != "[":
            return i + 1, [self._put(i, i + 1, f"{name}[{axis}]")]
        if name in self.axes.groups and self.named is not None:
            if axis is not None:
                return i + 1, [self._put(i, i + 1, self._named(i, name)[axis])]
            self._refuse(i, f"'{name}' is a group of axes", f"write *{name}, or *(...) for what each axis has of it")
        if name in self.axes.apart:
            if axis is not None:
                return i + 1, [self._put(i, i + 1, f"{name}{axis}")]
            self._refuse(i, f"each axis has a '{name}' of its own", "write *(...), and name it there")
        return i + 1, None

    def _star(self, i: int, axis: int | None) -> tuple[int, list[SourceText] | None]:
        """Write out `*S`, a list `*stride`, or `*(expression)`."""
        name = self.text_of(i + 1)
        if axis is not None and (name == "(" or name in self.axes.lists):
            self._refuse(i, "this is written once for each axis already", "leave out the star")
            return i + 1, None
        if name in self.axes.lists:
            return i + 2, self._listed(i, [f"{name}[{a}]" for a in range(self.axes.rank)])
        if name in self.axes.groups and self.named is not None:
            return i + 2, self._listed(i, self._named(i, name))
        inside = self._inside(i) if name == "(" else None
        if inside is None:
            return i + 1, None
        if not any(self._differs(k) for k in range(inside[0], inside[1])):
            self._refuse(i, "nothing in this differs from axis to axis", "name a group in it, or a list of one")
        return inside[2], self._separated(i, self._copies(inside), ", ")

    def _listed(self, i: int, names: Sequence[str]) -> list[SourceText]:
        """Return names with commas between them, each in the place of the star and what stands behind it."""
        return self._separated(i, [[self._put(i, i + 2, name)] for name in names], ", ")

    def _named(self, i: int, group: str) -> Sequence[str]:
        """Return what a group stands for on each axis, with the extents where a reduction or statement runs over them."""
        assert self.named is not None
        opener = self.opener[i]
        if opener <= 0 or self.text_of(opener) != "[" or not (self._is_reduction(opener) or self._is_target(opener)):
            return self.named(group)
        return [f"{index}:{size}" for index, size in zip(self.axes.indices(group), self.axes.sizes(group))]

    def _is_reduction(self, opener: int) -> bool:
        close = self.partner.get(opener, -2)
        return self.text_of(opener - 1) in (*REDUCTIONS, "argsort") and self.text_of(close + 1) == "("

    def _is_target(self, opener: int) -> bool:
        """Whether a bracket has the indices that a statement of a body assigns."""
        return (
            (opener == 1 or self._breaks(opener - 1))
            and self.opener[opener] < 0
            and self.text_of(self.partner.get(opener, -2) + 1) == "="
        )

    def _of_group(self, i: int, axis: int | None) -> tuple[int, list[SourceText]] | None:
        """Write out `size(*S)`, `position(*S)`, `rank(S)`, and of one axis `size(S)` and `axis(S)`; None for another call."""
        call, close = self.text_of(i), self.partner.get(i + 1, -1)
        starred = self.text_of(i + 2) == "*"
        group = self.text_of(i + 3 if starred else i + 2)
        if group not in self.axes.groups or close != (i + 4 if starred else i + 3):
            return None
        if self.named is None and call not in ("rank", "axis"):  # elsewhere an operand has no such sizes
            return None
        sizes, indices = self.axes.sizes(group), self.axes.indices(group)
        if call == "rank" and not starred:
            return close + 1, [self._put(i, close + 1, str(self.axes.rank))]
        if axis is not None and not starred and call in ("size", "axis"):
            return close + 1, [self._put(i, close + 1, sizes[axis] if call == "size" else str(axis))]
        if call == "size" and starred:
            return close + 1, [self._put(i, close + 1, f"({' * '.join(sizes)})")]
        if call == "position" and starred:
            position = indices[0]
            for index, size in zip(indices[1:], sizes[1:]):
                position = f"({position})*{size} + {index}"
            return close + 1, [self._put(i, close + 1, f"({position})")]
        return None

    def _unravelled(self, i: int, axis: int) -> tuple[int, list[SourceText]] | None:
        """Write out `unravel(S, p)` for one axis: the index along it of the point that `position(*S)` numbers p."""
        group, close = self.text_of(i + 2), self.partner.get(i + 1)
        if group not in self.axes.groups or self.text_of(i + 3) != "," or close is None or close < i + 5:
            return None
        sizes = self.axes.sizes(group)
        behind = f" // ({' * '.join(sizes[axis + 1 :])})" if sizes[axis + 1 :] else ""
        inner = list(self.run(i + 4, close, axis))
        return close + 1, [self._put(i, i + 1, "(("), *inner, self._put(i + 2, i + 3, f"){behind} % {sizes[axis]})")]

    def _folded(self, i: int, name: str, inside: tuple[int, int, int], axis: int | None) -> list[SourceText] | None:
        """Write out `all(*(...))` and its like: one expression of those of all axes."""
        if axis is not None:
            self._refuse(i + 2, "this is written once for each axis already", "leave out the star")
            return None
        copies = [[self._put(i, i + 1, "("), *copy, self._put(i, i + 1, ")")] for copy in self._copies(inside)]
        if name in JOINED:
            return [self._put(i, i + 1, "("), *self._separated(i, copies, JOINED[name]), self._put(i, i + 1, ")")]
        made = copies[0]
        for copy in copies[1:]:
            made = [self._put(i, i + 1, f"{name}("), *made, self._put(i, i + 1, ", "), *copy, self._put(i, i + 1, ")")]
        return made

    def _copies(self, inside: tuple[int, int, int]) -> list[list[SourceText]]:
        return [list(self.run(inside[0], inside[1], a)) for a in range(self.axes.rank)]

    def _separated(self, i: int, copies: list[list[SourceText]], between: str) -> list[SourceText]:
        sign = self._put(i, i + 1, between)
        return [part for k, copy in enumerate(copies) for part in ([sign] if k else []) + copy]

    def _inside(self, star: int) -> tuple[int, int, int] | None:
        """Return the tokens of what a star stands for in each axis, from and to, and the one behind it all."""
        if self.text_of(star + 1) == "(":
            close = self.partner.get(star + 1)
            return None if close is None or close == star + 2 else (star + 2, close, close + 1)
        if self.text_of(star + 1) in (*self.axes.groups, *self.axes.lists):
            return star + 1, star + 2, star + 2
        return None

    def is_bare(self, i: int) -> bool:
        """Whether a token names a group, or a whole list, beside all stars and what stands behind them."""
        if not self._differs(i) or self.is_star(i - 1) or (self.text_of(i - 1) == "(" and self.text_of(i - 2) == "rank"):
            return False
        inside = self.opener[i]
        while inside >= 0:
            if self.is_star(inside - 1):
                return False
            inside = self.opener[inside]
        return True

    def _differs(self, i: int) -> bool:
        """Whether a token is something else for each axis: a group, a temporary of each, or a list, no element of it."""
        name = self.text_of(i)
        return name in self.axes.groups or name in self.axes.apart or (name in self.axes.lists and self.text_of(i + 1) != "[")

    def is_star(self, i: int) -> bool:
        """Whether a token is a star that spreads what stands behind it."""
        return self.text_of(i) == "*" and (i == 0 or self.text_of(i - 1) in ("(", "[", ",", "=")) and i + 1 < len(self.tokens)

    def text_of(self, i: int) -> str:
        """Return a token's text, nothing where there is no such token."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def _put(self, low: int, high: int, new: str) -> SourceText:
        """Return a text that stands where tokens `low` to `high` (exclusive) do, and each of its words too."""
        old = self.text.positions[self.tokens[low].start : self.tokens[high - 1].end]
        begins = {m.start() for m in re.finditer(r"\w+|\W", new)}
        return SourceText(new, self.text.source, tuple(old[0] if i in begins else old[-1] for i in range(len(new))), old[0])

    def _refuse(self, i: int, message: str, hint: str) -> None:
        self.found.error(message, self.text.span(self.tokens[i].start, self.tokens[i].end), hint)
