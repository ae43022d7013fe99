"""Points at which facts hold: an expression that is negative at one of them has no proof, and none need be looked for.

A search that fails has looked at everything, while one that succeeds mostly ends at once, so that nearly all the time of a prover
would be spent on what does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from opc.ir.affine import Affine, AttrInt, Index, Symbol

_SIZES_AND_ATTRIBUTES = ((1, 1), (2, 2), (8, 1), (7, 2), (5, 0), (6, -1))
"""What all sizes and all attributes are: at one of these, most reads that may be outside of an operand are."""


class Examples:
    """Points of the ranges of index variables (outermost first) at which no fact is negative, each found when it is needed."""

    def __init__(self, facts: Sequence[Affine], ranges: Mapping[str, Affine]) -> None:
        self._facts, self._ranges = facts, ranges
        self._found: list[_Point] = []
        self._more, self._lock = self._search(), Lock()

    def refute(self, f: Affine) -> bool:
        """Whether `f` is negative at one of the points."""
        return any((value := point.value(f)) is not None and value < 0 for point in self._points())

    def _points(self) -> Iterator[_Point]:
        seen = 0
        while True:
            with self._lock:
                if seen == len(self._found):
                    point = next(self._more, None)
                    if point is None:
                        return
                    self._found.append(point)
                point = self._found[seen]
            yield point
            seen += 1

    def _search(self) -> Iterator[_Point]:
        for size, attribute in _SIZES_AND_ATTRIBUTES:
            # Each index begins or ends its range; or every second one begins it, and the others end it.
            for ends in ((False, False), (True, True), (False, True), (True, False))[: 4 if len(self._ranges) > 1 else 2]:
                point = _Point(size, attribute)
                if all(point.enter(name, e, ends[n % 2]) for n, (name, e) in enumerate(self._ranges.items())) and all(
                    (value := point.value(fact)) is not None and value >= 0 for fact in self._facts
                ):
                    yield point


class _Point:
    """The values of all sizes, all attributes, and each index variable."""

    def __init__(self, size: int, attribute: int) -> None:
        self.size, self.attribute = size, attribute
        self.indices: dict[str, int] = {}
        self.values: dict[str, str] = {}
        """The value of each str attribute: the first one that is asked for."""

    def enter(self, index: str, extent: Affine, last: bool) -> bool:
        """Put an index at an end of its range; return whether it has one."""
        count = self.value(extent)
        self.indices[index] = (count or 1) - 1 if last else 0
        return count is not None and count > 0

    def value(self, f: Affine) -> int | None:
        """Return the value of `f`, None where it has none: a divisor is zero, or an index is not known."""
        try:
            return f.evaluate(self._of)
        except (KeyError, ZeroDivisionError):
            return None

    def _of(self, symbol: Symbol) -> int:
        if isinstance(symbol, Index):
            return self.indices[symbol.name]
        if not isinstance(symbol, AttrInt):
            return self.size
        if symbol.text is not None:
            return int(self.attribute > 0 and self.values.setdefault(symbol.name, symbol.text) == symbol.text)
        return max(min(self.attribute, 1), 0) if symbol.flag else self.attribute
