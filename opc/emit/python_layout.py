"""Lays out generated Python calls as common formatters do: on one line, on an indented line, or one argument a line."""

from __future__ import annotations

from collections.abc import Sequence

from opc.emit.python_text import WIDTH


def tupled(head: str, items: Sequence[str], indent: int = 4) -> str:
    """Return `head` followed by a tuple of the items, broken where the line would be too long."""
    if len(items) != 1:
        return bracketed(f"{head}(", items, ")", indent)
    margin = " " * indent
    line = f"{margin}{head}({items[0]},)"
    return line if len(line) <= WIDTH else f"{margin}{head}(\n{margin}    {items[0]},\n{margin})"


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
