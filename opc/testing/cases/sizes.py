"""Sizes an op can be called with, found from the op alone: axis groups, named dimensions, and shapes of the inputs from them."""

from __future__ import annotations

import functools
import math
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opc.analysis.bounds.prover import facts_of
from opc.analysis.shapes.inference import ShapeError
from opc.ir.affine import Affine, AttrInt, Dim, FloorDiv, GroupSize, Minimum, Symbol
from opc.ir.arrangement import Arrangement, arrangement, mixed
from opc.ir.op import AttributeKind, Group, Op, Operand
from opc.ir.placing import placing
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import IndexLoop
from opc.lower.specialise import GroupedSizes

Shape = tuple[int, ...]
Shapes = dict[str, "Shape | None"]

GROUP_SHAPES: tuple[Shape, ...] = (
    (7,), (2, 3), (), (1,), (17,), (0,), (3, 1, 2), (2, 2, 1, 3), (1, 2, 2, 1, 2),
    (33,), (4, 0), (5, 13), (67,), (1, 1), (3,), (131,),
)  # fmt: skip
"""Shapes of an axis group: rank 0 to 5, sizes 0, 1, primes, beyond a vector's width."""

DIM_SIZES: tuple[int, ...] = (5, 17, 3, 1, 33, 7, 2, 67, 4, 8, 11, 0, 16, 131, 31, 13)
"""Sizes of a named dimension."""

WINDOW_SIZES: tuple[int, ...] = (3, 2, 1, 5, 3, 4, 2, 7)
"""Sizes of a dimension that a window has: derived dimensions shrink as it grows."""


@functools.lru_cache(maxsize=256)
def dims_of(op: Op) -> tuple[str, ...]:
    """Return the named dimensions that inputs bind, in order of appearance."""
    derived = {name for name, _ in op.dims}
    found: dict[str, None] = {}
    for operand in op.inputs:
        for d in operand.dims:
            atom = d.single if isinstance(d, Affine) else None
            if isinstance(atom, Dim) and atom.name not in derived:
                found.setdefault(atom.name)
    return tuple(found)


@functools.lru_cache(maxsize=256)
def groups_of(op: Op) -> tuple[str, ...]:
    """Return the names of the axis groups of the inputs, in order of appearance."""
    return tuple(dict.fromkeys(d.name for o in op.inputs for d in o.dims if isinstance(d, Group)))


FUSED = (1031, 523)
"""Rows and columns of which a slice has two blocks: more than `block_elements` of `opc/core/slices.h`."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a call: named dimensions, axis groups (in a broadcast op the common shape), and inputs' own groups that differ."""

    dims: Mapping[str, int]
    groups: Mapping[str, Shape]
    own: Mapping[str, Shape]


def size_of(op: Op, e: Affine, sizes: Sizes, attributes: Mapping[str, Any]) -> int:
    """Return the value of a size in a call; derived dimensions are computed.

    Raises:
        ShapeError: when it divides by zero, or an attribute has no such element.
        KeyError: when it names an unknown dimension.
    """
    single = e.single
    if isinstance(single, Dim) and single.name in sizes.dims:
        return sizes.dims[single.name]

    def symbol(s: Symbol) -> int:
        match s:
            case Dim() if s.name in sizes.dims:
                return sizes.dims[s.name]
            case Dim():
                return dict(op.dims)[s.name].evaluate(symbol)
            case GroupSize():
                return math.prod(sizes.groups[s.name])
            case AttrInt():
                value = attributes.get(s.name, op.attribute(s.name).default)
                value = value if s.element < 0 else value[s.element]
                return int(value == s.text if s.text is not None else value)
            case _:
                raise KeyError(s.name)

    try:
        return e.evaluate(symbol)
    except (ZeroDivisionError, IndexError, TypeError) as error:
        raise ShapeError(str(error)) from None


@functools.lru_cache(maxsize=256)
def signs(op: Op) -> Mapping[str, int]:
    """Return for each free dimension whether derived dimensions grow (1) or shrink (-1) with it; they shrink with a window."""
    free = dims_of(op)
    found: dict[str, int] = {}

    def visit(e: Affine, sign: int) -> None:
        for monomial, coefficient in e.terms:
            direction = sign if coefficient > 0 else -sign
            for atom in monomial:
                if isinstance(atom, Dim) and atom.name in free:
                    found[atom.name] = min(direction, found.get(atom.name, 1))
                elif isinstance(atom, FloorDiv):
                    visit(atom.numerator, direction)
                elif isinstance(atom, Minimum):
                    visit(atom.left, direction)
                    visit(atom.right, direction)

    for _, rule in op.dims:
        visit(rule, 1)
    return found


