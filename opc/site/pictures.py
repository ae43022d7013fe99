"""Pictures of what elements of an output are read from, as SVG that takes its colours from the page.

An array is cut into matrices, its last two axes. A letter stands for one element of the output and marks all that it is read
from; places outside of an input have dashed lines. An arrow leads from an index to what it chooses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from opc.records import dataclass
from opc.site.reads import Sample, panels
from opc.site.texts import words
from opc.testing.lineage import Element, Point
from opc.testing.oracle.bounds import Array

LETTERS = "ABC"
"""What the chosen elements of the output are called."""

MOST_LINKS = 12
"""How many arrows a picture has at most; where there are more, it has none."""

_CELL, _GAP, _BETWEEN, _TOP = 26, 12, 44, 40


@dataclass(frozen=True, slots=True)
class _Block:
    """An operand in the picture: where its first element stands, which letters its elements have, and what lies around it."""

    name: str
    shape: Point
    marks: Mapping[Point, str]
    numbers: Array | None
    x: float
    before: tuple[int, int]
    behind: tuple[int, int]

    @property
    def rows(self) -> int:
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1

    @property
    def pitch(self) -> float:
        """How far one matrix stands behind the other."""
        return (self.before[1] + self.columns + self.behind[1]) * _CELL + _GAP

    @property
    def title(self) -> str:
        return f"{self.name}: {' × '.join(map(str, self.shape)) or 'one number'}"

    @property
    def width(self) -> float:
        """How wide the matrices are, or what stands above them."""
        return max(panels(self.shape) * self.pitch - _GAP, 8 * len(self.title))

    @property
    def height(self) -> float:
        return _TOP + (self.before[0] + self.rows + self.behind[0]) * _CELL

    def corner(self, panel: int) -> tuple[float, float]:
        """Return where a matrix begins."""
        return self.x + panel * self.pitch + self.before[1] * _CELL, _TOP + self.before[0] * _CELL

    def place(self, at: Point) -> tuple[float, float]:
        """Return where an element stands: its upper left corner."""
        padded = (0,) * (2 - len(at)) + at
        panel = 0
        for i, size in zip(padded[:-2], self.shape[:-2]):
            panel = panel * size + min(max(i, 0), size - 1)
        x, y = self.corner(panel)
        return x + padded[-1] * _CELL, y + padded[-2] * _CELL


def svg(sample: Sample, label: str, title: str) -> str:
    """Return the picture of a call as one line of SVG; `label` begins the ids in it, `title` is told by screen readers."""
    letters = dict(zip(sample.reads, LETTERS))
    blocks = _blocks(sample, letters)
    arrows = list(_arrows(sample, {b.name: b for b in blocks}, letters))
    width, height = blocks[-1].x + blocks[-1].width + 2, max(b.height for b in blocks) + (24 if arrows else 2)
    parts = [*(text for b in blocks for text in _drawn(b)), *arrows]
    return (
        f'<svg class="opc-reads" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-labelledby="{label}-title {label}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{label}-title">{words(title)}</title><desc id="{label}-desc">{words(" ".join(told(sample)))}</desc>'
        f"{''.join(parts)}</svg>"
    )


def told(sample: Sample) -> list[str]:
    """Return what a picture shows in words, a sentence for each chosen element of the output."""
    found = []
    for (at, r), letter in zip(sample.reads.items(), LETTERS):
        parts = []
        for name in sample.inputs:
            inside, outside = r.elements.get(name, []), r.outside.get(name, [])
            beyond = f" and {len(outside)} outside of it" if outside else ""
            parts += (
                [f"{_places(name, inside)}{beyond}"]
                if inside
                else [f"{len(outside)} places outside of {name}"]
                if outside
                else []
            )
        found.append(f"{letter}: {_element(sample.output, at)} is read from {'; '.join(parts) or 'nothing'}.")
    return found


def _element(name: str, at: Point) -> str:
    return f"{name}[{', '.join(map(str, at))}]" if at else name


def _places(name: str, points: Sequence[Point]) -> str:
    """Return elements in words: as ranges where they are all elements of these, else one by one, the first ones at least."""
    axes = [sorted(set(axis)) for axis in zip(*points)]
    if math.prod(map(len, axes)) == len(set(points)):
        return f"{name}[{', '.join(map(_range, axes))}]" if axes else name
    named = [_element(name, p) for p in sorted(set(points))]
    rest = f" and {len(named) - 6} more" if len(named) > 6 else ""
    return ", ".join(named[:6]) + rest


def _range(values: Sequence[int]) -> str:
    """Return numbers as a range, with its step where that is not 1; or one by one."""
    steps = {b - a for a, b in pairwise(values)}
    if len(values) < 3 or len(steps) != 1:
        return " and ".join(map(str, values))
    (step,) = steps
    return f"{values[0]} to {values[-1]}" + ("" if step == 1 else f" by {step}")


def _blocks(sample: Sample, letters: Mapping[Point, str]) -> list[_Block]:
    """Return the inputs in order and the output behind them."""
    found: list[_Block] = []
    x = 2.0
    for name in (*sample.inputs, sample.output):
        array = sample.inputs.get(name)
        marks: dict[Point, str] = {}
        for at, r in sample.reads.items():
            read = (at,) if array is None else (*r.elements.get(name, ()), *r.outside.get(name, ()))
            for p in dict.fromkeys(read):
                marks[p] = marks.get(p, "") + letters[at]
        shape = sample.shape if array is None else array.shape
        numbers = array if array is not None and array.dtype.kind in "iu" else None
        block = _Block(name, shape, marks, numbers, x, *_around(shape, marks))
        found.append(block)
        x += block.width + _BETWEEN
    return found


def _around(shape: Point, marks: Mapping[Point, str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many rows and columns with marks lie before an array, and how many behind it."""
    sizes = (1, 1, *shape)[-2:]
    places = [(0, 0, *p)[-2:] for p in marks]
    before = tuple(max((-p[k] for p in places), default=0) for k in (0, 1))
    behind = tuple(max((p[k] - sizes[k] + 1 for p in places), default=0) for k in (0, 1))
    return (max(before[0], 0), max(before[1], 0)), (max(behind[0], 0), max(behind[1], 0))


