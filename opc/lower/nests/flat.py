"""Statements whose accesses are not all bare indices: which kind of loop nest each becomes.

A statement is first made flat: an axis group is one index variable, whose extent is the number of the group's points. Then the
loop to vectorise is chosen: the last index of the target, with the reductions outside of it and their partial results in a row;
or none, with each reduction vectorised along one of its own axes. What fits neither is run point by point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.prover import Prover
from opc.analysis.bounds.quotients import every_division
from opc.analysis.runs import bound_on
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.expr import (
    GROUP,
    SEARCHES,
    Axis,
    BroadcastAxis,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    affines,
    children,
    free_indices,
    has_reduction,
    reads,
    reductions,
    traits,
    walk,
    with_children,
)
from opc.ir.node import remembered_each
from opc.ir.op import Assign, Group, Op
from opc.lower.alone import of_statement
from opc.lower.guards import peel
from opc.lower.nest_plans import Flat
from opc.records import replace
from opc.transform.indices import Namer, statement_names, substitute

_FEW = 16
"""An axis of no more than so many points is not worth vectorising where there is another."""


def without_trailing(flat: Flat) -> Flat:
    """Return the statement for a trailing group of one point."""
    assert flat.trailing is not None, "only a statement that ends in a group has this form"
    value = substitute(flat.value, {flat.trailing: Affine.of(0)})
    return Flat(flat.target, flat.indices[:-1], flat.extents[:-1], value)


@of_statement
def flat_statement(op: Op, assign: Assign) -> Flat | None:
    """Return a statement with groups as index variables; None where operands broadcast, so that a group differs from operand to
    operand."""
    operands = [op.operand(n) for n in (assign.target, *(r.operand for r in reads(assign.value)))]
    if any(isinstance(d, Group) and d.of is not None for o in operands for d in o.dims):
        return None
    if any(isinstance(a, BroadcastAxis) for e in reductions(assign.value) for a in e.axes):
        return None
    namer = Namer(statement_names(op, assign))
    names = {g: namer.fresh(_word(g)) for g in _groups(assign)}
    indices: list[str] = []
    extents: list[Affine] = []
    for entry, dim in zip(assign.indices, op.operand(assign.target).dims, strict=True):
        indices.append(names[entry.name] if isinstance(entry, GroupRef) else entry)
        extents.append(dim if isinstance(dim, Affine) else Affine.of(GroupSize(dim.name)))
    ends_in_group = len(indices) > 1 and isinstance(assign.indices[-1], GroupRef)
    own = frozenset(i.name for i in assign.indices if isinstance(i, GroupRef))
    value = _flatten(assign.value, names, own, namer)
    return Flat(assign.target, tuple(indices), tuple(extents), value, indices[-1] if ends_in_group else None)


def _word(group: str) -> str:
    return "point" if group == "..." else f"{group}_point"


def _groups(assign: Assign) -> list[str]:
    found = {i.name: None for i in assign.indices if isinstance(i, GroupRef)}
    for e in walk(assign.value) if traits(assign.value) & GROUP else ():
        if isinstance(e, Read):
            found |= {i.name: None for i in e.indices if isinstance(i, GroupRef)}
        elif isinstance(e, Reduce):
            found |= {a.name: None for a in e.axes if isinstance(a, GroupAxis)}
        elif isinstance(e, GroupIndex):
            found[e.group] = None
    return list(found)


def _flatten(e: Expr, names: Mapping[str, str], around: frozenset[str], namer: Namer) -> Expr:
    """Return `e`, inside loops over the groups `around`, with groups as index variables; a loop over one of these has its own."""
    if not names or not traits(e) & GROUP:
        return e
    if isinstance(e, Reduce):
        groups = frozenset(a.name for a in e.axes if isinstance(a, GroupAxis))
        names = {**names, **{g: namer.fresh(_word(g)) for g in sorted(groups & around)}}
        around |= groups
    e = with_children(e, tuple(_flatten(c, names, around, namer) for c in children(e)))
    match e:
        case Read():
            indices = tuple(Affine.of(Index(names[i.name])) if isinstance(i, GroupRef) else i for i in e.indices)
            return replace(e, indices=indices)
        case Reduce():
            axes = tuple(Axis(names[a.name], Affine.of(GroupSize(a.name))) if isinstance(a, GroupAxis) else a for a in e.axes)
            return replace(e, axes=axes)
        case GroupIndex():
            return IndexValue(Affine.of(Index(names[e.group])), e.span)
        case _:
            return e


def choose_vector_axis(op: Op, flat: Flat) -> str | None:
    """Return the index to vectorise, or None when each reduction had better be vectorised along an axis of its own."""
    if not flat.indices:
        return None
    last = flat.indices[-1]
    summed = _innermost(flat.value)
    if not summed:
        return last
    own = [best_axis(op, r) for r in summed]
    if any(axis is None for axis in own):
        return last
    scattered = sum(_scattered(r, last) for r in summed)
    inner = sum(_scattered(r, axis.index) for r, axis in zip(summed, own) if axis is not None)
    if inner < scattered or (inner == 0 and any(_runs(op, r, axis.index, last) for r, axis in zip(summed, own) if axis)):
        return None
    if inner == scattered and is_short(op, flat.extents[-1]) and not all(is_short(op, a.extent) for a in own if a is not None):
        return None
    return last


def _innermost(e: Expr) -> tuple[Reduce, ...]:
    """Return the reductions in `e` that are not of other reductions."""
    return tuple(r for r in reductions(e) if not has_reduction(r.body))


def has_long_reductions(op: Op, e: Expr) -> bool:
    """Whether each reduction inside of another has an axis that is worth vectorising."""
    own = [best_axis(op, r) for r in _innermost(e)]
    return all(axis is not None and not is_short(op, axis.extent) for axis in own)


def _runs(op: Op, e: Reduce, axis: str, index: str) -> bool:
    """Whether data says where a reduction along an axis begins or ends, and says another thing at each place of an index."""
    kind = e.kind.removeprefix("arg")
    found, _ = peel(kind, e.body, lambda name: op.operand(name).sizes, {}, lambda size: is_positive(op, size))
    bounds = (bound_on(g, axis) for g in found)
    return any(b is not None and index in free_indices(b.value) for b in bounds)


def best_axis(op: Op, e: Reduce) -> Axis | None:
    """Return the axis of a reduction to vectorise when nothing else is: the one along which its reads are contiguous."""
    axes = [a for a in e.axes if isinstance(a, Axis)]
    if e.kind in SEARCHES:
        axes = axes[-1:]
    dependent = {n for a in axes for n in a.extent.indices()}
    candidates = [a for a in axes if a.index not in dependent]
    ranked = sorted(
        candidates, key=lambda a: (not _stands_last(e, a.index), _scattered(e, a.index), is_short(op, a.extent), -axes.index(a))
    )
    return ranked[0] if ranked else None


def _scattered(e: Reduce, index: str) -> int:
    """Return how many reads of a reduction jump through memory along an index."""
    return sum(jumps(r, index) for r in reads(e.body))


def jumps(r: Read, index: str) -> bool:
    """Whether a read jumps through memory along an index."""
    early = any(isinstance(i, Affine) and index in i.indices() for i in _moving(r)[:-1])
    return early or any(index in free_indices(i) for i in r.indices if not isinstance(i, Affine | GroupRef))


def _moving(r: Read) -> tuple[Affine | GroupRef | Expr, ...]:
    """Return the indices of a read without those at its end that are 0, as that of a group of one point is."""
    kept = len(r.indices)
    while kept and r.indices[kept - 1] == Affine.of(0):
        kept -= 1
    return r.indices[:kept]


def _stands_last(e: Reduce, index: str) -> bool:
    lasts = [_moving(r)[-1] for r in reads(e.body) if _moving(r)]
    return any(isinstance(i, Affine) and index in i.indices() for i in lasts)


def is_short(op: Op, extent: Affine) -> bool:
    """Whether an axis is likely short.

    That is a small number, an attribute such as a window's size, or a dimension that the size of an output shrinks with, which
    is what windows given by an operand do.
    """
    if extent.constant is not None:
        return extent.constant <= _FEW
    atoms = extent.atoms()
    if all(isinstance(a, AttrInt) for a in atoms):
        return True
    return any(isinstance(a, Dim) and any(_shrinks(size, a) for _, size in op.dims) for a in atoms)


def _shrinks(size: Affine, dim: Dim) -> bool:
    for monomial, coefficient in size.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv) and coefficient > 0 and _shrinks(atom.numerator, dim):
                return True
            if isinstance(atom, Minimum) and coefficient > 0 and (_shrinks(atom.left, dim) or _shrinks(atom.right, dim)):
                return True
            if atom == dim and coefficient < 0:
                return True
    return False


def period(op: Op, e: Expr, vector_axis: str) -> Affine | None:
    """Return the one divisor by which the index of the vector axis is divided in `e`, so that lanes that far apart are alike;
    else None."""
    found: set[Affine] = set()
    for a in affines(e):
        for d in every_division(a):
            if vector_axis in d.denominator.indices() or (
                d.numerator.coefficient(vector_axis) is None and vector_axis in d.numerator.indices()
            ):
                return None
            if vector_axis in d.numerator.indices():
                found.add(d.denominator)
    if len(found) != 1:
        return None
    (divisor,) = found
    return divisor if not divisor.indices() and is_positive(op, divisor) else None


def goes_in_runs(e: Expr, vector_axis: str) -> bool:
    """Whether `e` asks of the index of the vector axis, beside itself, only how often a divisor goes into it, and reads along a
    row at what is left: as many lanes as that lie beside one another are alike, or go through a row, then."""
    found = [d for a in affines(e) for d in every_division(a) if vector_axis in d.numerator.indices()]
    if any(d.numerator != Affine.of(Index(vector_axis)) for d in found):
        return False
    places = {d for r in reads(e) for d in _along(r) if d in found}
    jumping = {d for r in reads(e) for i in _moving(r)[:-1] if isinstance(i, Affine) for d in every_division(i)}
    return all(isinstance(d, FloorDiv) or (d in places and d not in jumping) for d in found) and not _is_value(e, vector_axis)


def _along(r: Read) -> Iterator[FloorDiv | Mod]:
    """Yield what a read divides to find its place along the last axis."""
    last = _moving(r)[-1:]
    for i in last:
        if isinstance(i, Affine):
            yield from every_division(i)


def _is_value(e: Expr, vector_axis: str) -> bool:
    """Whether a remainder of the index of the vector axis is a number that is computed with, and not a place alone."""
    return any(
        isinstance(d, Mod) and vector_axis in d.numerator.indices()
        for n in walk(e)
        if isinstance(n, IndexValue)
        for d in every_division(n.value)
    )


def in_run(a: Affine, vector_axis: str, divisor: Affine, run: Affine, place: Affine) -> Affine:
    """Return `a` at the lane `place`, which is one of the run with the number `run` of `divisor` lanes each."""

    def change(atom: Atom) -> Affine:
        if isinstance(atom, FloorDiv | Mod) and atom.denominator == divisor and vector_axis in atom.numerator.indices():
            return run if isinstance(atom, FloorDiv) else place - run * divisor
        return Affine.of(atom).at(vector_axis, place)

    return a.map_atoms(change)


@remembered_each("_positive")
def is_positive(op: Op, size: Affine) -> bool:
    """Whether a size is proved greater than zero."""
    if size.constant is not None:
        return size.constant > 0
    known = knowledge_of(op)
    return Prover(known.facts).positive(known.expand(size))


def in_phase(a: Affine, vector_axis: str, divisor: Affine, position: Affine, phase: Affine) -> Affine:
    """Return `a` at lane `divisor * position + phase`, with divisions by the divisor worked out."""

    def moved(e: Affine, value: Affine) -> Affine:
        return e.at(vector_axis, value)

    def change(atom: Atom) -> Affine:
        if not isinstance(atom, FloorDiv | Mod) or atom.denominator != divisor or vector_axis not in atom.numerator.indices():
            return moved(Affine.of(atom), divisor * position + phase)
        step = atom.numerator.coefficient(vector_axis)
        assert step is not None, "the numerator is affine in the vector axis"
        rest = moved(atom.numerator, phase)
        return step * position + rest // divisor if isinstance(atom, FloorDiv) else rest % divisor

    return a.map_atoms(change)
