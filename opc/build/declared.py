"""Headers whose functions are only declared, for sources that are linked with an object that defines them.

A compiler reads what is inline in each source, with the templates that it uses, which takes longer than to read what generated
sources have of their own. Functions keep their bodies where a source needs them: templates, whatever is `constexpr` or `static`,
or has a type that its body tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*"  # comments, lines of the preprocessor
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"  # literals
    r"|::|[A-Za-z_]\w*|[0-9](?:'?[\w.])*|\s+|.",
    re.DOTALL | re.MULTILINE,
)
_CLOSING = {")", "]", "}"}
_SCOPES = ("namespace", "class", "struct", "union", "enum", "template")
# What may stand in front of a parenthesis that doesn't hold a function's parameters.
_NOT_NAMES = {"__attribute__", "alignas", "decltype", "noexcept"}
_INLINE = re.compile(r"\b(?:inline|\w+_NOINLINE)\b[ \n]*")


class NotUnderstood(Exception):
    """A header that is written as this module doesn't expect."""


def declared(text: str) -> str:
    """Return a C++ header without the bodies of its functions, each on its line.

    Raises:
        NotUnderstood: where it can't be told what a bracket belongs to.
    """
    try:
        return "".join(_Header([m[0] for m in _TOKEN.finditer(text)]).parts())
    except (IndexError, StopIteration, RuntimeError, ValueError) as error:
        raise NotUnderstood(str(error)) from error


class _Header:
    """The tokens of a header; a statement runs to a semicolon or to a brace."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.scopes: list[str] = []

    def parts(self) -> Iterator[str]:
        """Yield the header's text, a statement at a time."""
        start = at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token in ("(", "["):
                at = self.closing(at) + 1
            elif token in (";", "}") or (token == ":" and self.is_label(start, at)):
                if token == "}":
                    self.scopes.pop()
                at += 1
                yield self.text(start, at)
                start = at
            elif token == "{":
                at, written = self.braced(start, at)
                if written is not None:
                    yield written
                    start = at
            else:
                at += 1
        yield self.text(start, at)

    def braced(self, start: int, at: int) -> tuple[int, str | None]:
        """Return where to go on behind a brace and what to write of its statement, None where that isn't at its end."""
        places, words = self.outermost(start, at)
        scope = next((words[k:] for k in reversed(range(len(words))) if words[k] in _SCOPES), [])
        unnamed = scope[:1] == ["namespace"] and len(scope) == 1
        if "template" in words or unnamed or scope[:1] in (["enum"], ["union"]):
            end = self.closing(at) + 1
            return end, self.text(start, end)
        if (scope and "(" not in scope) or (words[:1] == ["extern"] and len(words) == 2):
            self.scopes.append(scope[0] if scope else "extern")
            return at + 1, self.text(start, at + 1)
        operator = words.index("operator") if "operator" in words else None
        parameters = _parameters(words, operator)
        if parameters is None or (operator is None and "=" in words):
            return self.closing(at) + 1, None  # a value's initialiser
        rest = words[parameters + 1 :]
        signature = places[parameters + 1 + rest.index(":")] if ":" in rest else at
        end = self.closing(self.body(at) if signature < at else at) + 1
        return end, self.declaration(start, signature, end, words[:parameters], operator)

    def declaration(self, start: int, signature: int, end: int, names: list[str], operator: int | None) -> str:
        """Return what is written of a function; `names` are the words in front of its parameters."""
        whole = self.text(start, end)
        member = self.scopes[-1:] in (["class"], ["struct"])
        if "auto" in names or any("constexpr" in n.lower() for n in names) or ("static" in names and not member):
            return whole
        name = len(names) - 1 if operator is None else operator
        if names[name - 1] == "~":
            name -= 1
        # What is defined outside of its class was declared in it.
        qualified = not member and name > 0 and names[name - 1] == "::"
        text = "" if qualified else _INLINE.sub("", self.text(start, signature)).rstrip() + ";"
        return text + "\n" * (whole.count("\n") - text.count("\n"))

    def body(self, at: int) -> int:
        """Return the brace of a constructor's body; the one at `at` may be of a member's initialiser."""
        while next(t for t in reversed(self.tokens[:at]) if not _is_blank(t)) not in (")", "}"):
            at = self.closing(at) + 1
            while self.tokens[at] != "{":
                at = self.closing(at) + 1 if self.tokens[at] == "(" else at + 1
        return at

    def outermost(self, start: int, end: int) -> tuple[list[int], list[str]]:
        """Return the places and the tokens of a statement, brackets as their first token, without comments."""
        places = []
        while start < end:
            if not _is_blank(self.tokens[start]):
                places.append(start)
            start = self.closing(start) + 1 if self.tokens[start] in ("(", "[") else start + 1
        return places, [self.tokens[k] for k in places]

    def is_label(self, start: int, at: int) -> bool:
        """Whether a colon ends `public`, `protected` or `private`."""
        return next((t for t in reversed(self.tokens[start:at]) if not _is_blank(t)), "") in ("public", "protected", "private")

    def closing(self, at: int) -> int:
        """Return the place of the bracket that closes the one at `at`."""
        depth = 0
        for k in range(at, len(self.tokens)):
            depth += (self.tokens[k] in ("(", "[", "{")) - (self.tokens[k] in _CLOSING)
            if depth == 0:
                return k
        raise NotUnderstood("a bracket isn't closed")

    def text(self, start: int, end: int) -> str:
        return "".join(self.tokens[start:end])


def _parameters(words: list[str], operator: int | None) -> int | None:
    """Return the place of the parenthesis of a function's parameters, None where there is none."""
    if operator is not None:
        return words.index("(", operator + (2 if words[operator + 1] == "(" else 1))
    end = words.index(":") if ":" in words else len(words)
    named = (k for k in reversed(range(1, end)) if words[k] == "(" and re.match(r"[A-Za-z_]", words[k - 1]))
    return next((k for k in named if words[k - 1] not in _NOT_NAMES), None)


def _is_blank(token: str) -> bool:
    return token.isspace() or token.startswith(("//", "/*")) or token.lstrip().startswith("#")


__all__ = ["NotUnderstood", "declared"]
