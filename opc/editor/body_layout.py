"""The layout of a kernel body: blanks between words and symbols, which mean nothing. Lines and comments stay as they are."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Sequence
from itertools import pairwise

from opc.diagnostics import Diagnostics
from opc.lang.parse import parse_body
from opc.records import dataclass
from opc.spec.text import SourceText

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_ALWAYS_APART = frozenset(("=", "==", "!=", "<", "<=", ">", ">="))
_SIGNS = frozenset(("+", "-", "*", "**", "~"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"))


def laid_out(body: str) -> str:
    """Return a body with blanks where they belong.

    One blank stands around `=` and comparisons and behind a comma, none inside of brackets. Around an operator of arithmetic
    stands one on both sides or on neither, as written: `2*j + 1` is no mistake. A body that can't be read so is returned with
    no more than the blanks at the ends of its lines removed.
    """
    lines = [line.rstrip(" \t") for line in body.split("\n")]
    found = _words("\n".join(lines))
    if found is None:
        return "\n".join(lines)
    for row, words in found.items():
        line = lines[row]
        made = line[: words[0].start]
        for before, after in pairwise(words):
            made += before.text + " " * _blanks(before, after)
        lines[row] = made + words[-1].text
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word or symbol of a line: its text, columns, whether it stands before what it belongs to, as a sign does, and whether
    blanks stand around it."""

    text: str
    kind: int
    start: int
    end: int
    sign: bool
    loose: bool

    @property
    def is_name(self) -> bool:
        return self.kind == tokenize.NAME and not keyword.iskeyword(self.text)

    @property
    def is_operand_end(self) -> bool:
        return self.is_name or self.kind in (tokenize.NUMBER, tokenize.STRING) or self.text in _CLOSE or self.text == "..."


def _words(text: str) -> dict[int, list[_Word]] | None:
    """Return the words of each line by its number from 0; None where Python's tokens don't make up the text."""
    skipped = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in skipped]
    except (tokenize.TokenError, SyntaxError):
        return None
    lines = text.split("\n")
    if any(t.start[0] != t.end[0] or t.type == tokenize.ERRORTOKEN for t in tokens):
        return None
    rows: dict[int, list[_Word]] = {}
    before: _Word | None = None
    for token in tokens:
        row, start, end = token.start[0] - 1, token.start[1], token.end[1]
        line = lines[row]
        sign = token.string in _SIGNS and not (before is not None and before.is_operand_end)
        loose = line[start - 1 : start].isspace() or line[end : end + 1].isspace() or not line[end:] or not line[:start].strip()
        word = _Word(token.string, token.type, start, end, sign, loose)
        rows.setdefault(row, []).append(word)
        if token.type != tokenize.COMMENT:
            before = word
    return rows


def _blanks(before: _Word, after: _Word) -> int:
    """Return how many blanks stand between two words of a line."""
    if after.kind == tokenize.COMMENT:
        return 2
    if before.text in _OPEN or after.text in _CLOSE or after.text in (",", ":") or before.text == ":" or before.sign:
        return 0
    if before.text == "," or before.text in _ALWAYS_APART or after.text in _ALWAYS_APART:
        return 1
    if after.text in _OPEN and before.is_operand_end:
        return 0
    for word in (before, after):
        if word.text in _ARITHMETIC and not word.sign:
            return int(word.loose)
    if "." in (before.text, after.text):
        return int(after.start > before.end)
    return 1


def same_body(one: str, other: str) -> bool:
    """Return whether two bodies have the same statements, or the same words where these can't be read, and the same comments."""
    return _meaning(one) == _meaning(other)


def _meaning(text: str) -> tuple[Sequence[str], Sequence[str]]:
    comments = [rest.strip() for _, mark, rest in (line.partition("#") for line in text.split("\n")) if mark]
    found = Diagnostics()
    # Without a source, all places are the same one.
    statements = parse_body(SourceText(text, None, (0,) * len(text)), found)
    if not found.has_errors:
        return [repr(s) for s in statements], comments
    rows = _words(text)
    return [line.rstrip() for line in text.split("\n")] if rows is None else [w.text for r in rows.values() for w in r], comments
