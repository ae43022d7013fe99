"""Text that spec authors wrote, put into generated C and C++ so that it stays text: string literals and comments."""

from __future__ import annotations

import textwrap
from functools import lru_cache

from opc.ir.dtypes import INT64_MIN
from opc.names import in_words

WIDTH = 110
"""Line length of generated C and C++."""


def whole_number(value: int) -> str:
    """Return a whole number as C++ writes it: it has no literal for the least one, whose digits alone are too many."""
    return "INT64_MIN" if value == INT64_MIN else str(value)


@lru_cache(maxsize=1 << 14)
def string_literal(text: str) -> str:
    """Return `text` as a C string literal; bytes beyond ASCII are octal escapes, and no trigraph can form."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\?':
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def message_literal(text: str) -> str:
    """Return a part of a message as a C string literal, with the names in it as the spec spells them."""
    return string_literal(in_words(text))


def commented(text: str) -> str:
    """Return `text` as it may stand in a comment, which it neither ends nor begins."""
    clean = " ".join((text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)).split())
    return clean.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


@lru_cache(maxsize=1 << 12)
def comment(text: str, indent: int = 0) -> str:
    """Return `text` as a block comment, indented by `indent` spaces, without a final line break."""
    margin = " " * indent
    whole, width = f"{commented(text)} */", WIDTH - indent - 3
    lines = [whole] if len(whole) <= width else textwrap.wrap(whole, width)
    return "\n".join(f"{margin}{'/* ' if i == 0 else ' * '}{line}" for i, line in enumerate(lines))
