"""Lays out generated Python calls as common formatters do: on one line, on an indented line, or one argument a line."""

from __future__ import annotations

from collections.abc import Sequence

from opc.emit.python_text import WIDTH


def tupled(head: str, items: Sequence[str], indent: int = 4, tail: str = "") -> str:
    """Return `head`, a tuple of the items and `tail`, broken where the line would be too long."""
    margin = " " * indent
    line = f"{margin}{head}({', '.join(items)}{',' if len(items) == 1 else ''}){tail}"
    if len(line) <= WIDTH:
        return line
    lines = "".join(f"{margin}    {item},\n" for item in items)
    return f"{margin}{head}(\n{lines}{margin}){tail}"


def unless_any(conditions: Sequence[str], indent: int = 4) -> str:
    """Return the head of a statement for the case that none of the conditions holds."""
    margin = " " * indent
    joined = " or ".join(conditions)
    if len(conditions) == 1 and " not in " not in joined and " in " in joined and " and " not in joined:
        return f"{margin}if {joined.replace(' in ', ' not in ')}:"
    if indent + len(joined) + len("if not ():") <= WIDTH:
        return f"{margin}if not ({joined}):"
    if indent + 4 + len(joined) <= WIDTH:
        return f"{margin}if not (\n{margin}    {joined}\n{margin}):"
    lines = f"\n{margin}    or ".join(conditions)
    return f"{margin}if not (\n{margin}    {lines}\n{margin}):"


def bracketed(head: str, items: Sequence[str], tail: str = ")", indent: int = 4) -> str:
    """Return `head`, which ends in an opening bracket, the items and `tail`, broken where the line would be too long."""
    margin = " " * indent
    joined = ", ".join(items)
    if indent + len(head) + len(joined) + len(tail) <= WIDTH or not items:
        return f"{margin}{head}{joined}{tail}"
    if indent + 4 + len(joined) <= WIDTH:
        return f"{margin}{head}\n{margin}    {joined}\n{margin}{tail}"
    lines = "".join(f"{margin}    {item},\n" for item in items)
    return f"{margin}{head}\n{lines}{margin}{tail}"
