"""Which integer inputs are indices, and of what: test calls give them values that mostly stand inside.

An input is an index where a read takes it as one, itself or through a temporary, and where it is compared with an index variable,
as a scatter does. What it is compared with besides, such as the target a loss ignores, is among its values too, and so is in some
calls what a condition on it excludes: where `x[k[i]]` is read if `k[i] < N`, the index N is no mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.analysis.value_types import affine_of, integer_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, is_whole, numpy_dtype
from opc.ir.expr import Call, Cast, Expr, GroupRef, IndexValue, Read, Reduce, Select, children, walk
from opc.ir.op import Op
from opc.ir.rules import unwidened
from opc.testing.oracle.bounds import Array

SPECIAL_SHARE = 0.1
"""How many of an index's values are one that the op compares it with."""


BORDER_SHARE = 0.5
"""In how many calls an index has values at either side of a bound that a condition sets it."""

WIDE_SHARE = 0.25
"""How many calls have indices that are computed from a value, as `length - 1`, outside of their axes too."""

_WHOLE = Affine.of(0)


@dataclass(frozen=True, slots=True)
class Limit:
    """An index must stay below `extent`. It is `direct` where the input's value is the index itself, not one computed from it.

    It is `checked` where an index outside is refused. `line` is the factor and the offset of one that is computed as
    `factor * value + offset`, neither of which depends on an index.
    """

    extent: Affine
    direct: bool
    checked: bool
    line: tuple[int, Affine] | None = None

    @property
    def least(self) -> int:
        """The least index in units of the extent: one that is computed from the value may count from the end."""
        return 0 if self.direct else -1

    def ends(self, env: ShapeEnv) -> tuple[int, int]:
        """Return the least value that stands inside, and the first one behind those that do."""
        size = env.value(self.extent)
        if self.line is None:
            return self.least * size, size
        factor, offset = self.line[0], env.value(self.line[1])
        ends = ((0 - offset) / factor, (size - 1 - offset) / factor)
        return math.ceil(min(ends)), math.floor(max(ends)) + 1


def index_limits(op: Op) -> dict[str, list[Limit]]:
    """Return the limits of every integer input that is used as an index."""
    inputs = {o.name for o in op.inputs}
    result: dict[str, list[Limit]] = {}

    def note(name: str, limit: Limit) -> None:
        if limit not in result.setdefault(name, []):
            result[name].append(limit)

    for statement in op.body:
        dims = op.operand(statement.target).dims
        ranges = {i: d for i, d in zip(statement.indices, dims) if isinstance(i, str) and isinstance(d, Affine)}
        for name, limit in _limits(op, statement.value, ranges):
            note(name, limit)
    for statement in reversed(op.body):
        for limit in list(result.get(statement.target, ())):
            for value in _sides(statement.value):
                if (through := _through(value, limit)) is not None:
                    note(*through)
    return {name: limits for name, limits in result.items() if limits and name in inputs}


def _sides(e: Expr) -> Iterator[Expr]:
    """Yield what a value is on the sides of its conditionals."""
    if isinstance(e, Select):
        yield from _sides(e.then)
        yield from _sides(e.other)
    else:
        yield e


def _through(value: Expr, limit: Limit) -> tuple[str, Limit] | None:
    """Return the operand that a temporary with a limit is computed from, with the limit that it has for this reason."""
    found, outer = _line(value), limit.line or (1, _WHOLE)
    if found is None or not (limit.direct or limit.line):
        return None
    read, factor, offset = found
    line = outer[0] * factor, offset * outer[0] + outer[1]
    plain = line == (1, _WHOLE)
    return read.operand, Limit(limit.extent, plain, limit.checked, None if plain else line)


