"""Lays out generated Python calls as common formatters do: on one line, on an indented line, or one argument a line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from opc.emit.python.text import WIDTH, Bracket


def tupled(head: str, items: Sequence[str], indent: int = 4, tail: str = "") -> str:
    """Return `head`, a tuple of the items and `tail`, broken where the line would be too long."""
    margin = " " * indent
    line = f"{margin}{head}({', '.join(items)}{',' if len(items) == 1 else ''}){tail}"
    if len(line) <= WIDTH:
        return line
    lines = "".join(f"{margin}    {item},\n" for item in items)
    return f"{margin}{head}(\n{lines}{margin}){tail}"


def unless_any(conditions: Sequence[str]) -> str:
    """Return the head of a function's statement for the case that none of the conditions holds."""
    joined = " or ".join(conditions)
    # A text in the condition may hold these words too.
    if len(conditions) == 1 and " in " in joined:
        match ast.parse(joined, mode="eval").body:
            case ast.Compare(left=left, ops=[ast.In()]):
                element = _source(joined, left)
                return f"    if {element} not in {joined.removeprefix(element + ' in ')}:"
    if 4 + len(joined) + len("if not ():") <= WIDTH:
        return f"    if not ({joined}):"
    if 8 + len(joined) <= WIDTH:
        return f"    if not (\n        {joined}\n    ):"
    lines = "\n        or ".join(conditions)
    return f"    if not (\n        {lines}\n    ):"


def bracketed(head: str, items: Sequence[str | Bracket], tail: str = ")", indent: int = 4) -> str:
    """Return `head`, which ends in an opening bracket, the items and `tail`, broken where the line would be too long."""
    margin = " " * indent
    joined = ", ".join(map(str, items))
    if indent + len(head) + len(joined) + len(tail) <= WIDTH or not items:
        return f"{margin}{head}{joined}{tail}"
    if indent + 4 + len(joined) <= WIDTH:
        return f"{margin}{head}\n{margin}    {joined}\n{margin}{tail}"
    rows = [item.render(indent + 4, 1) if isinstance(item, Bracket) else item for item in items]
    lines = "".join(f"{margin}    {row},\n" for row in rows)
    return f"{margin}{head}\n{lines}{margin}{tail}"


def laid_out(line: str) -> str:
    """Return a line of a function's body, broken as a formatter does where it is too long: at the brackets of its last call.

    What is no call gets brackets around it, and is broken at its operators if it must. Lines that hold line breaks already are
    left as they are.
    """
    if len(line) <= WIDTH or "\n" in line:
        return line
    if line.isascii():
        return _broken(line)
    # The parser counts bytes: what takes several is stood in for by a sign that no line holds, and put back in order.
    others = iter(c for c in line if not c.isascii())
    return re.sub("\x01", lambda m: next(others), _broken(re.sub(r"[^\x00-\x7f]", "\x01", line)))


@lru_cache(maxsize=1 << 12)
def _broken(line: str) -> str:
    """As `laid_out`, of a line that is too long: the functions of a family have many in common."""
    text = line.strip()
    indent = len(line) - len(text)
    if text == "else:":
        return line
    if text.endswith(":"):
        condition = ast.parse(text + " ...").body[0]
        if not isinstance(condition, ast.If):
            return line
        match condition.test:
            case ast.BoolOp(values=[_, last]) if text.endswith("):") and text[last.col_offset - 1] == "(":
                # What ends in brackets needs none of its own.
                inner = _parts(text[3 : last.col_offset - 1], last, text, indent, ":")
                return inner[:indent] + "if " + inner[indent:]
        return _parts("if ", condition.test, text, indent, ":")
    statement = ast.parse(text).body[0]
    value = statement.value if isinstance(statement, ast.Assign | ast.Expr | ast.Return) else None
    if value is None:
        return line
    head = text[: value.col_offset]
    if isinstance(value, ast.Call) and value.end_col_offset == len(text):
        opening = indent + len(head) + len(_source(text, value.func)) + 1
        match statement:
            case ast.Assign(targets=[ast.List() as target]) if opening > WIDTH:
                margin = " " * indent
                if indent + len(head) + 1 <= WIDTH:
                    return f"{margin}{head}(\n{margin}    " + _call("", value, text, indent + 4, "") + f"\n{margin})"
                rows = "".join(f"{margin}    {_source(text, e)},\n" for e in target.elts)
                return f"{margin}[\n{rows}{margin}" + _call("] = ", value, text, indent, "")
        return " " * indent + _call(head, value, text, indent, "")
    match value:
        case ast.List(elts=elements) if value.end_col_offset == len(text):
            margin = " " * indent
            rows = "".join(f"{margin}    {_source(text, e)},\n" for e in elements)
            return f"{margin}{head}[\n{rows}{margin}]"
        case ast.BinOp(left=ast.Call(args=[_]) as left, right=ast.Name()) if text[value.col_offset] == "(":
            # Nor does what begins with some: it is broken at those of its call.
            return " " * indent + _call(head, left, text, indent, text[left.end_col_offset :])
    return _parts(head, value, text, indent, "")


def _call(head: str, call: ast.Call, text: str, indent: int, tail: str) -> str:
    """Return a call behind `head`: on one line, its arguments on one line, or each on its own and broken in turn."""
    margin = " " * indent
    source = _source(text, call)
    if indent + len(head) + len(source) + len(tail) <= WIDTH:
        return f"{head}{source}{tail}"
    function = text[call.col_offset : call.func.end_col_offset]
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    items = [_source(text, a) for a in arguments]
    joined = ", ".join(items)
    if indent + 4 + len(joined) <= WIDTH:
        return f"{head}{function}(\n{margin}    {joined}\n{margin}){tail}"
    rows = [
        _call("", a, text, indent + 4, ",") if isinstance(a, ast.Call) else f"{item},"
        for a, item in zip(arguments, items, strict=True)
    ]
    return f"{head}{function}(\n" + "".join(f"{margin}    {row}\n" for row in rows) + f"{margin}){tail}"


def _source(text: str, node: ast.expr | ast.keyword) -> str:
    """Return the source of a node in a text of one line."""
    return str(ast.get_source_segment(text, node)) if not text.isascii() else text[node.col_offset : node.end_col_offset]


def _parts(head: str, value: ast.expr, text: str, indent: int, tail: str) -> str:
    """Return an expression in brackets of its own, with one operand of its outermost operator a line where it needs that."""
    margin = " " * indent
    source = text[value.col_offset : value.end_col_offset]
    parts = [source]
    if indent + 4 + len(source) > WIDTH:
        places = sorted(_breaks(value, text))
        parts = [source[i:j].strip() for i, j in pairwise([0, *(p - value.col_offset for p in places), len(source)])]
    rows = "".join(f"{margin}    {part}\n" for part in parts)
    return f"{margin}{head}(\n{rows}{margin}){tail}"


def _breaks(value: ast.expr, text: str) -> Iterator[int]:
    """Yield where the operators of an expression's outermost kind stand."""
    match value:
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
            if text[value.col_offset] != "(":
                yield from _breaks(left, text)
            yield text.rindex("+" if isinstance(value.op, ast.Add) else "-", 0, right.col_offset)
        case ast.BoolOp(values=values):
            word = "and" if isinstance(value.op, ast.And) else "or"
            for operand in values[1:]:
                yield text.rindex(word, 0, operand.col_offset)
        case ast.IfExp():
            yield text.rindex("if", 0, value.test.col_offset)
            yield text.rindex("else", 0, value.orelse.col_offset)
