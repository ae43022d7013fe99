"""Collections in brackets that have comments between their lines, put on lines of their own.

ruamel.yaml can't keep such a comment where it is. Here a collection is rewritten by its tokens, before ruamel.yaml reads it: each
entry is a line, with the comments above it and the one behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

import yaml
from yaml.tokens import (
    BlockEndToken,
    FlowEntryToken,
    FlowMappingEndToken,
    FlowMappingStartToken,
    FlowSequenceEndToken,
    FlowSequenceStartToken,
    KeyToken,
    Token,
    ValueToken,
)

from opc.records import dataclass

_STARTS, _ENDS = (FlowMappingStartToken, FlowSequenceStartToken), (FlowMappingEndToken, FlowSequenceEndToken)
_COMMENT = re.compile(r"#[^\n]*")


class _StrangeError(Exception):
    """What is written in brackets has no plain form on lines of its own."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry: the comments on lines above it, its key, its value, and the comment behind it on its line."""

    key: str | None
    value: str | _Flow
    above: tuple[str, ...] = ()
    behind: str = ""


@dataclass(frozen=True, slots=True)
class _Flow:
    """A collection in brackets: the comment behind the opening one, its entries, the comments above the closing one."""

    behind: str
    entries: tuple[_Entry, ...]
    below: tuple[str, ...] = field(default=())


def unfolded(text: str) -> str:
    """Return YAML text in which no collection in brackets has comments; others stay as they are.

    So does one that has no plain form on lines, such as one with keys that have no values.

    Raises:
        YAMLError: when the text is no YAML.
    """
    if "#" not in text or not {"{", "["} & set(text):
        return text
    text = text.replace("\r\n", "\n")
    tokens = [t for t in yaml.scan(text, Loader=yaml.SafeLoader) if not isinstance(t, BlockEndToken)]
    made, done = [], 0
    for first, last in _outermost(tokens):
        reader = _Reader(text, tokens)
        if not reader.has_comments(first, last):
            continue
        try:
            lines = list(_lines(reader.flow(first, last)))
        except _StrangeError:
            continue
        start, end = tokens[first].start_mark, tokens[last].end_mark
        row = text[start.index - start.column : start.index]
        made += [text[done : start.index - start.column], _written(row, lines)]
        done = end.index
        # What stands behind the closing bracket comes behind the last entry, if nothing is there yet.
        if _COMMENT.search(text[done:].partition("\n")[0]) and _COMMENT.search(lines[-1]):
            made.append(f"\n{' ' * _indent(row)}")
            done += len(text[done:]) - len(text[done:].lstrip(" "))
    return "".join(made) + text[done:]


def _indent(row: str) -> int:
    """Return where the entries of a collection stand, whose bracket comes behind `row`: dashes, or a key."""
    lead = row[: len(row) - len(row.lstrip(" -"))]
    return len(row) if row == lead else len(lead) + 2


def _written(row: str, lines: Sequence[str]) -> str:
    """Return the lines of a collection behind what stands in front of its bracket."""
    behind, *rest = lines
    if row.strip(" -"):
        return "\n".join([f"{row.rstrip()}{'  ' if behind else ''}{behind}", *(f"{' ' * _indent(row)}{line}" for line in rest)])
    # Dashes have no line that a comment could stand on: it goes above the first entry.
    body = "\n".join(f"{' ' * len(row)}{line}" for line in ([behind] if behind else []) + rest)
    if body.lstrip().startswith("#"):
        return f"{row.rstrip()}\n{body}" if row.strip() else body
    return row + body.lstrip()