def windows_of(op: Op) -> list[str]:
    """Return the free dimensions that are sizes of windows."""
    return [name for name, sign in signs(op).items() if sign < 0]


def shapes_of(op: Op, sizes: Sizes, attributes: Mapping[str, Any], absent: frozenset[str] = frozenset()) -> Shapes:
    """Return the shape of every input in a call of these sizes.

    Raises:
        ShapeError: when a size of an input would be negative, or divides by zero.
    """

    def size(e: Affine) -> int:
        value = size_of(op, e, sizes, attributes)
        if value < 0:
            raise ShapeError(f"{e} is negative")
        return value

    result: Shapes = {}
    for operand in op.inputs:
        shape: Shape = ()
        for d in operand.dims:
            if isinstance(d, Affine):
                shape += (size(d),)
            elif d.of is not None:
                shape += tuple(sizes.own.get(d.of, sizes.groups[d.name]))
            else:
                shape += tuple(sizes.groups[d.name])
        if (how := arrangement(op)) is not None and (how.is_mixed(operand) or how.is_thinned(operand)):
            shape = _seen(op, how, operand, sizes, attributes)
        result[operand.name] = None if operand.name in absent else shape
    return result


def _seen(op: Op, how: Arrangement, operand: Operand, sizes: Sizes, attributes: Mapping[str, Any]) -> Shape:
    """Return the shape that callers see of a mixed or thinned operand.

    Raises:
        ShapeError: when as many axes are not listed as the group has.
    """
    rest, own = () if how.permutes else sizes.groups[how.rest], sizes.groups.get(how.picked, ())
    names = (*how.attributes, *([how.keeps] if how.keeps is not None else []))
    values = {name: attributes.get(name, op.attribute(name).default) for name in names}
    if how.slots:
        own = tuple(sizes.dims[dim] for dim in how.slot_dims(operand))
    if how.is_thinned(operand):
        if how.keeps is None or not values[how.keeps]:
            return tuple(rest)
        own = (1,) * len(own)
    try:
        picked = how.places(values, len(rest) + len(own))
    except ValueError as error:
        raise ShapeError(str(error)) from None
    if len(picked) != len(own):
        raise ShapeError(f"{len(picked)} axes are listed, and the group has {len(own)}")
    return mixed(rest, own, picked)


def table_sizes(op: Op) -> Iterator[Sizes]:
    """Yield sizes that together cover `GROUP_SHAPES` and `DIM_SIZES`, the most ordinary first."""
    dims, groups = dims_of(op), groups_of(op)
    if not dims and not groups:
        yield Sizes({}, {}, {})
        return
    windows = windows_of(op)
    for k, shape in enumerate(GROUP_SHAPES):
        named = {}
        for i, d in enumerate(dims):
            palette = WINDOW_SIZES if d in windows else DIM_SIZES
            size = palette[(k + 5 * i) % len(palette)]
            # Of many dimensions one would nearly always be empty.
            named[d] = 6 if size == 0 and len(dims) > 3 and i != k % len(dims) else size
        yield Sizes(named, split(groups, shape, k), {})


def split(groups: Sequence[str], shape: Shape, turn: int) -> dict[str, Shape]:
    """Deal the axes of a shape out to groups: all to the first on turn 0, then at changing places."""
    if not groups:
        return {}
    cuts = sorted(len(shape) - (turn * (i + 1)) % (len(shape) + 1) for i in range(len(groups) - 1))
    ends = [0, *cuts, len(shape)]
    return {g: shape[ends[i] : ends[i + 1]] for i, g in enumerate(groups)}


def broadcast_variants(op: Op) -> Iterator[Sizes]:
    """Yield the ways inputs of a broadcast op may differ from the common shape: axes of size 1, missing axes, scalars."""
    owners = list(dict.fromkeys(d.of for o in op.inputs for d in o.dims if isinstance(d, Group) and d.of is not None))
    if not owners:
        return
    (group,) = groups_of(op)
    dims = dict.fromkeys(dims_of(op), 3)
    full = (2, 3, 5)
    kinds: list[Shape] = [(), (5,), (3, 1), (1, 1, 1), (2, 1, 5), (1, 3, 1), (3, 5)]
    for k, shape in enumerate(kinds):
        for owner in owners:
            yield Sizes(dims, {group: full}, {owner: shape})
        # Two inputs at once, each along other axes; the rest keep the common shape so that it stays the common one.
        if len(owners) > 2:
            yield Sizes(dims, {group: full}, {owners[0]: shape, owners[1]: kinds[(k + 3) % len(kinds)]})
    if len(owners) >= 2:
        yield Sizes(dims, {group: (2, 3, 5)}, {owners[0]: (2, 1, 5), owners[1]: (3, 1)})
        yield Sizes(dims, {group: (0, 3)}, {owners[0]: (1, 3)})
        yield Sizes(dims, {group: (4, 0)}, {owners[0]: (1,)})
        yield Sizes(dims, {group: (4, 1)}, {owners[0]: (1,)})


