"""Breaks long lines of generated C++, and names the members of the struct of a call's arguments."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from opc.emit.cpp.text import WIDTH
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.expr import ELLIPSIS
from opc.ir.node import remembered
from opc.ir.op import Op

ARGUMENTS = "call_arguments"
"""The struct of what the loops of a family take beside their operands."""

_TOKEN = re.compile(
    r'[\[\](){} "](?:(?<=[\[({])()|(?<=[\])}])()|(?<=, )()|(?<= )(?:(?=[?:] )()|(?=\|\| )()|(?=&& )()|(?=[=!]= )()|(?=[<>]=? )()'
    r'|(?=[+-] )()|(?=[*/] )()|(?<== )())|(?<=")(?:\\.|[^"\\])*"?)'
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


def wrap(line: str) -> Sequence[str]:
    """Return a statement as lines of at most WIDTH columns, broken at its loosest operators or after commas.

    Comments and lines without a place to break stay as they are.
    """
    return (line,) if len(line) <= WIDTH else _broken(line)


@lru_cache(maxsize=1 << 12)
def _broken(line: str) -> tuple[str, ...]:
    """As `wrap`, of a line that is too long: what several files of a package have is broken once."""
    text = line.lstrip()
    if text.startswith(_COMMENTS):
        return (line,)
    found: list[str] = []
    _break(text, 0, len(text), len(line) - len(text), _places(text), found)
    return tuple(found)


_COMMENTS = ("/*", "*", "//", "#")
_BEHIND_EQUALS = (1000, 0)
"""The last resort of all places."""
_Place = tuple[int, tuple[int, int]]
"""A blank that a text may be broken at, and its rank: depth of brackets and looseness of the operator."""


def _break(text: str, begin: int, end: int, margin: int, places: Sequence[_Place], found: list[str]) -> None:
    """Add the lines of a part of a text, the first of them behind a margin; `places` are those of the part, in order."""
    # A line is neither broken within its margin nor behind an `=` that it does not reach.
    last, fits = begin + WIDTH - margin, margin + end - begin <= WIDTH or text.startswith(_COMMENTS, begin, end)
    here = [] if fits else [p for p in places if p[0] - begin > 4 and (p[0] < last or p[1] != _BEHIND_EQUALS)]
    if not here:
        found.append(" " * margin + text[begin:end])
        return
    rank, indent = min([r for _, r in here]), margin + 4
    after_equals = next((at for at, r in here if r == _BEHIND_EQUALS), None)
    if after_equals is not None and (rank == _BEHIND_EQUALS or indent + end - after_equals - 1 <= WIDTH):
        found.append(" " * margin + text[begin:after_equals])
        _break(text, after_equals + 1, end, indent, [p for p in places if p[0] > after_equals], found)
        return
    # All the places of one level break together where one would not do.
    cuts = [at for at, r in here if r == rank]
    parts = [(begin, cuts[0])]
    for cut, until in zip(cuts, [*cuts[1:], end]):
        start, stop = parts[-1]
        fills = len(parts) > 1 or text[stop - 1] == ","
        behind = margin if len(parts) == 1 else indent
        if fills and behind + until - start <= WIDTH and not text.startswith(("? ", ": "), cut + 1, until):
            parts[-1] = start, until
        else:
            parts.append((cut + 1, until))
    for start, stop in parts:
        if margin + stop - start <= WIDTH:
            found.append(" " * margin + text[start:stop])
        else:
            _break(text, start, stop, margin, places[bisect_left(places, (start,)) : bisect_left(places, (stop,))], found)
        margin = indent


def _places(text: str) -> list[_Place]:
    """Return where a text may be broken."""
    places: list[_Place] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastindex
        if kind is None:
            continue
        if kind == _OPEN:
            depth += 1
        elif kind == _CLOSE:
            depth -= 1
        else:
            rank = _BEHIND_EQUALS if kind == _EQUALS else (depth, max(kind - _CHOICE, 0))
            places.append((token.start(), rank))
    return places


_KINDS = ("axes_", "dim_", "has_", "size_")


def size_member(symbol: Dim | GroupSize) -> str:
    """Return the member of the arguments struct that holds a size."""
    if isinstance(symbol, Dim):
        # What other members begin with tells their types.
        return f"dim_{symbol.name}" if symbol.name.startswith(_KINDS) else symbol.name
    return f"size_{'ellipsis' if symbol.name == ELLIPSIS else symbol.name}"


def present_member(operand: str) -> str:
    """Return the member of the arguments struct that says whether an optional operand was given."""
    return f"has_{operand}"


@remembered("_spec_names")
def spec_names(op: Op) -> frozenset[str]:
    """Return every name the spec gave."""
    operands = op.operands
    named = (d for o in operands for size in o.dims if isinstance(size, Affine) for d in size.atoms() if isinstance(d, Dim))
    sizes = (*(d.name for d in named), *(name for name, _ in op.dims))
    return frozenset((*(o.name for o in operands), *(a.name for a in op.attributes), *(t.name for t in op.types), *sizes))
