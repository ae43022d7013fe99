"""Windowed reductions: what is combined over the places of a window, for each window of a row, or of the planes of channels.

A convolution that keeps channels apart is one, and so are its gradients, pooling, and the search that the gradient of a maximum
repeats. Which lanes of a vector stand side by side is the vector axis. Along a row, windows of neighbouring lanes read
neighbouring elements. Rows of small planes don't fill a vector, but there are as many planes as channels: what of a window counts
at a row, and at a column, of the target is the same for all channels, so that it is looked up, and strides, dilation and padding
cost nothing inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Atom, FloorDiv, Index, Mod
from opc.ir.dtypes import is_floating
from opc.ir.expr import (
    SEARCHES,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    has_reduction,
    map_affine,
    reads,
    reductions,
    walk,
)
from opc.ir.op import Op
from opc.loops.values import computed_as
from opc.lower.guards import Guard, guard_indices, inside, peel
from opc.lower.nest_plans import Flat
from opc.lower.nests.flat import is_short
from opc.records import dataclass, replace

Combine: TypeAlias = Literal["fma", "add", "max", "min", "argmax", "argmin"]
"""How the elements of a window are joined; fma is the sum of weight * element."""

_COMBINES: Mapping[str, Combine] = {"sum": "add", "max": "max", "min": "min", "argmax": "argmax", "argmin": "argmin"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a statement: the sizes of operands, indices that are within an extent, and which sizes are positive."""

    sizes: Callable[[str], tuple[Affine, ...]]
    bounded: Mapping[Affine, Affine]
    positive: Callable[[Affine], bool]


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """An axis of a window. A place along it counts where all `guards` hold, which move with it and with what lanes go across.

    Of planes, `index` is the index of the target with which it moves along one axis of the element.
    """

    axis: Axis
    guards: tuple[Guard, ...]
    index: str = ""


@dataclass(frozen=True, slots=True)
class WindowedReduction:
    """A reduction over windows, `axes`, and where lanes go across channels also over `term`.

    `vector` is the index that lanes go across: of a row, or of channels. Where it is `padded`, places outside of the element hold
    zeros, which weights are multiplied with. It is one where all of `ones` are 1: strides, by which a gradient divides.
    """

    combine: Combine
    reduction: Reduce
    vector_axis: Literal["row", "channel"]
    vector: str
    axes: tuple[WindowAxis, ...]
    element: Read
    weight: Read | None
    padded: bool
    ones: tuple[Affine, ...] = ()
    term: Axis | None = None

    @property
    def operands(self) -> tuple[Read, ...]:
        """What is read at each place."""
        return (self.element,) if self.weight is None else (self.element, self.weight)

    def at_origin(self, r: Read) -> Read:
        """Return a read at the first place of the window, and at lane 0 of a row."""
        return read_at_zero(r, {self.vector, *(a.axis.index for a in self.axes)})


def at_zero(a: Affine, names: set[str]) -> Affine:
    """Return an expression where these indices are 0."""
    return a.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in names else None)


def read_at_zero(r: Read, names: set[str]) -> Read:
    """Return a read, whose indices are all affine, where these are 0."""
    return replace(r, indices=tuple(at_zero(i, names) for i in r.indices if isinstance(i, Affine)))


def row_window(op: Op, e: Reduce, vector_axis: str, facts: Facts, under: tuple[Guard, ...] = ()) -> WindowedReduction | None:
    """Return a reduction, which counts `under` further conditions, as one over the windows of a row, None when it is none."""
    return next((w for t in _terms(e, facts) if (w := _along_row(op, e, vector_axis, t, under)) is not None), None)