def _drawn(block: _Block) -> Iterator[str]:
    """Yield the parts of an operand: its name and shape, lines, marks, numbers."""
    yield f'<text x="{block.x:g}" y="16">{words(block.title)}</text>'
    yield f'<path class="opc-cells" d="{"".join(_grid(block))}"/>'
    for at, found in sorted(block.marks.items()):
        x, y = block.place(at)
        outside = any(not 0 <= i < size for i, size in zip(at, block.shape))
        kind = f"opc-{found.lower()}" if len(found) == 1 else "opc-many"
        yield f'<rect class="{kind}{" opc-outside" if outside else ""}" x="{x:g}" y="{y:g}" width="{_CELL}" height="{_CELL}"/>'
    if block.numbers is not None:
        for at in np.ndindex(block.shape):
            x, y = block.place(at)
            mark = block.marks.get(at, "")
            yield _text(x, y - (3 if mark else 0), str(block.numbers[at]))
            if mark:
                yield f'<text class="opc-mark" x="{x + _CELL - 2}" y="{y + _CELL - 3:g}" text-anchor="end">{mark}</text>'
        return
    for at, found in sorted(block.marks.items()):
        yield _text(*block.place(at), found, "opc-three" if len(found) > 2 else "")


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x + _CELL / 2:g}" y="{y + _CELL / 2 + 4.5:g}" text-anchor="middle">{text}</text>'


def _grid(block: _Block) -> Iterator[str]:
    for panel in range(panels(block.shape)):
        x, y = block.corner(panel)
        for row in range(block.rows + 1):
            yield f"M{x:g} {y + row * _CELL:g}h{block.columns * _CELL}"
        for column in range(block.columns + 1):
            yield f"M{x + column * _CELL:g} {y:g}v{block.rows * _CELL}"


def _arrows(sample: Sample, blocks: Mapping[str, _Block], letters: Mapping[Point, str]) -> Iterator[str]:
    """Yield an arrow for each index and what it chooses."""
    links: dict[tuple[Element, Element], str] = {}
    for at, r in sample.reads.items():
        for link in r.links:
            links.setdefault(link, letters[at])
    if len(links) > MOST_LINKS:
        return
    for ((source, start), (target, end)), letter in links.items():
        if source not in blocks or target not in blocks:
            continue
        (x, y), (u, v) = blocks[source].place(start), blocks[target].place(end)
        # It begins below the index, beside which others stand, and ends at the near side of the element.
        x, y, tip = x + _CELL / 2, y + _CELL, 7 if u > x else -7
        u, v = u + (0 if u > x else _CELL), v + _CELL / 2
        bend = (u - x) / 2
        kind, line = f"opc-{letter.lower()}", f"M{x:g} {y:g}C{x:g} {y + 30:g} {u - bend:g} {v:g} {u - tip:g} {v:g}"
        yield f'<path class="opc-link {kind}" d="{line}"/><path class="opc-tip {kind}" d="M{u:g} {v:g}l{-tip} -4v8z"/>'


__all__ = ["svg", "told"]
