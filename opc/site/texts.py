"""Texts as Markdown."""

from __future__ import annotations

import re
from textwrap import indent

_LAYOUT = {ord(sign): f"&#{ord(sign)};" for sign in "&<>|*_`[]\\#~^{}"}


def prose(text: str) -> str:
    """Return a text on one line, in a paragraph or a cell of a table, in which no sign is taken for layout."""
    return re.sub(r"^([-+]|\d+[.)]) ", lambda m: f"&#{ord(m[0][0])};{m[0][1:]}", " ".join(text.split()).translate(_LAYOUT))


def code(text: object) -> str:
    """Return a text as code in a line or in a cell of a table, where a bar would end the cell."""
    return f"<code>{' '.join(str(text).split()).translate(_LAYOUT)}</code>"


def words(text: object) -> str:
    """Return a text on one line, as it stands in an element or an attribute of HTML that a page of Markdown holds."""
    return " ".join(str(text).split()).translate(_LAYOUT).replace('"', "&quot;").replace("'", "&#39;")


def in_fence(text: str, language: str, columns: int = 0) -> str:
    """Return a text as a block of code, indented by so many columns; the fence is longer than any in the text."""
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return indent(f"{fence}{language}\n{text.rstrip()}\n{fence}", " " * columns)


def first_sentence(text: str) -> str:
    """Return what a doc says first, without what stands in parentheses."""
    plain = re.sub(r"\s*\([^()]*\)", "", " ".join(text.split()))
    return re.split(r"(?<=[.;:])\s", plain)[0].rstrip(".;:") + "." if plain else ""
