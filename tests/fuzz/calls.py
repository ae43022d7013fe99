"""Calls of random ops: sizes around the width of vectors, nothing and one, a long axis at times; dtypes, layouts, attributes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from opc.ir.op import Family, Group, Op
from opc.testing.cases.arguments import LAYOUTS, few_values, mixed_values, random_values
from opc.testing.cases.calls import Case, Fill, Maker
from opc.testing.cases.sizes import Sizes, dims_of, groups_of, split, windows_of

SIZES = (0, 1, 2, 3, 5, 15, 16, 17, 31, 33, 63, 65, 127, 1000)
SMALL = (1, 2, 3, 4, 5)
POINTS = 12_000
"""The most points of the largest loop of an ordinary call: the oracle holds all of them at once."""

LARGE = 600_000
"""The same of the few large ones."""

BRUTE = 400
"""The same of those that are evaluated point by point."""


def special(share: float) -> Fill:
    """Return what fills operands with random values, of which a share are zeros, infinities, bounds of a type and the like."""
    return lambda rng, shape, dtype: mixed_values(rng, shape, dtype, share)


def sizes(op: Op, rng: random.Random, *, small: bool = False) -> tuple[Sizes, tuple[str, ...]]:
    """Return sizes of a call, and the dimension that is to stay long."""
    dims, groups, windows = dims_of(op), groups_of(op), windows_of(op)
    # Equal sizes of different dimensions hide nothing that different ones show, but the other way round it happens.
    alike = rng.random() < 0.15
    drawn = {d: rng.choice(SMALL[:3] if d in windows else SMALL) for d in dims}
    long = rng.choice(dims) if dims and not small else None
    if long is not None:
        drawn[long] = rng.choice(SIZES)
        if alike:
            drawn = dict.fromkeys(dims, rng.choice(SIZES))
    shape = tuple(rng.choice(SMALL if small or rng.random() < 0.7 else SIZES) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    found = Sizes(drawn, split(groups, shape, rng.randrange(4)), {})
    return found, (long,) if long is not None else ()


def _own(op: Op, found: Sizes, rng: random.Random) -> Sizes:
    """Return the sizes with the inputs of a broadcast op on shapes of their own."""
    if op.derivation is not None:
        return _own_of_derived(op, found)
    owners = [d.of for o in op.inputs for d in o.dims if getattr(d, "of", None) is not None]
    if len(set(owners)) < 2 or not found.groups:
        return found
    (group,) = found.groups
    common = found.groups[group]
    return Sizes(found.dims, found.groups, {owner: _part(common, rng) for owner in owners[1:]})


def _own_of_derived(op: Op, found: Sizes) -> Sizes:
    """Return the same of a derived op: gradients have the common shape, and so has one operand that is always given."""
    rng = random.Random(repr(found))  # what is drawn besides is the same with these and without
    owners = [name for name in op.sharing if Group("...", name) in op.input(name).dims]
    if not found.groups or all(op.input(name).optional for name in owners):
        return found
    _, *others = sorted(owners, key=lambda name: (op.input(name).optional, name))
    return Sizes(found.dims, found.groups, {name: _part(found.groups["..."], rng) for name in others})


def _part(common: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    """Return a shape that broadcasts to another."""
    cut = rng.randrange(len(common) + 1) if rng.random() < 0.5 else 0
    return tuple(1 if rng.random() < 0.4 else s for s in common[cut:])


def draw(
    op: Op, parent: Op | None, rng: random.Random, count: int, *, small: bool = False, large: bool = False
) -> Iterator[Case]:
    """Yield up to `count` calls of an op."""
    maker = Maker(op, parent, limit=BRUTE if small else POINTS)
    maker.rng = np.random.default_rng(rng.randrange(2**32))
    optional = [o.name for o in op.inputs if o.optional]
    for _ in range(count):
        for _attempt in range(6):
            found, keep = sizes(op, rng, small=small)
            attributes = {n: rng.choice(v) for n, v in maker.good.items() if v and rng.random() < 0.5}
            absent = frozenset(n for n in optional if rng.random() < 0.3)
            fill = random_values if small else rng.choice((random_values, random_values, few_values, special(0.05), special(0.5)))
            layout = "contiguous" if small else rng.choice(("contiguous", *LAYOUTS))
            case = maker.make(
                "large" if large else "drawn", _own(op, found, rng), rng.choice(maker.bindings), attributes, absent=absent,
                layout=layout, fill=fill, negative_axis=rng.random() < 0.5, keep=keep, limit=LARGE if large else None,
            )  # fmt: skip
            if case is not None:
                yield case
                break


def parents(family: Family) -> dict[int, Op]:
    """Return the op that each derived op is derived from."""
    further = {id(family.backward_backward): family.backward, id(family.backward_jvp): family.backward}
    return {id(op): further.get(id(op)) or family.forward for op in family.ops if op is not family.forward}


__all__ = ["draw", "parents", "special"]
