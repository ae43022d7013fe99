"""Breaks long lines of generated C++, and names the members of the struct of a call's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opc.emit.cpp.text import WIDTH
from opc.ir.affine import Dim, GroupSize
from opc.ir.expr import ELLIPSIS
from opc.ir.node import remembered
from opc.ir.op import Op

ARGUMENTS = "call_arguments"
"""The struct of what the loops of a family take beside their operands."""

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"?|([\[({])|([\])}])'
    r"| (?:(?<=, )()|(?=[?:] )()|(?=\|\| )()|(?=&& )()|(?=[=!]= )()|(?=[<>]=? )()|(?=[+-] )()|(?=[*/] )()|(?<== )())"
)
"""Literals, in which nothing counts, brackets, and the blanks that a line may be broken at: behind a comma, before an operator,
the loosest binding first, and behind `=`."""

_OPEN, _CLOSE, _COMMA, _CHOICE, _EQUALS = 1, 2, 3, 4, 11
"""The groups of these tokens; those of operators follow that of `?` and `:`, which bind as loosely as commas."""


def wrapped(lines: Iterable[str]) -> list[str]:
    """Return lines of statements as lines of at most WIDTH columns, as `wrap` does."""
    found: list[str] = []
    for line in lines:
        if len(line) <= WIDTH:
            found.append(line)
        else:
            found += wrap(line)
    return found


def wrap(line: str) -> list[str]:
    """Return a statement as lines of at most WIDTH columns, broken at its loosest operators or after commas.

    Comments and lines without a place to break stay as they are.
    """
    if len(line) <= WIDTH or line.lstrip().startswith(("/*", "*", "//", "#")):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    places = _places(line, len(indent))
    if not places:
        return [line]
    rank = min(r for r, _ in places)
    after_equals = next((at for r, at in places if r[0] == _LAST_RESORT), None)
    if after_equals is not None and (rank[0] == _LAST_RESORT or len(indent) + len(line) - after_equals - 1 <= WIDTH):
        return [line[:after_equals], *wrap(indent + line[after_equals + 1 :])]
    # All the places of one level break together where one would not do.
    cuts = [at for r, at in places if r == rank]
    lines = [line[: cuts[0]]]
    for begin, end in zip(cuts, [*cuts[1:], len(line)]):
        piece = line[begin + 1 : end]
        joined = f"{lines[-1]} {piece}"
        fills = lines[-1].endswith(",") or len(lines) > 1
        if fills and len(joined) <= WIDTH and not piece.startswith(("? ", ": ")):
            lines[-1] = joined
        else:
            lines.append(indent + piece)
    return [deeper for rest in lines for deeper in wrap(rest)]


_LAST_RESORT = 1000


def _places(line: str, start: int) -> list[tuple[tuple[int, int], int]]:
    """Return where a line may be broken, with a rank: depth of brackets and looseness of the operator."""
    places = []
    depth = 0
    for token in _TOKEN.finditer(line):
        kind = token.lastindex
        if kind is None:
            continue
        if kind == _OPEN:
            depth += 1
        elif kind == _CLOSE:
            depth -= 1
        elif (at := token.start()) > start:
            if kind == _EQUALS:
                if at < WIDTH:
                    places.append(((_LAST_RESORT, 0), at))
            else:
                places.append(((depth, max(kind - _CHOICE, 0)), at))
    return places


def size_member(symbol: Dim | GroupSize) -> str:
    """Return the member of the arguments struct that holds a size."""
    if isinstance(symbol, Dim):
        return symbol.name
    return f"size_{'ellipsis' if symbol.name == ELLIPSIS else symbol.name}"


def present_member(operand: str) -> str:
    """Return the member of the arguments struct that says whether an optional operand was given."""
    return f"has_{operand}"


@remembered("_spec_names")
def spec_names(op: Op) -> frozenset[str]:
    """Return every name the spec gave."""
    operands = (*op.inputs, *op.outputs, *op.temporaries)
    return frozenset((*(o.name for o in operands), *(a.name for a in op.attributes), *(t.name for t in op.types)))
