"""What Python's parser says of a text that it refuses, in the words of the spec language."""

from __future__ import annotations

import re
from keyword import iskeyword

from opc.records import dataclass
from opc.spec.text import STRING, name_problem

_BRACKET = re.compile(rf"{STRING}|#[^\n]*|[()\[\]{{}}]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_CALL = re.compile(r"([A-Za-z]\w*)\s*\((.*)\)", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z]+\b")
_MODULES = ("math", "np", "numpy", "torch", "jnp")
_BOUNDED = re.compile(r"[\[,]\s*(\w+)\s*$")
"""What stands ahead of the `=` of a range: `sum[k`."""
_FOREIGN = (
    (re.compile(r"\?"), "write a if condition else b"),
    (re.compile(r"&&?"), "`and` joins conditions"),
    (re.compile(r"\|\|?"), "`or` joins conditions"),
    (re.compile(r"!"), "`not` negates a condition"),
    (re.compile(r"(mod|rem)\b", re.IGNORECASE), "`%` is the remainder"),
    (re.compile(r"(AND|OR|NOT)\b"), "words are written small: and, or, not"),
)
"""What other languages write, from where Python's parser stops, and what it is here."""


_NAMED = re.compile(r"([a-z]+)\s*(?:[\[)\]+\-*/%<>,]|=(?!=)|$)", re.MULTILINE)
"""A word where a name could stand: an index, an operator or nothing is behind it."""
_OWN = frozenset(("if", "else", "and", "or", "not"))
"""Words of Python's that the language has itself."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mistake in a text, from character `at` to `end`, and what to write."""

    message: str
    hint: str | None
    at: int
    end: int


def reworded(said: str, value: str, at: int, end: int, wrapped: bool) -> Refusal:
    """Return what `said` of the characters `at` to `end` of a text means to who wrote it.

    Parentheses that nobody wrote stand around a text that is `wrapped`.
    """
    message = re.sub(r" on line \d+$", "", said)  # a line of the text, not of the file
    if "unexpected indent" in message or "unindent" in message:
        return Refusal("unexpected indentation", "all statements begin in the same column", at, end)
    if "assignment expressions with" in message or value[at:end] == ":=":
        return Refusal("invalid syntax", "`=` assigns", at, end)
    if "expected 'else'" in message:
        foreign = _foreign(value, end, end)
        if re.match(r"\s*=(?!=)", value[end:]):
            at = value.index("=", end)
            return Refusal("invalid syntax", "`==` compares", at, at + 1)
        if foreign is not None:
            return foreign
        return Refusal("a conditional has two sides", "write a if condition else b; 0 adds nothing to a sum", at, end)
    if "Maybe you meant '=='" in message or message.startswith("cannot assign to"):
        ranged = _BOUNDED.search(value[: value.find("=", at)]) if "=" in value[at:] else None
        if ranged is not None:
            return Refusal("invalid syntax", f"a range begins at 0 and is written {ranged[1]}:extent", at, end)
        if wrapped or "=" in value[:at]:
            return Refusal("invalid syntax", "`==` compares", at, end)
        call = _CALL.fullmatch(value[at:end])
        target = "name[indices]" if call is None else f"{call[1]}[{call[2]}]"
        return Refusal("a statement assigns an output or a temporary", f"write {target} = ...", at, end)
    if "forgot a comma" in message or message == "invalid syntax":
        return _foreign(value, at, end) or _keyword(value, at) or Refusal("invalid syntax", None, at, end)
    if wrapped and ("was never closed" in message or "does not match" in message):
        return _unbalanced(message, value, at, end)
    if message.startswith("unmatched"):
        return Refusal(message, "delete it, or open one ahead of it", at, end)
    return Refusal(message, None, at, end)


def _foreign(value: str, at: int, end: int) -> Refusal | None:
    """Return what to write for a word or sign of another language at `at`, before `end` or behind it; else None."""
    behind = end + len(value[end:]) - len(value[end:].lstrip(" "))
    for place in (at, behind, *(word.start() for word in _WORD.finditer(value, at, end))):
        for pattern, hint in _FOREIGN:
            if found := pattern.match(value, place):
                return Refusal("invalid syntax", hint, place, found.end())
    return None


def _keyword(value: str, at: int) -> Refusal | None:
    """Return what is wrong with a word that stands where a name could, and can't be one; else None."""
    found = _NAMED.match(value, at)
    if found is None or not iskeyword(word := found[1]) or word in _OWN:
        return None
    return Refusal(f"'{word}' can't name a value: {name_problem(word)}", "give it another name", *found.span(1))


def _unbalanced(message: str, value: str, at: int, end: int) -> Refusal:
    """Return what is wrong with the brackets of a text inside of those that stand around it."""
    opened: list[int] = []
    for found in _BRACKET.finditer(value, 1, len(value) - 1):
        sign, place = found[0], found.start()
        if sign in _PAIRS.values():
            opened.append(place)
        elif sign in _PAIRS and not opened:
            return Refusal(f"unmatched '{sign}'", "delete it, or open one ahead of it", place, place + 1)
        elif sign in _PAIRS and value[opened.pop()] != _PAIRS[sign]:
            return Refusal(message, None, at, end)
    if not opened:
        return Refusal(message, None, at, end)
    return Refusal(f"'{value[opened[-1]]}' was never closed", None, opened[-1], opened[-1] + 1)


def of_part(base: str | None, part: str) -> str:
    """Return what to write in place of `base.part`."""
    if part in ("shape", "size", "ndim"):
        return "the size of an axis is its dimension's name"
    if base is not None and base.rstrip("_") in _MODULES:  # a name that generated code needs has one more underscore
        return f"functions have no module: {part}(...)"
    return "write a function before its argument: exp(x), not x.exp()"
