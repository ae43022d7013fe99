"""Diagnostics: what opc says to its user about a mistake in a spec.

A diagnostic has a severity, a message, the place in the file (1-based line and column), and hints. It is rendered in the form
editors and terminals know, `file:line:column: error: message`, followed by the source line and a caret. A mistake of a user is
always a `Diagnostic`; a Python exception other than `SpecError` that escapes from opc is a bug of opc.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import Enum

from opc.names import in_words
from opc.records import dataclass


class Severity(Enum):
    """How grave a diagnostic is: only errors stop the compiler."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one file and the name it is shown under."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """Return line `number` (1-based) without its line break, or an empty string past the end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one source file: 1-based lines and columns, the end column exclusive."""

    source: Source | None
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def place(self) -> str:
        """Where this starts as `file:line`, empty for what stands in no file."""
        return f"{self.source.name}:{self.line}" if self.source is not None else ""

    @property
    def word(self) -> str:
        """What stands here in the file, of one line; empty for what stands in no file, or on several lines."""
        if self.source is None or self.line != self.end_line:
            return ""
        return self.source.line(self.line)[self.column - 1 : self.end_column - 1]

    def until(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of `other`."""
        return Span(self.source, self.line, self.column, other.end_line, other.end_column)

    def __repr__(self) -> str:
        return f"Span({self.line}:{self.column}-{self.end_line}:{self.end_column})"


# What a terminal takes for a command, what turns the text behind it, and what can't be sent.
_SIGNS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return lines of text with a mark in the place of each character that a terminal would obey and not show."""
    return _SIGNS.sub("\N{REPLACEMENT CHARACTER}", text)


def in_line(text: str) -> str:
    """Return text, such as the name of a file, as it is shown within a line."""
    return printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}")


NO_SPAN = Span(None, 0, 0, 0, 0)
"""The span of a node that no source text gave, such as one a transformation made."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message to the user, with its place, hints and related places."""

    message: str
    span: Span = NO_SPAN
    hint: str | None = None
    severity: Severity = Severity.ERROR
    notes: tuple[Diagnostic, ...] = field(default=())

    def render(self) -> str:
        """Return the message as plain text: location, source line, caret, hint and notes."""
        span = self.span
        lines: list[str] = []
        if span.source is None:
            lines.append(f"{self.severity.value}: {printable(self.message)}")
        else:
            place = f"{in_line(span.source.name)}:{span.line}:{span.column}"
            lines.append(f"{place}: {self.severity.value}: {printable(self.message)}")
            text = span.source.line(span.line)
            if text:
                text = printable(text)
                width = span.end_column - span.column if span.end_line == span.line else len(text) - span.column + 1
                # A tab counts as one column; keeping it in the margin puts the caret under the right character.
                margin = "".join("\t" if c == "\t" else " " for c in text[: span.column - 1])
                lines.append(f"  {text}")
                lines.append(f"  {margin}{'^' * max(1, width)}")
        if self.hint:
            lines.append(f"  hint: {printable(self.hint)}")
        for note in self.notes:
            lines.extend("  " + line if note.span.source is None else line for line in note.render().split("\n"))
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the diagnostic as plain data for `--json`."""
        source = self.span.source
        return {
            "severity": self.severity.value,
            "message": self.message,
            "file": source.name if source else None,
            "line": self.span.line or None,
            "column": self.span.column or None,
            "end_line": self.span.end_line or None,
            "end_column": self.span.end_column or None,
            "hint": self.hint,
            "notes": [note.as_dict() for note in self.notes],
        }


class SpecError(Exception):
    """One or more mistakes of the user; carries every diagnostic that was found.

    Raised at the end of a stage that found errors, so that all mistakes of a file are told at once.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))


class Diagnostics:
    """Collects diagnostics during a stage and raises them together."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def error(self, message: str, span: Span = NO_SPAN, hint: str | None = None, notes: Sequence[Diagnostic] = ()) -> None:
        """Record an error."""
        self.items.append(Diagnostic(in_words(message), span, hint and in_words(hint), Severity.ERROR, tuple(notes)))

    def warning(self, message: str, span: Span = NO_SPAN, hint: str | None = None) -> None:
        """Record a warning, which does not stop the compiler."""
        self.items.append(Diagnostic(in_words(message), span, hint and in_words(hint), Severity.WARNING))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Record diagnostics that another stage made."""
        self.items.extend(diagnostics)

    @property
    def has_errors(self) -> bool:
        """Whether any recorded diagnostic is an error."""
        return any(d.severity is Severity.ERROR for d in self.items)

    def raise_errors(self) -> None:
        """Raise `SpecError` with everything recorded, each once and ordered by place, if there is an error.

        Raises:
            SpecError: when at least one recorded diagnostic is an error.
        """
        if self.has_errors:
            once = dict.fromkeys(self.items)
            raise SpecError(sorted(once, key=lambda d: (d.span.line, d.span.column)))


class Told:
    """What was told of specs so far.

    A file of several ranks or counts is read once for each of its ops: what is wrong there is wrong in all of them, and told of
    the first.
    """

    def __init__(self) -> None:
        self._places: set[tuple[str, int]] = set()

    def new(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return what was found in an op, without what stands where something was told of another."""
        fresh = tuple(d for d in diagnostics if not d.span.place or _start(d) not in self._places)
        self._places.update(_start(d) for d in fresh)
        return fresh


def _start(d: Diagnostic) -> tuple[str, int]:
    # An expression that is written out for more axes or operands ends further behind.
    return d.span.place, d.span.column


def one_of(name: str, candidates: Iterable[str], what: str) -> str | None:
    """Return a hint naming the closest candidate, or all of them where none is close and they are few; `what` they are."""
    names = list(dict.fromkeys(candidates))
    few = f"the {what} are {', '.join(names)}" if 1 < len(names) <= _FEW_NAMES else None
    if len(names) == 1:
        few = f"the {what.removesuffix(' here').removesuffix('s')} here is {names[0]}"
    return did_you_mean(name, names) or few


_FEW_NAMES = 12
"""How many names a hint lists."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint naming the closest candidate, or None when nothing is close.

    Case is ignored, so that `Float32` finds `float32`.
    """
    pool = {candidate.lower(): candidate for candidate in sorted(candidates)}
    close = difflib.get_close_matches(name.lower(), list(pool), n=1, cutoff=0.6)
    return f"did you mean '{pool[close[0]]}'?" if close else None
