"""Results that blocks of rows add up: sums over rows, such as the gradient by the keys of attention.

What a block of rows at one point of the leading axes adds to such a sum is what the statement gives of these rows alone. Slices
that add to one element follow each other, as the heads of queries that read one head of keys, or are all along a leading axis
that the result lacks, as the batches that add to the gradient by the slope of a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opc.analysis.bounds.knowledge import Knowledge, knowledge_of
from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.expr import Axis, GroupIndex, GroupRef, IndexValue, Read, Reduce, walk
from opc.ir.op import Assign, Op
from opc.lower.places import Places
from opc.records import dataclass

MOST_SUMMED = 8
"""How many outputs blocks can add up: `most_summed` of `opc/rows/summed_slices.h`."""


@dataclass(frozen=True, slots=True)
class Summed:
    """Outputs that are sums over rows, of which each block of rows gives an addend.

    So many slices as `members`, one after the other, add to the same elements. `axes` are those of which a slice has one element;
    `absent` are the positions of the leading axes that an output is summed over as well, for those that are.
    """

    outputs: tuple[str, ...]
    members: Affine
    axes: Mapping[str, Mapping[int, Affine]]
    absent: Mapping[str, tuple[int, ...]]


def summed_of(ops: Sequence[Op], names: Sequence[str], leading: tuple[str, ...], row: str, places: Places) -> Summed | None:
    """Return the outputs of these names as sums over the rows of this size; None where they are others, or need more."""
    if len(names) > MOST_SUMMED:
        return None
    sums: dict[str, _Found] = {}
    for op in ops:
        for s in op.body:
            if s.target in names:
                found = _Sum(op, s, leading, row, places).found()
                if found is None or sums.setdefault(s.target, found) != found:
                    return None
    last = len(leading) - 1
    several = {f.members for f in sums.values() if last not in f.absent} or {Affine.of(1)}
    if len(several) > 1 or sums.keys() != set(names):
        return None
    absent = {name: f.absent for name, f in sums.items() if f.absent}
    return Summed(tuple(names), several.pop(), {name: f.axes for name, f in sums.items()}, absent)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to say of one output: see `Summed`."""

    axes: Mapping[int, Affine]
    members: Affine
    absent: tuple[int, ...]


class _Sum:
    """One statement, a sum over rows and the points of leading axes."""

    def __init__(self, op: Op, s: Assign, leading: tuple[str, ...], row: str, places: Places) -> None:
        self.op, self.s, self.leading, self.row, self.places = op, s, leading, row, places
        self.knowledge: Knowledge = knowledge_of(op)

    def found(self) -> _Found | None:
        """Return the axes of the target of which a slice has one element, and which slices add to that."""
        value = self.s.value
        if not isinstance(value, Reduce) or value.kind != "sum" or not all(isinstance(a, Axis) for a in value.axes):
            return None
        axes = value.extents
        rows = [n for n, extent in axes.items() if extent == Affine.of(Dim(self.row))]
        reads = [e for e in walk(value.body) if isinstance(e, Read)]
        points = self._points(reads)
        if len(rows) != 1 or points is None:
            return None
        placed: dict[int, Affine] = {}
        members, bound, absent = Affine.of(1), {rows[0]}, []
        for n, (size, point) in enumerate(zip(self.leading, points, strict=True)):
            if point.index in axes and axes[point.index] == Affine.of(Dim(size)) and point.index not in bound:
                absent.append(n)
                bound.add(point.index)
                continue
            taken = self._target(size, point, axes)
            if taken is None or (taken[2] is not None and size != self.leading[-1]):
                return None
            at, place, member = taken
            placed[at] = place
            if member is not None:
                members = axes[member]
                bound.add(member)
        used = {*bound, *(str(self.s.indices[n]) for n in placed)}
        at_point: dict[Symbol, Affine] = {Index(d): p for d, p in zip(self.leading, points, strict=True)}
        if len(placed) + len(absent) < len(self.leading) or not self._stays(value, reads, at_point, rows[0], used):
            return None
        dims = self.op.operand(self.s.target).dims
        if any(self._asks(d, used) for n, d in enumerate(dims) if n not in placed):
            return None
        if any(self._asks(extent, used) for n, extent in axes.items() if n not in bound):
            return None
        return _Found(placed, members, tuple(absent))

    def _points(self, reads: Iterable[Read]) -> tuple[Affine, ...] | None:
        """Return the point of each leading axis at which the body reads what has these axes."""
        points: dict[str, Affine] = {}
        for e in reads:
            for n, place in self.places.of(self.op, e.operand, self.leading).items():
                index = e.indices[n]
                if place.index is not None and isinstance(index, Affine):
                    points.setdefault(place.index, index)
        return tuple(points[d] for d in self.leading) if points.keys() == set(self.leading) else None

    def _target(self, size: str, point: Affine, axes: Mapping[str, Affine]) -> tuple[int, Affine, str | None] | None:
        """Return the axis of the target that a point of a leading axis adds to, where in it, and the loop over all that do."""
        dims = self.op.operand(self.s.target).dims
        for n, (index, dim) in enumerate(zip(self.s.indices, dims, strict=True)):
            if not isinstance(index, str) or not isinstance(dim, Affine) or not isinstance(dim.single, Dim):
                continue
            if dim.single.name not in self.places.sizes or index not in point.indices():
                continue
            if point.index == index:
                return (n, Affine.of(Index(size)), None) if dim == Affine.of(Dim(size)) else None
            for member, extent in axes.items():
                whole = self.knowledge.same(dim * extent, Affine.of(Dim(size)))
                if whole and point == extent * Index(index) + Index(member):
                    return n, Affine.of(Index(size)) // extent, member
        return None

    def _stays(self, value: Reduce, reads: Sequence[Read], at: Mapping[Symbol, Affine], row: str, used: set[str]) -> bool:
        """Whether the body reads, of what has rows or leading axes, the element of its own row and point.

        It may ask which row that is, and how many there are.
        """
        numbers: Mapping[Symbol, Affine] = {Index(row): Affine.of(0), Dim(self.row): Affine.of(1)}
        for e in walk(value.body):
            if isinstance(e, Reduce) and used & set(e.extents):
                return False
            if isinstance(e, GroupIndex):
                return False
            if isinstance(e, IndexValue) and self._asks(e.value.substitute(numbers.get), used):
                return False
        for e in reads:
            if e.pad is not None or e.checked:
                return False
            places = self.places.of(self.op, e.operand, self.leading)
            for n, (index, dim) in enumerate(zip(e.indices, self.op.operand(e.operand).dims, strict=True)):
                if n in places:
                    stays = index == places[n].substitute(at.get)
                elif dim == Affine.of(Dim(self.row)):
                    stays = index == Affine.of(Index(row))
                else:
                    stays = not (self._asks(index, used) or self._asks(dim, used))
                if not stays:
                    return False
        return True

    def _asks(self, e: object, used: set[str]) -> bool:
        """Whether an expression needs rows, a point of leading axes, or how many there are."""
        if isinstance(e, GroupRef):
            return False
        sizes = {Dim(self.row), *(Dim(name) for name in self.places.sizes)}
        return not isinstance(e, Affine) or bool(e.atoms() & sizes or e.indices() & used)
