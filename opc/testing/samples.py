"""Sizes, attributes and element types that an op can be called with, found from the op alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.analysis.shape import ShapeError, infer
from opc.ir.affine import Affine, AttrInt, Dim, GroupSize, Symbol
from opc.ir.dtypes import DType
from opc.ir.expr import Const, IndexValue, Read, walk
from opc.ir.op import Attribute, AttributeKind, Group, Op, Operand

Shape = tuple[int, ...]
Shapes = dict[str, "Shape | None"]

GROUP_SHAPES: tuple[Shape, ...] = (
    (7,), (2, 3), (), (1,), (17,), (0,), (3, 1, 2), (2, 2, 1, 3), (1, 2, 2, 1, 2),
    (33,), (4, 0), (5, 13), (67,), (1, 1), (3,), (131,),
)  # fmt: skip
"""Shapes of an axis group: rank 0 to 5, sizes 0, 1, primes, beyond a vector's width."""

DIM_SIZES: tuple[int, ...] = (5, 17, 3, 1, 33, 7, 2, 67, 4, 8, 11, 0, 16, 131, 31, 13)
"""Sizes of a named dimension."""


def dims_of(op: Op) -> list[str]:
    """Return the named dimensions that inputs bind, in order of appearance."""
    derived = {name for name, _ in op.dims}
    found: dict[str, None] = {}
    for operand in op.inputs:
        for d in operand.dims:
            atom = d.single if isinstance(d, Affine) else None
            if isinstance(atom, Dim) and atom.name not in derived:
                found.setdefault(atom.name)
    return list(found)


def groups_of(op: Op) -> list[str]:
    """Return the names of the axis groups of the inputs, in order of appearance."""
    return list(dict.fromkeys(d.name for o in op.inputs for d in o.dims if isinstance(d, Group)))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a call: named dimensions, axis groups (in a broadcast op the common shape), and inputs' own groups that differ."""

    dims: Mapping[str, int]
    groups: Mapping[str, Shape]
    own: Mapping[str, Shape]


def shapes_of(op: Op, sizes: Sizes, attributes: Mapping[str, Any], absent: frozenset[str] = frozenset()) -> Shapes:
    """Return the shape of every input in a call of these sizes.

    Raises:
        ShapeError: when a size would be negative, or divides by zero.
    """
    dims = dict(sizes.dims)
    defaults = {a.name: a.default for a in op.attributes}

    def symbol(s: Symbol) -> int:
        match s:
            case Dim():
                return dims[s.name]
            case GroupSize():
                return int(np.prod(sizes.groups[s.name], dtype=np.int64))
            case AttrInt():
                value = attributes.get(s.name, defaults[s.name])
                return int(value if s.element < 0 else value[s.element])
            case _:
                raise KeyError(s.name)

    def size(e: Affine) -> int:
        try:
            value = e.evaluate(symbol)
        except (ZeroDivisionError, IndexError, TypeError) as error:
            raise ShapeError(str(error)) from None
        if value < 0:
            raise ShapeError(f"{e} is negative")
        return value

    for name, e in op.dims:
        dims[name] = size(e)
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
        result[operand.name] = None if operand.name in absent else shape
    return result


def table_sizes(op: Op) -> Iterator[Sizes]:
    """Yield sizes that together cover `GROUP_SHAPES` and `DIM_SIZES`, the most ordinary first."""
    dims, groups = dims_of(op), groups_of(op)
    if not dims and not groups:
        yield Sizes({}, {}, {})
        return
    for k, shape in enumerate(GROUP_SHAPES):
        named = {d: DIM_SIZES[(k + 5 * i) % len(DIM_SIZES)] for i, d in enumerate(dims)}
        yield Sizes(named, split(groups, shape, k), {})


def split(groups: list[str], shape: Shape, turn: int) -> dict[str, Shape]:
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


def axis_attributes(op: Op, sizes: Sizes, negative: bool = False) -> dict[str, int]:
    """Return the value of every axis attribute that fits the groups' ranks: where its dimension stands in an input."""
    result: dict[str, int] = {}
    for attribute in op.attributes:
        if attribute.kind is AttributeKind.AXIS and attribute.dim is not None:
            operand = _home(op, attribute.dim)
            before, rank, seen = 0, 0, False
            for d in operand.dims:
                seen = seen or (isinstance(d, Affine) and d == Affine.of(Dim(attribute.dim)))
                length = 1 if isinstance(d, Affine) else len(sizes.groups[d.name])
                rank += length
                before += 0 if seen else length
            result[attribute.name] = before - rank if negative else before
    return result


