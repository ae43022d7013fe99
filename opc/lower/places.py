"""Where the operands of an op have the points of its leading axes, so that it can be run at one of these points after the other.

Attention of batches and heads that have names of their own, `y[b, h, i, d]`, is one problem for each batch and head. An operand
has such an axis by itself, or an axis of which each point needs one element: a head of queries reads the keys of its group,
`k[b, h * G // H, j, e]`. At one point of the leading axes all these axes have one element, which the op reads at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.expr import Axis, Expr, GroupRef, IndexValue, Read, Reduce, walk
from opc.ir.op import Assign, DimSpec, Op
from opc.records import dataclass

Clamps: TypeAlias = "Mapping[str, frozenset[int]]"
"""The axes of operands, by their positions, along which a slice has the element at its own place, or the last one."""

MOST_PLACED = 256
"""How many axes of operands a slice can have one element of: `most_placed` of `opc/core/slices.h`."""


@dataclass(frozen=True, slots=True)
class Places:
    """What a slice has one element of: `axes` of the inputs that have some, and where that element is in the whole input. Outputs
    have the leading axes, but for those that are there, too.

    The place is an expression of the leading axes' indices, each by the name of its size, and of `sizes`: those of all these
    axes, which a slice has one of. Along an axis that is `clamped` it is the last one where that is less.
    """

    axes: Mapping[str, Mapping[int, Affine]]
    sizes: frozenset[str]
    clamped: Clamps = field(default_factory=dict)

    def of(self, op: Op, name: str, leading: tuple[str, ...]) -> Mapping[int, Affine]:
        """Return the axes of which a slice of an operand has one element, with its place."""
        if name in self.axes or name not in op.assignments:
            return self.axes.get(name, {})
        return {n: Affine.of(Index(d)) for n, d in enumerate(leading)}


def places_of(ops: Sequence[Op], leading: tuple[str, ...], clamped: Clamps) -> Places | None:
    """Return where operands have the points of the leading axes of these sizes; None where a point needs others, or their count.

    Every statement of the ops, which have the same inputs and outputs, runs over these axes first. See
    `opc.lower.clamps.with_clamps` for `clamped`.
    """
    axes: dict[str, Mapping[int, Affine]] = {}
    for op in ops:
        for s in op.body:
            own = _own_indices(op, s, leading)
            if own is None:
                return None
            for e in walk(s.value):
                if isinstance(e, Read) and e.operand not in op.assignments:
                    places = _places(op, own, e, clamped.get(e.operand, frozenset()))
                    if places is None or axes.setdefault(e.operand, places) != places:
                        return None
    sizes = set(leading)
    for name, placed in axes.items():
        for n in placed:
            dim = ops[0].operand(name).dims[n]
            if not isinstance(dim, Affine) or not isinstance(dim.single, Dim):
                return None
            sizes.add(dim.single.name)
    found = Places(axes, frozenset(sizes), clamped)
    if sum(map(len, axes.values())) + len(leading) * len(ops[0].outputs) > MOST_PLACED:
        return None
    if not all(_is_first(p, found.sizes) for placed in axes.values() for p in placed.values()):
        return None
    return found if all(_stays(op, s, leading, found) for op in ops for s in op.body) else None


def _own_indices(op: Op, s: Assign, leading: tuple[str, ...]) -> dict[str, str] | None:
    """Return the sizes of the leading axes by the indices of a statement; None where these are not its first ones."""
    own = {i: d for i, d in zip(s.indices, leading, strict=False) if isinstance(i, str)}
    dims = op.operand(s.target).dims[: len(leading)]
    return own if len(own) == len(leading) and dims == tuple(Affine.of(Dim(d)) for d in leading) else None


def _places(op: Op, own: Mapping[str, str], e: Read, clamped: frozenset[int] = frozenset()) -> dict[int, Affine] | None:
    """Return the axes along which a read needs one element at a point of the leading axes, with its place there.

    None where it needs no such element but others, or may be outside.
    """
    found: dict[int, Affine] = {}
    for n, (index, dim) in enumerate(zip(e.indices, op.operand(e.operand).dims, strict=True)):
        if not isinstance(index, Affine) or not index.indices() & own.keys():
            continue
        if not index.indices() <= own.keys():
            return None
        found[n] = index.rename(own)
        alone = n in clamped or (index.index is not None and dim == Affine.of(Dim(own[index.index])))
        if not alone and (e.pad is not None or n in e.checked):
            return None
    return found


def _is_first(place: Affine, sizes: frozenset[str]) -> bool:
    """Whether a place is 0 in a slice, where each of these sizes is 1, and needs no other one."""
    if not all(isinstance(a, Index) or (isinstance(a, Dim) and a.name in sizes) for a in place.atoms()):
        return False
    try:
        return place.evaluate(_in_slice) == 0
    except ZeroDivisionError:
        return False


def _in_slice(symbol: Symbol) -> int:
    return 0 if isinstance(symbol, Index) else 1


def _stays(op: Op, s: Assign, leading: tuple[str, ...], found: Places) -> bool:
    """Whether a statement reads what it computes at its own point, and asks for no more of the leading axes and of the sizes that
    a slice has one of."""
    own = _own_indices(op, s, leading) or {}
    sizes = frozenset[Symbol](Dim(name) for name in found.sizes)

    def asks(e: DimSpec | GroupRef | Expr) -> bool:
        return isinstance(e, Affine) and bool(e.atoms() & sizes or e.indices() & own.keys())

    for e in walk(s.value):
        match e:
            case Read():
                places = found.of(op, e.operand, leading)
                if e.operand in op.assignments and _places(op, own, e) != places:
                    return False
                pairs = enumerate(zip(e.indices, op.operand(e.operand).dims, strict=True))
                if any(asks(i) or asks(d) for n, (i, d) in pairs if n not in places):
                    return False
            case Reduce():
                if any(isinstance(a, Axis) and (a.index in own or asks(a.extent)) for a in e.axes):
                    return False
            case IndexValue():
                if asks(e.value):
                    return False
    return not any(asks(d) for d in op.operand(s.target).dims[len(leading) :])