def channel_window(op: Op, flat: Flat, facts: Facts) -> WindowedReduction | None:
    """Return the one reduction of a statement as one over windows of planes, which keeps an index of the target, the channel,
    apart."""
    found = reductions(flat.value)
    if len(found) != 1 or found[0].kind in SEARCHES or not _always(flat.value, found[0]):
        return None
    if op.operand(flat.target).type != found[0].type:
        return None
    ways = (_across_channels(flat, found[0], t, rank) for t in _terms(found[0], facts) for rank in (2, 1))
    optional = {i.name for i in op.inputs if i.optional}
    return next((w for w in ways if w is not None and not {r.operand for r in w.operands} & optional), None)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is combined: elements, or their products with weights, where all `guards` hold."""

    combine: Combine
    axes: tuple[Axis, ...]
    element: Read
    weight: Read | None
    padded: bool
    guards: tuple[Guard, ...]


def _terms(e: Reduce, facts: Facts) -> Iterator[_Terms]:
    """Yield the ways to read a reduction as one over windows: either factor of a product may be the weight."""
    axes = tuple(a for a in e.axes if isinstance(a, Axis))
    if e.kind not in _COMBINES or not axes or len(axes) != len(e.axes) or any(a.extent.indices() for a in axes):
        return
    bounded = {**facts.bounded, **{Affine.of(Index(a.index)): a.extent for a in axes}}
    found, body = peel(e.kind.removeprefix("arg"), e.body, facts.sizes, bounded, facts.positive)
    of = body.type if e.kind in SEARCHES else e.type
    alike = is_floating(body.type) and computed_as(body.type) == computed_as(of)
    if alike and isinstance(body, Read) and body.pad is None and _is_plain(body):
        yield _Terms(_COMBINES[e.kind], axes, body, None, False, found)
    if e.kind != "sum" or not isinstance(body, Call) or body.fn != "mul" or not is_floating(e.type):
        return
    for element, weight in (body.args, body.args[::-1]):
        if not (isinstance(element, Read) and isinstance(weight, Read) and _is_plain(element) and _is_plain(weight)):
            continue
        padded = element.pad is not None
        zero = not padded or (isinstance(element.pad, Const) and element.pad.value == 0)
        if zero and weight.pad is None and all(r.type == e.type for r in (element, weight)):
            guards = (*found, *(inside(element, facts.sizes(element.operand), bounded) if padded else ()))
            yield _Terms("fma", axes, replace(element, pad=None), weight, padded, guards)


def _is_plain(r: Read) -> bool:
    return not r.checked and bool(r.indices) and all(isinstance(i, Affine) for i in r.indices)


def _along_row(op: Op, e: Reduce, vector_axis: str, t: _Terms, under: tuple[Guard, ...]) -> WindowedReduction | None:
    """Return a reduction as one over windows whose elements lie along the last axis, all of which move by even steps."""
    if t.combine == "fma" and not all(is_short(op, a.extent) for a in t.axes):
        return None
    ones: dict[Affine, None] = {}
    known = (_undivided_guard(c, ones) for c in (*under, *t.guards))
    guards = [c for c in known if c is not True]
    element = replace(t.element, indices=tuple(_undivided(i, ones) for i in t.element.indices if isinstance(i, Affine)))
    names = [a.index for a in t.axes]
    moving = {vector_axis, *names}
    if any(d.indices() for d in ones) or (t.weight is not None and vector_axis in free_indices(t.weight)):
        return None
    if not all(_is_even(i, moving) for r in (element, t.weight) if r is not None for i in r.indices):
        return None
    *others, last = (i for i in element.indices if isinstance(i, Affine))
    step = last.coefficient(vector_axis) or Affine.of(0)
    apart = step.terms and (t.combine in SEARCHES or step.constant in (None, 1, 2))
    if not apart or any(vector_axis in i.indices() for i in others):
        return None
    by_axis: dict[str, list[Guard]] = {n: [] for n in names}
    for g in guards:
        if not isinstance(g, Affine) or not _is_even(g, moving) or len(g.indices() & {*names}) > 1:
            return None
        by_axis[next((n for n in names if n in g.indices()), names[0])].append(g)
    axes = tuple(WindowAxis(a, tuple(by_axis[a.index])) for a in t.axes)
    return WindowedReduction(t.combine, e, "row", vector_axis, axes, element, t.weight, t.padded, tuple(ones))


def _is_even(i: object, moving: set[str]) -> bool:
    """Whether an index or a condition moves by the same distance with each point of indices."""
    steps = [i.coefficient(name) if isinstance(i, Affine) else None for name in moving]
    return all(s is not None and not s.indices() & moving for s in steps)


def _undivided(a: Affine, ones: dict[Affine, None]) -> Affine:
    """Return an expression as it is where the divisors in it are 1, which are added to `ones`."""

    def change(atom: Atom) -> Affine:
        if not isinstance(atom, FloorDiv | Mod) or not atom.numerator.indices():
            return Affine.of(atom)
        ones[atom.denominator] = None
        return _undivided(atom.numerator, ones) if isinstance(atom, FloorDiv) else Affine.of(0)

    return a.map_atoms(change)


def _undivided_guard(condition: Guard, ones: dict[Affine, None]) -> Guard | bool:
    """Return a condition where the divisors in it are 1: True where it then always holds."""
    if isinstance(condition, Affine):
        return _undivided(condition, ones)
    condition = map_affine(condition, lambda a: _undivided(a, ones))
    if isinstance(condition, Call) and condition.fn == "eq":
        a, b = (affine_of(x) for x in condition.args)
        if a is not None and a == b:
            return True
    return condition


def _across_channels(flat: Flat, e: Reduce, t: _Terms, rank: int) -> WindowedReduction | None:
    """Return a reduction as one over windows of planes with so many axes, which the target ends in."""
    if len(flat.indices) <= rank:
        return None
    plane, channel = flat.indices[-rank:], flat.indices[-rank - 1]
    indices = [i for i in t.element.indices if isinstance(i, Affine)]
    found: list[WindowAxis] = []
    for index in plane:
        entries = [i for i in indices if index in i.indices()]
        moving = [a for i in entries for a in t.axes if a.index in i.indices()]
        if len(entries) != 1 or len(moving) != 1 or entries[0].indices() != {index, moving[0].index}:
            return None
        names = {index, moving[0].index}
        own = tuple(g for g in t.guards if guard_indices(g) & names)
        if any(guard_indices(g) - names or _reads(g) for g in own):
            return None
        found.append(WindowAxis(moving[0], own, index))
    windows = [a.axis for a in found]
    if len({a.index for a in windows}) != rank or any(not any(g in a.guards for a in found) for g in t.guards):
        return None
    terms = [a for a in t.axes if a not in windows]
    if len(terms) > 1 or plane[-1] not in indices[-1].indices():
        return None
    kept = [i for i in indices if not i.indices() & {*plane}]
    bare = [Index(channel), *(Index(a.index) for a in terms)]
    moves = {*plane, channel, *(a.index for a in t.axes)}
    if not _stands_bare(kept, bare, moves) or any(free_indices(r) & {*plane} for r in _others(flat.value, e)):
        return None
    if t.weight is not None:
        by = [i for i in t.weight.indices if isinstance(i, Affine)]
        taps = [Index(a.index) for a in windows]
        if by[-1] != Affine.of(taps[-1]) or not _stands_bare(by, [*bare, *taps], moves):
            return None
    term = terms[0] if terms else None
    return WindowedReduction(t.combine, e, "channel", channel, tuple(found), t.element, t.weight, t.padded, (), term)


def _reads(g: Guard) -> bool:
    return not isinstance(g, Affine) and any(True for _ in reads(g))


def _stands_bare(indices: Sequence[Affine], bare: Sequence[Index], moves: set[str]) -> bool:
    """Whether each of some indices is alone in one entry, and no other entry depends on what moves within planes."""
    alone = [Affine.of(i) for i in bare]
    rest = [i for i in indices if i not in alone]
    return all(indices.count(i) == 1 for i in alone) and not any(i.indices() & moves for i in rest)


def _always(value: Expr, e: Reduce) -> bool:
    """Whether a value takes in a reduction under no condition."""
    if value is e:
        return True
    chosen = (value.cond,) if isinstance(value, Select) else ()
    if any(map(has_reduction, chosen)):
        return False
    if isinstance(value, Select) or (isinstance(value, Call) and value.fn in ("and", "or")):
        return False
    return any(_always(c, e) for c in children(value))


def _others(value: Expr, e: Reduce) -> list[Expr]:
    """Return the parts of a value beside its reduction."""
    if value is e:
        return []
    parts = [p for c in children(value) for p in _others(c, e)]
    return parts if any(n is e for n in walk(value)) else [value]
