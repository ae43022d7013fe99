"""Axes that an op takes in parts, such as channels in groups: two axes to its loops.

Where `x[n, g*P + j]` reads an axis of `G*P` points, and other statements name a point of it by one index `c`, with `c // P` for
its part, the axis is one of `G` parts and one of `P` points each. With an index for either, all these accesses are bare, and
statements that walk the whole axis share rows with those that walk the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from opc.analysis.bounds.knowledge import knowledge_of
from opc.ir.affine import Affine, Atom, FloorDiv, Index, Mod
from opc.ir.expr import Axis, Expr, GroupRef, IndexValue, Read, Reduce, ReduceAxis, children, reads, reductions, with_children
from opc.ir.op import Assign, Op, Operand
from opc.lower.rows.flatten import IrregularError
from opc.records import dataclass, replace
from opc.transform.indices import Namer, index_names, op_names

_Pair: TypeAlias = tuple[str, str]
"""The indices of a part, and of a point in it."""


@dataclass(frozen=True, slots=True)
class _Split:
    """An axis of `whole` points in `parts` parts of `size` points."""

    whole: Affine
    parts: Affine
    size: Affine


def with_split_axes(op: Op) -> Op:
    """Return the op with an axis that it takes in parts as two.

    Raises:
        IrregularError: when there is no such axis, or something else is done with it.
    """
    knowledge = knowledge_of(op)
    found = {s for a in op.body for s in _splits(op, a) if knowledge.same(s.whole, s.parts * s.size)}
    if len(found) != 1:
        raise IrregularError("no axis is taken in parts")
    return _AxisSplitter(op, found.pop()).op()


def _extents(op: Op, s: Assign) -> dict[str, Affine]:
    """Return the extent of each index of a statement that has one only."""
    dims = op.operand(s.target).dims
    found = [(i, d) for i, d in zip(s.indices, dims, strict=True) if isinstance(i, str) and isinstance(d, Affine)]
    found += [(a.index, a.extent) for e in reductions(s.value) for a in e.axes if isinstance(a, Axis)]
    return {i: d for i, d in found if all(other == d for name, other in found if name == i)}


def _splits(op: Op, s: Assign) -> Iterator[_Split]:
    """Yield the axes that the reads of a statement take in parts."""
    extents = _extents(op, s)
    for r in reads(s.value):
        for index, whole in zip(r.indices, op.operand(r.operand).dims, strict=True):
            if isinstance(index, Affine) and isinstance(whole, Affine):
                yield from (split for split, _, _ in _places(index, whole, extents))


def _places(index: Affine, whole: Affine, extents: Mapping[str, Affine]) -> Iterator[tuple[_Split, str, str]]:
    """Yield how an axis is split where an index is that of a point of a part, with the indices of these."""
    names = index.indices()
    for part in names if len(names) == 2 else ():
        (point,) = names - {part}
        size = index.coefficient(part)
        if size is None or not names <= extents.keys() or size != extents[point]:
            continue
        # One part, or parts of one point, are the axis itself, which others walk by one index.
        if whole not in (size, extents[part]) and index == size * Affine.of(Index(part)) + Index(point):
            yield _Split(whole, extents[part], size), part, point


class _AxisSplitter:
    def __init__(self, op: Op, split: _Split) -> None:
        self.given, self.split = op, split
        self.namer = Namer(op_names(op) | index_names(op))

    def op(self) -> Op:
        """Return the op with two axes for the one."""
        op = self.given
        inputs, outputs, temporaries = (tuple(map(self._operand, some)) for some in (op.inputs, op.outputs, op.temporaries))
        return replace(op, inputs=inputs, outputs=outputs, temporaries=temporaries, body=tuple(map(self._statement, op.body)))

    def _operand(self, o: Operand) -> Operand:
        s = self.split
        return replace(o, dims=tuple(x for d in o.dims for x in ((s.parts, s.size) if d == s.whole else (d,))))

    def _statement(self, s: Assign) -> Assign:
        names: dict[str, _Pair] = {}
        indices: list[str | GroupRef] = []
        for index, dim in zip(s.indices, self.given.operand(s.target).dims, strict=True):
            indices += self._pair(names, index) if isinstance(index, str) and dim == self.split.whole else [index]
        return replace(s, indices=tuple(indices), value=self._value(s.value, names, _extents(self.given, s)))

    def _pair(self, names: dict[str, _Pair], index: str) -> _Pair:
        names[index] = self.namer.fresh(f"{index}_part"), self.namer.fresh(f"{index}_point")
        return names[index]

    def _value(self, e: Expr, names: Mapping[str, _Pair], extents: Mapping[str, Affine]) -> Expr:
        """Return a value in which the indices `names` are pairs."""
        match e:
            case Reduce():
                inner = dict(names)
                axes: list[ReduceAxis] = []
                for a in e.axes:
                    if isinstance(a, Axis) and a.extent == self.split.whole:
                        part, point = self._pair(inner, a.index)
                        axes += [Axis(part, self.split.parts), Axis(point, self.split.size)]
                    else:
                        axes.append(a)
                return replace(e, axes=tuple(axes), body=self._value(e.body, inner, extents))
            case Read():
                return self._read(e, names, extents)
            case IndexValue():
                return replace(e, value=self._affine(e.value, names))
            case _:
                return with_children(e, tuple(self._value(c, names, extents) for c in children(e)))

    def _read(self, e: Read, names: Mapping[str, _Pair], extents: Mapping[str, Affine]) -> Read:
        if e.checked or e.pad is not None:
            raise IrregularError(f"a read of {e.operand} may fall outside")
        indices: list[Affine | GroupRef] = []
        for index, dim in zip(e.indices, self.given.operand(e.operand).dims, strict=True):
            if isinstance(index, GroupRef):
                indices.append(index)
            elif not isinstance(index, Affine):
                raise IrregularError(f"{e.operand} is indexed by data")
            elif dim == self.split.whole:
                indices += map(Affine.of, self._places(index, names, extents))
            else:
                indices.append(self._affine(index, names))
        return replace(e, indices=tuple(indices))

    def _places(self, index: Affine, names: Mapping[str, _Pair], extents: Mapping[str, Affine]) -> tuple[Index, Index]:
        """Return the indices of the part and of the point in it that an index of the axis stands for."""
        own = names.get(index.index or "")
        if own is not None:
            return Index(own[0]), Index(own[1])
        for s, part, point in _places(index, self.split.whole, extents):
            if s == self.split:
                return Index(part), Index(point)
        raise IrregularError(f"the axis in parts is indexed by {index}")

    def _affine(self, a: Affine, names: Mapping[str, _Pair]) -> Affine:
        """Return an expression with an index of the axis, its part and its point in the part as those of the two axes."""
        return a.map_atoms(lambda atom: self._atom(atom, names))

    def _atom(self, atom: Atom, names: Mapping[str, _Pair]) -> Affine:
        if isinstance(atom, Index) and atom.name in names:
            part, point = names[atom.name]
            return self.split.size * Affine.of(Index(part)) + Index(point)
        own = names.get(atom.numerator.index or "") if isinstance(atom, FloorDiv | Mod) else None
        if own is not None and isinstance(atom, FloorDiv | Mod) and atom.denominator == self.split.size:
            return Affine.of(Index(own[0] if isinstance(atom, FloorDiv) else own[1]))
        if Affine.of(atom).indices() & names.keys():
            raise IrregularError(f"{atom} is no part of an axis")
        return Affine.of(atom)