def axis_attributes(op: Op, sizes: Sizes, negative: bool = False) -> dict[str, Any]:
    """Return the value of every attribute of axes that fits the groups' ranks: where its dimension stands in an input, or for a
    list of axes other places for other sizes."""
    result: dict[str, Any] = {}
    for attribute in op.attributes:
        if attribute.picks is not None:
            own, rest = (tuple(sizes.groups[g]) if g in sizes.groups else () for g in attribute.picks)
            rank = len(own) + len(rest)
            listed = random.Random(zlib.crc32(repr((rest, own)).encode())).sample(range(rank), len(own))
            result[attribute.name] = [a - rank if negative and k % 2 == 0 else a for k, a in enumerate(listed)]
        if attribute.permutes is not None:
            own = tuple(sizes.groups[attribute.permutes])
            order = random.Random(zlib.crc32(repr(own).encode())).sample(range(len(own)), len(own))
            result[attribute.name] = [a - len(own) if negative and k % 2 == 0 else a for k, a in enumerate(order)]
        if attribute.among is not None:
            how = arrangement(op)
            assert how is not None, "it has attributes that place axes"
            rank = len(sizes.groups[how.rest]) + len(how.slots)
            placed = random.Random(zlib.crc32(repr(sizes.groups[how.rest]).encode())).sample(range(rank), len(how.slots))
            n = how.attributes.index(attribute.name)
            result[attribute.name] = placed[n] - rank if negative and n % 2 == 0 else placed[n]
        elif attribute.kind is AttributeKind.AXIS and attribute.dim is not None:
            place = placing(op, attribute)[0]
            before, after = (
                sum(1 if isinstance(d, Affine) else len(sizes.groups[d.name]) for d in side)
                for side in (place.before, place.after)
            )
            result[attribute.name] = -after - 1 if negative else before
    return result


def in_blocks(op: Op) -> Iterator[tuple[Sizes, tuple[str, ...]]]:
    """Yield sizes with which stages fused by rows run on several blocks of them, and the dimensions to keep so long.

    The last of leading axes with names has two points, as the group has, and all other dimensions are 1. There are none for an op
    whose stages are not fused.
    """
    program = next((v.program for v in cpu_programs(op)), None)
    if program is None or program.fused is None:
        return
    rows, leading = program.fused.dim, program.fused.leading
    found = {a.name: None for t in program.temporaries for x in t.loops if isinstance(x, IndexLoop) for a in x.extent.atoms()}
    columns = [d for d in dims_of(op) if d in found and d != rows and d not in leading]
    short = dict.fromkeys(dims_of(op), 1) | dict.fromkeys(leading[-1:], 2)
    # Rows may have to be no more than columns.
    orders = [short | dict(zip((rows, *columns), long)) for long in (FUSED, FUSED[::-1])]
    sizes = next((o for o in orders if _is_taken(op, o)), orders[0])
    groups = {g: (2,) if i == 0 else () for i, g in enumerate(groups_of(op))}
    yield Sizes(sizes, groups, {}), tuple(dict(zip((rows, *columns), FUSED)))


def of_products(op: Op) -> Iterator[Sizes]:
    """Yield sizes with which matrix products whose rows or matrices data names run as such: a few matrices, not of whole vectors.

    There are none for an op without such products.
    """
    pays = next((v.case.pays for v in cpu_programs(op) if v.case.pays), ())
    counts = {a.name for g in pays if isinstance(g, GroupedSizes) for a in g.count.atoms() if isinstance(a, Dim)}
    if pays:
        groups = {g: (61,) if i == 0 else () for i, g in enumerate(groups_of(op))}
        yield Sizes({d: 3 if d in counts else 61 for d in dims_of(op)} | dict.fromkeys(windows_of(op), 3), groups, {})


def _is_taken(op: Op, sizes: Mapping[str, int]) -> bool:
    """Whether the comparisons of dimensions that an op requires hold."""
    facts = [f for r in op.require for f in facts_of(r.condition)]
    known = [f for f in facts if all(isinstance(a, Dim) and a.name in sizes for a in f.atoms())]
    return all(f.evaluate(lambda a: sizes[a.name]) >= 0 for f in known)
