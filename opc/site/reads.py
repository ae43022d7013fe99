"""What elements of an op's output are read from, in a small call of it: found by a walk of the typed body.

The call is made from the op alone: sizes that fit it, indices that stand inside, attributes as they are by default or in the
spec's first example. Beside it stands one call for each attribute that changes what is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv, ShapeError, infer
from opc.emit.mathml.statements import is_elementwise
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import candidates
from opc.ir.expr import Axis, Reduce, walk
from opc.ir.op import Attribute, AttributeKind, Family, Group, Op, Operand
from opc.records import dataclass
from opc.site.plots import attributes_of
from opc.testing.cases.fitting import fit, shapes_within
from opc.testing.cases.index_limits import Limit, index_limits, inside
from opc.testing.cases.sizes import Sizes, axis_attributes, dims_of, groups_of, size_of
from opc.testing.lineage import Point, Reads, UntoldError, reads
from opc.testing.oracle.bounds import Array

MOST_CELLS, MOST_PANELS = 180, 8
"""How many elements all operands of a call have at most, and how many matrices one of them is cut into."""

_LONG = (7, 5, 4, 3, 2)
"""Sizes of an axis that windows go along, the one to be tried first in front."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A call, and what some elements of its output are read from.

    `changed` is the attribute that is not as in the other calls, None for the first of them. `inputs` has the arrays of the
    inputs that are given, `reads` what each chosen place of `output` is computed from.
    """

    changed: str | None
    attributes: Mapping[str, Any]
    inputs: Mapping[str, Array]
    output: str
    shape: Point
    reads: Mapping[Point, Reads]


def samples(family: Family) -> list[Sample]:
    """Return the first call of an op, and one for each attribute that changes what is read.

    There are none of an op without a body, of one that computes each element from those at its own place, and where no small
    call is found.
    """
    op = family.forward
    attributes = None if op.opaque or is_elementwise(op) else attributes_of(family)
    first = None if attributes is None else _sample(op, attributes, None)
    if first is None or attributes is None:
        return []
    found = [first]
    for a in op.attributes:
        for value in _others(a):
            other = _sample(op, {**attributes, a.name: value}, a.name)
            if other is not None and _read(other) != _read(first):
                found.append(other)
                break
    return found


def _read(sample: Sample) -> object:
    """Return what of a call is seen in a picture."""
    shapes = {name: array.shape for name, array in sample.inputs.items()}
    return sample.shape, shapes, {at: (r.elements, r.outside) for at, r in sample.reads.items()}


def _others(a: Attribute) -> Iterator[Any]:
    """Yield values of an attribute with a default that differ from it, the next ones first."""
    if a.required:
        return
    match a.kind, a.default:
        case AttributeKind.INT, tuple() as values:
            yield tuple(int(v) + 1 for v in values)
        case AttributeKind.INT, int(value):
            yield value + 1
        case AttributeKind.BOOL, bool(value):
            yield not value
        case AttributeKind.STR, _:
            yield from (v for v in a.values if v != a.default)


def _sample(op: Op, attributes: Mapping[str, Any], changed: str | None) -> Sample | None:
    """Return a call with these attributes; None where none is small, and where what it reads is unknown."""
    absent = frozenset(o.name for o in op.inputs if o.optional)
    for long in _LONG:
        wished = _sizes(op, attributes, long)
        sizes = fit(op, wished, {**axis_attributes(op, wished), **attributes}, absent, limit=None)
        if sizes is None:
            continue
        given = {**axis_attributes(op, sizes), **attributes}
        try:
            shapes = shapes_within(op, sizes, given, absent)
            env = infer(op, {name: shape for name, shape in shapes.items() if shape is not None}, given)
        except ShapeError:
            continue
        output = op.outputs[0].name
        drawn_shapes = [*(shape for shape in shapes.values() if shape is not None), env.outputs[output]]
        if sum(map(math.prod, drawn_shapes)) > MOST_CELLS or any(panels(s) > MOST_PANELS for s in drawn_shapes):
            continue
        limits = index_limits(op)
        inputs = {o.name: _array(o, shapes[o.name] or (), limits.get(o.name, []), env) for o in op.inputs if o.name not in absent}
        try:
            found = {at: reads(op, inputs, given, output, at) for at in _chosen(env.outputs[output])}
        except UntoldError:
            return None
        return Sample(changed, given, inputs, output, env.outputs[output], found) if found else None
    return None


def panels(shape: Point) -> int:
    """Return how many matrices an array is cut into: its last two axes are rows and columns."""
    return math.prod(shape[:-2])


def _chosen(shape: Point) -> list[Point]:
    """Return the first place of an array, one in the middle and the last one; none of an array without elements."""
    if 0 in shape:
        return []
    places = [tuple(0 for _ in shape), tuple(size // 2 for size in shape), tuple(size - 1 for size in shape)]
    return list(dict.fromkeys(places))


def _sizes(op: Op, attributes: Mapping[str, Any], long: int) -> Sizes:
    """Return sizes that show what an op does: axes that windows go along are long, those in front of matrices are 1."""
    dims: dict[str, int] = {}
    for name in dims_of(op):
        operand = next(o for o in op.inputs if Affine.of(Dim(name)) in o.dims)
        axes = [d for d in operand.dims if isinstance(d, Affine)]
        if len(axes) - axes.index(Affine.of(Dim(name))) > 2:
            dims[name] = 1
        else:
            slope = _slope(op, name, attributes)
            reduced = name in _reduced(op)
            dims[name] = 3 if slope < 0 or (slope > 0 and reduced) else long if slope > 0 else min(long, 4)
    groups: dict[str, Point] = {}
    for g in groups_of(op):
        around = [o.dims for o in (*op.inputs, *op.outputs) if any(isinstance(d, Group) and d.name == g for d in o.dims)]
        ranks = [sum(len(groups.get(d.name, ())) if isinstance(d, Group) else 1 for d in dims) for dims in around]
        groups[g] = (3,) if max(ranks) < 2 else ()
    return Sizes(dims, groups, {})


def _slope(op: Op, name: str, attributes: Mapping[str, Any]) -> int:
    """Return by how much a derived dimension grows, or shrinks, with one that inputs bind; 0 where none depends on it."""
    sizes = [Sizes({**dict.fromkeys(dims_of(op), 24), name: size}, dict.fromkeys(groups_of(op), ()), {}) for size in (24, 36)]
    try:
        fewer, more = ([size_of(op, rule, at, attributes) for _, rule in op.dims] for at in sizes)
    except (ShapeError, KeyError, TypeError):
        return 0
    return min((b - a for a, b in zip(fewer, more) if a != b), default=0)


def _reduced(op: Op) -> set[str]:
    """Return the dimensions that are extents of reductions."""
    axes = (a for s in op.body for e in walk(s.value) if isinstance(e, Reduce) for a in e.axes if isinstance(a, Axis))
    return {a.extent.single.name for a in axes if isinstance(a.extent.single, Dim)}


def _array(operand: Operand, shape: Point, limits: list[Limit], env: ShapeEnv) -> Array:
    """Return an input: indices inside of their limits, in no order; other numbers that differ."""
    count = np.arange(math.prod(shape))
    types = candidates(operand.type)
    if any(d.is_floating for d in types):
        return (((7 * count + 3) % 11 - 5) / 6).reshape(shape)
    least, behind = inside(limits, env) or (0, 9)
    least = max(least, 0)
    numbers = (least + (3 * count + 2) % max(behind - least, 1)).reshape(shape)
    return numbers.astype(bool) if all(d.value == "bool" for d in types) else numbers.astype(np.int64)


__all__ = ["Sample", "panels", "samples"]