def _line(e: Expr) -> tuple[Read, int, Affine] | None:
    """Return the read, the factor and the offset of a number that is `factor * read + offset`; None for another."""
    match e:
        case Read():
            return e, 1, _WHOLE
        case Cast() if is_whole(e.type) and is_whole(e.arg.type):
            return _line(e.arg)
        case Call(fn="neg", args=(arg,)):
            found = _line(arg)
            return found and (found[0], -found[1], -found[2])
        case Call(fn="add" | "sub" | "mul", args=(left, right)):
            for of, by, turn in ((left, right, 1), (right, left, -1 if e.fn == "sub" else 1)):
                found, number = _line(of), integer_of(by)
                if found is None or number is None or number.indices():
                    continue
                read, factor, offset = found
                if e.fn == "mul":
                    return (read, factor * number.constant, offset * number) if number.constant else None
                shift = -number if e.fn == "sub" and turn == 1 else number
                return read, turn * factor, offset * turn + shift
    return None


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
            ranges = {**ranges, **e.extents}
    for child in children(e):
        yield from _limits(op, child, ranges)


def _inside(value: Expr, extent: Affine, checked: bool) -> Iterator[tuple[str, Limit]]:
    plain = unwidened(value)
    found = _line(plain)
    if found is not None and not isinstance(plain, Read):
        yield found[0].operand, Limit(extent, False, checked, found[1:])
        return
    for part in walk(plain):
        if isinstance(part, Read):
            yield part.operand, Limit(extent, part is plain, checked)


def special_indices(op: Op) -> dict[str, list[Affine]]:
    """Return for every integer input the sizes and attributes it is compared with."""
    return _compared(op, {"eq": (0,), "ne": (0,)})


def bordering_indices(op: Op) -> dict[str, list[Affine]]:
    """Return for every integer input the values next to the sizes and attributes that bound it."""
    return _compared(op, {"lt": (-1, 0), "ge": (-1, 0), "le": (0, 1), "gt": (0, 1)})


def _compared(op: Op, near: Mapping[str, tuple[int, ...]]) -> dict[str, list[Affine]]:
    """Return what inputs are compared with by some comparisons, and how `near` that the values are which tell these apart."""
    result: dict[str, list[Affine]] = {}
    for e in (node for s in op.body for node in walk(s.value)):
        if isinstance(e, Call) and e.fn in near:
            for (compared, value), fn in ((e.args, e.fn), (e.args[::-1], _MIRRORED[e.fn])):
                number, read = affine_of(value), unwidened(compared)
                if number is not None and isinstance(read, Read) and not number.indices():
                    found = result.setdefault(read.operand, [])
                    found += [n for n in (number + offset for offset in near[fn]) if n not in found]
    return result


_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def index_values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, limits: list[Limit], special: list[Affine], env: ShapeEnv,
    bordering: Sequence[Affine] = (),
) -> Array | None:  # fmt: skip
    """Return indices that stand inside all limits, but for `special` ones, and in some calls those `bordering` on a bound.

    None when the limits depend on a loop, and anything goes.
    """
    found = inside(limits, env, wide=any(limit.line for limit in limits) and rng.random() < WIDE_SHARE)
    if found is None:
        return None
    values = rng.integers(*found, shape)
    if bordering and rng.random() < BORDER_SHARE:
        special = [*special, *bordering]
    for e in special:
        values = np.where(rng.random(shape) < SPECIAL_SHARE, env.value(e), values)
    return np.asarray(values).astype(numpy_dtype(dtype))


def inside(limits: list[Limit], env: ShapeEnv, *, wide: bool = False) -> tuple[int, int] | None:
    """Return the least value inside all limits and the first one behind these; None when all limits depend on a loop.

    Where no value is inside of all, or a `wide` range is asked for, they are the ends of the smallest axis, counted from its end.
    """
    told = [limit for limit in limits if not limit.extent.indices()]
    if not told:
        return None
    ends = [limit.ends(env) for limit in told]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    if wide or low >= high:
        size = max(min(env.value(limit.extent) for limit in told), 1)
        return max(limit.least for limit in told) * size, size
    return low, high


def outside(limits: list[Limit], env: ShapeEnv) -> list[int]:
    """Return values just outside the checked limits and far from them."""
    found: list[int] = []
    for limit in limits:
        if limit.checked and not limit.extent.indices():
            low, high = limit.ends(env)
            found += [high, low - 1, 2**31 - 1]
    return list(dict.fromkeys(found))