def _home(op: Op, dim: str) -> Operand:
    """Return the first input that has the dimension."""
    return next(o for o in op.inputs if any(d == Affine.of(Dim(dim)) for d in o.dims))


def attribute_samples(op: Op, attribute: Attribute) -> tuple[list[Any], list[Any]]:
    """Return values an attribute may take, and values its check, length or `values` refuse.

    Floats are exact in float32, as ONNX stores attributes in it. Tried are the default, the numbers of the check and their
    neighbours, and common values; a value counts as good when the op accepts it with the defaults of the others.
    """
    good: list[Any] = []
    bad: list[Any] = []
    others = {a.name: _some(a) for a in op.attributes if a.required and a.name != attribute.name}
    for value in _candidates(attribute):
        if value in good or value in bad:
            continue
        (good if accepts(op, {**others, attribute.name: value}) else bad).append(value)
    return good, bad


def accepts(op: Op, attributes: Mapping[str, Any]) -> bool:
    """Whether the op takes these attributes on some sizes."""
    for sizes in table_sizes(op):
        try:
            placed = {**axis_attributes(op, sizes), **attributes}
            infer(op, shapes_of(op, sizes, placed), placed)
            return True
        except (ShapeError, TypeError, KeyError):
            continue
    return False


def _some(attribute: Attribute) -> Any:
    return _candidates(attribute)[0]


def _candidates(attribute: Attribute) -> list[Any]:
    numbers = [e.value for e in walk(attribute.check) if isinstance(e, Const)] if attribute.check is not None else []
    numbers += (
        [e.value.constant for e in walk(attribute.check) if isinstance(e, IndexValue) and e.value.constant is not None]
        if attribute.check is not None
        else []
    )
    scalars: list[Any]
    match attribute.kind:
        case AttributeKind.FLOAT:
            raw = [1.0, 0.5, 0.0, -1.0, 2.0, 0.125, -0.25, 3.5, 20.0, 1e-3]
            raw += [float(v) + s for v in numbers for s in (0.0, 0.5, -0.5)]
            scalars = [float(np.float32(v)) for v in raw]
        case AttributeKind.INT:
            raw_ints = [1, 2, 0, 3, -1, 5]
            scalars = raw_ints + [int(v) + s for v in numbers if np.isfinite(v) for s in (0, 1, -1)]
        case AttributeKind.BOOL:
            scalars = [False, True]
        case AttributeKind.STR:
            scalars = [*attribute.values, "no_such_value"] if attribute.values else ["", "text"]
        case _:
            scalars = []
    default = [] if attribute.required else [attribute.default]
    if attribute.length is None:
        return [*scalars, *default]
    length = attribute.length
    lengths = (length,) if length >= 0 else (1, 3, 0)
    lists: list[Any] = [tuple(scalars[(i + k) % len(scalars)] for i in range(n)) for n in lengths for k in range(len(scalars))]
    if length >= 0:
        lists.append(tuple(scalars[i % len(scalars)] for i in range(length + 1)))
    return [*lists, *default]


def bindings_of(op: Op) -> list[dict[str, DType]]:
    """Return bindings of the type variables: every dtype of each, all pairs of the first two while they are few.

    float32 comes first where the first variable has it: it is the binding most cases use.
    """
    if not op.types:
        return [{}]
    pools = [sorted(t.dtypes, key=lambda d: d is not DType.FLOAT32) for t in op.types]
    product = [dict(zip((t.name for t in op.types), combo)) for combo in itertools.product(*pools)]
    if len(product) <= 12:
        return product
    longest = max(len(p) for p in pools)
    return [{t.name: p[k % len(p)] for t, p in zip(op.types, pools)} for k in range(longest)]


def index_limits(op: Op) -> dict[str, tuple[str, int]]:
    """Return for every integer input that indexes another operand which operand and axis entry it must stay inside."""
    limits: dict[str, tuple[str, int]] = {}
    inputs = {o.name for o in op.inputs}
    for statement in op.body:
        for node in walk(statement.value):
            if isinstance(node, Read) and node.pad is None:
                for axis, entry in enumerate(node.indices):
                    if isinstance(entry, Read) and entry.operand in inputs:
                        limits[entry.operand] = (node.operand, axis)
    return limits
