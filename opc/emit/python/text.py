"""Text that spec authors wrote, put into generated Python so that it stays text: docstrings and literals.

What a spec says may hold quotes, backslashes or line breaks; none of them may end the string they stand in.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from functools import lru_cache

from opc.records import dataclass

WIDTH = 88
"""Line length of generated Python, the default of common formatters."""


@lru_cache(maxsize=1 << 12)
def docstring(text: str, indent: int = 0) -> str:
    """Return `text` as a docstring literal, indented by `indent` spaces, without a final line break.

    Paragraphs of the first indentation level are wrapped at `WIDTH`; indented lines are kept as they are.
    """
    margin = " " * indent
    lines: list[str] = []
    # Quotes in a row, or beside the delimiter, would be read as the delimiter.
    quotes = '""' in text or text.strip().startswith('"') or text.strip().endswith('"')
    for number, line in enumerate(text.strip().split("\n")):
        line = _escape(line.rstrip(), quotes)
        # The first line holds the opening quotes, and the only line the closing ones too.
        room = WIDTH - indent - (6 if "\n" not in text.strip() else 3 if number == 0 else 0)
        if line.startswith(" ") or len(line) <= room:
            lines.append(line)
        else:
            lines += textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
    body = "\n".join(margin + line if line and i else line for i, line in enumerate(lines))
    single = len(lines) == 1 and indent + len(lines[0]) + 6 <= WIDTH
    return f'{margin}"""{body}"""' if single else f'{margin}"""{body}\n{margin}"""'


def _escape(line: str, quotes: bool) -> str:
    """Return a line for a string literal in three double quotes; `quotes` escapes the single ones in it."""
    line = line.replace("\\", "\\\\")
    if not line.isprintable():
        line = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in line)
    return line.replace('"', '\\"') if quotes else line


def comment(text: str, indent: int = 0) -> str:
    """Return `text` as a comment of one or more lines, indented by `indent` spaces, without a final line break."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    margin = " " * indent + "# "
    return "\n".join(textwrap.wrap(clean, WIDTH, initial_indent=margin, subsequent_indent=margin))


def literal(value: object) -> str:
    """Return the Python expression of an attribute's value: number, bool, string, None, or a tuple of these.

    Raises:
        TypeError: for any other value.
    """
    match value:
        case None | bool() | int():
            return repr(value)
        case float():
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        case str():
            return quoted(value)
        case tuple():
            inner = ", ".join(literal(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            raise TypeError(f"no literal for {type(value).__name__}")


@lru_cache(maxsize=1 << 14)
def quoted(text: str) -> str:
    """Return `text` as a string literal, double-quoted unless that would need an escape that single quotes do not."""
    single = repr(text)
    if single.startswith('"') or '"' in text:
        return single
    return f'"{single[1:-1]}"'


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bracketed, comma-separated code, laid out as a formatter does: on one line, or one item a line with a comma after each.

    `head` ends in the opening bracket and `tail` begins with the closing one. A `single` tuple keeps its comma on one line.
    """

    head: str
    items: Sequence[str | Bracket]
    tail: str
    single: bool = False

    def __str__(self) -> str:
        comma = "," if self.single and len(self.items) == 1 else ""
        return f"{self.head}{', '.join(map(str, self.items))}{comma}{self.tail}"

    def render(self, indent: int = 0, after: int = 0, before: int = 0) -> str:
        """Return the code for a line indented by `indent`, with `before` columns of text before it and `after` behind it."""
        line = str(self)
        if not self.items or indent + before + len(line) + after <= WIDTH:
            return line
        inner = indent + 4
        rows = [item.render(inner, 1) if isinstance(item, Bracket) else item for item in self.items]
        # A bare star in a signature stands on a line of its own like a parameter.
        return self.head + "".join(f"\n{' ' * inner}{row}," for row in rows) + f"\n{' ' * indent}{self.tail}"


def tuple_of(items: Sequence[str | Bracket]) -> Bracket:
    """Return a tuple display."""
    return Bracket("(", items, ")", single=True)
