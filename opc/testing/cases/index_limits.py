"""Which integer inputs are indices, and of what: test calls give them values that mostly stand inside.

An input is an index where a read takes it as one, and where it is compared with an index variable, as a scatter does. What it
is compared with besides, such as the target a loss ignores, is among its values too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.expr import Axis, Call, Expr, GroupRef, IndexValue, Read, Reduce, children, walk
from opc.ir.op import Op
from opc.ir.rules import unwidened
from opc.testing.oracle.bounds import Array

SPECIAL_SHARE = 0.1
"""How many of an index's values are one that the op compares it with."""


@dataclass(frozen=True, slots=True)
class Limit:
    """An index must stay below `extent`. It is `direct` where the input's value is the index itself, not one computed from it.

    It is `checked` where an index outside is refused.
    """

    extent: Affine
    direct: bool
    checked: bool

    @property
    def least(self) -> int:
        """The least index in units of the extent: one that is computed from the value may count from the end."""
        return 0 if self.direct else -1


def index_limits(op: Op) -> dict[str, list[Limit]]:
    """Return the limits of every integer input that is used as an index."""
    inputs = {o.name for o in op.inputs}
    result: dict[str, list[Limit]] = {}
    for statement in op.body:
        dims = op.operand(statement.target).dims
        ranges = {i: d for i, d in zip(statement.indices, dims) if isinstance(i, str) and isinstance(d, Affine)}
        for name, limit in _limits(op, statement.value, ranges):
            if name in inputs and limit not in result.setdefault(name, []):
                result[name].append(limit)
    return {name: limits for name, limits in result.items() if limits}


def _limits(op: Op, e: Expr, ranges: Mapping[str, Affine]) -> Iterator[tuple[str, Limit]]:
    match e:
        case Read():
            for dim, entry in zip(op.operand(e.operand).dims, e.indices):
                if isinstance(dim, Affine) and not isinstance(entry, Affine | GroupRef):
                    yield from _inside(entry, dim, e.pad is None)
        case Call(fn="eq", args=(left, right)):
            for index, value in ((left, right), (right, left)):
                name = index.value.index if isinstance(index, IndexValue) else None
                if name is not None and name in ranges:
                    yield from _inside(value, ranges[name], False)
        case Reduce():
            ranges = {**ranges, **{a.index: a.extent for a in e.axes if isinstance(a, Axis)}}
    for child in children(e):
        yield from _limits(op, child, ranges)


def _inside(value: Expr, extent: Affine, checked: bool) -> Iterator[tuple[str, Limit]]:
    plain = unwidened(value)
    for part in walk(plain):
        if isinstance(part, Read):
            yield part.operand, Limit(extent, part is plain, checked)


def special_indices(op: Op) -> dict[str, list[Affine]]:
    """Return for every integer input the sizes and attributes it is compared with."""
    result: dict[str, list[Affine]] = {}
    for e in (node for s in op.body for node in walk(s.value)):
        if isinstance(e, Call) and e.fn in ("eq", "ne"):
            for value, compared in (e.args, e.args[::-1]):
                number, read = affine_of(value), unwidened(compared)
                if number is not None and isinstance(read, Read) and not number.indices():
                    found = result.setdefault(read.operand, [])
                    found += [number] if number not in found else []
    return result


def index_values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, limits: list[Limit], special: list[Affine], env: ShapeEnv
) -> Array | None:
    """Return indices that stand inside all limits; None when these depend on a loop, and anything goes."""
    sizes = [env.value(limit.extent) for limit in limits if not limit.extent.indices()]
    if not sizes:
        return None
    size, least = max(min(sizes), 1), max(limit.least for limit in limits)
    values = rng.integers(least * size, size, shape)
    for e in special:
        values = np.where(rng.random(shape) < SPECIAL_SHARE, env.value(e), values)
    return np.asarray(values).astype(numpy_dtype(dtype))


def outside(limits: list[Limit], env: ShapeEnv) -> list[int]:
    """Return values just outside the checked limits and far from them."""
    found: list[int] = []
    for limit in limits:
        if limit.checked and not limit.extent.indices():
            size = env.value(limit.extent)
            found += [size, limit.least * size - 1, 2**31 - 1]
    return list(dict.fromkeys(found))