def _outermost(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last token of each collection in brackets that is in no other."""
    depth, first = 0, 0
    for i, t in enumerate(tokens):
        if isinstance(t, _STARTS):
            first = first if depth else i
            depth += 1
        elif isinstance(t, _ENDS):
            depth -= 1
            if depth == 0:
                yield first, i


def _lines(flow: _Flow) -> Iterator[str]:
    """Yield the comment behind the key of a collection, and the lines of what it holds, indented as they are in it."""
    yield flow.behind
    for e in flow.entries:
        yield from e.above
        lead = "-" if e.key is None else f"{e.key}:"
        if isinstance(e.value, str):
            yield f"{lead} {e.value}".rstrip() + (f"  {e.behind}" if e.behind else "")
            continue
        behind, *inner = _lines(e.value)
        yield f"{lead}  {behind}" if behind else lead
        yield from (f"  {line}" for line in inner)
        if e.behind:
            yield f"  {e.behind}"
    yield from flow.below


class _Reader:
    """Reads collections out of the tokens of a text."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens = text, tokens

    def gap(self, i: int) -> str:
        """Return what stands between a token and the next one: blanks and comments."""
        return self.text[self.tokens[i].end_mark.index : self.tokens[i + 1].start_mark.index]

    def has_comments(self, first: int, last: int) -> bool:
        """Return whether there are comments between two tokens."""
        return any("#" in self.gap(i) for i in range(first, last))

    def comments(self, i: int) -> tuple[str, tuple[str, ...]]:
        """Return the comment behind a token on its line, and those on lines of their own before the next token."""
        line, _, rest = self.gap(i).partition("\n")
        return line.strip(), tuple(part.strip() for part in rest.split("\n") if part.strip())

    def flow(self, first: int, last: int) -> _Flow:
        """Return a collection from its opening to its closing bracket.

        Raises:
            _StrangeError: when it has no plain form on lines.
        """
        behind, above = self.comments(first)
        entries: list[_Entry] = []
        start = first + 1
        while start < last:
            stop = self.end_of_entry(start, last)
            key, value = self.entry(start, stop, isinstance(self.tokens[first], FlowMappingStartToken))
            # The comment may stand before the comma or behind it.
            before, under = self.comments(stop - 1)
            after, next_above = self.comments(stop) if stop < last else ("", ())
            if under and stop < last:
                raise _StrangeError
            if before and after:
                raise _StrangeError
            entries.append(_Entry(key, value, above, before or after))
            above = next_above if stop < last else under
            start = stop + 1
        if not entries:
            raise _StrangeError
        return _Flow(behind, tuple(entries), above)

    def end_of_entry(self, start: int, last: int) -> int:
        """Return the place of the comma behind an entry, or of the closing bracket."""
        depth = 0
        for i in range(start, last):
            depth += isinstance(self.tokens[i], _STARTS) - isinstance(self.tokens[i], _ENDS)
            if depth == 0 and isinstance(self.tokens[i], FlowEntryToken):
                return i
        return last

    def entry(self, start: int, stop: int, in_mapping: bool) -> tuple[str | None, str | _Flow]:
        """Return the key of an entry, if it has one, and its value."""
        if not in_mapping:
            return None, self.value(start, stop)
        depth = 0
        for i in range(start, stop):
            depth += isinstance(self.tokens[i], _STARTS) - isinstance(self.tokens[i], _ENDS)
            if depth == 0 and isinstance(self.tokens[i], ValueToken):
                if not isinstance(self.tokens[start], KeyToken) or self.has_comments(start, i + 1 if i + 1 < stop else i):
                    raise _StrangeError
                return self.raw(start + 1, i), self.value(i + 1, stop) if i + 1 < stop else ""
        raise _StrangeError

    def value(self, start: int, stop: int) -> str | _Flow:
        """Return a value: on one line, or a collection with comments."""
        if stop <= start:
            raise _StrangeError
        if not self.has_comments(start, stop - 1):
            return self.raw(start, stop)
        if isinstance(self.tokens[start], _STARTS) and isinstance(self.tokens[stop - 1], _ENDS):
            return self.flow(start, stop - 1)
        raise _StrangeError

    def raw(self, start: int, stop: int) -> str:
        """Return tokens as they are written, on one line: a break within a text is a blank."""
        text = self.text[self.tokens[start].start_mark.index : self.tokens[stop - 1].end_mark.index].strip()
        if re.search(r"\n\s*\n|\\\n", text):
            raise _StrangeError
        return re.sub(r"[ \t]*\n[ \t]*", " ", text)


__all__ = ["unfolded"]
