"""How an op may be spread over devices, read off its index notation.

A sharding cuts one dimension of the op, or one axis of a group, into a piece for each device. Every operand that has the
dimension is cut there, so that each device's call is a call of the same op on smaller operands; all other operands are whole on
every device. What is left to find out is what those calls compute:

* a value at the cut index, from values at the same index: the piece of the result that belongs to the device;
* a value in which the cut index does not occur: the result itself, equal everywhere;
* a sum, max or min over the cut index, and what is linear in such a sum: a part of the result, which the sum (max, min) over the
  devices completes.

Everything else (a softmax along the cut axis, a window, a gather, an index or a size used as a value) would need values of other
devices, and the dimension is not cut. An operand that is only added to a partial sum counts as partial itself, as the bias of a
linear layer whose contracted axis is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from opc.analysis.cut import Cut, Free, Known, Placement, is_along, mentions
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.expr import (
    IndexValue,
    walk,
)
from opc.ir.node import remembered
from opc.ir.op import Group, Op
from opc.records import dataclass

MOST_OPTIONAL = 6
"""With more optional inputs than this, only calls with all and with none of them are looked at."""
MOST_TOLD_APART = 2
"""With more optional inputs than this, calls with some of them are not cut where that takes other placements."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """One way to cut an op: along the dimension `along`, or along any one axis of the group `along` (`...`, `*A`).

    `inputs` and `outputs` hold a placement for each operand in the order of the signature. It holds for calls in which the
    optional inputs `given` are present and `absent` are not.
    """

    along: str
    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]
    given: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@remembered("_shardings")
def shardings(op: Op) -> tuple[Sharding, ...]:
    """Return every way to cut the op along one dimension or group, in the order the signature names them.

    The call with whole operands everywhere is always possible and not listed. Of an op without a body nothing is known.
    """
    if op.opaque:
        return ()
    return tuple(s for along in _candidates(op) for s in _along(op, along))


def _candidates(op: Op) -> Iterator[Dim | GroupSize]:
    """Yield the dimensions and groups that inputs have."""
    found: dict[Dim | GroupSize, None] = {}
    derived = {name for name, _ in op.dims}
    for operand in op.inputs:
        for d in operand.dims:
            atom = GroupSize(d.name) if isinstance(d, Group) else d.single
            if isinstance(atom, GroupSize) or (isinstance(atom, Dim) and atom.name not in derived):
                found.setdefault(atom)
    yield from found


def _along(op: Op, along: Dim | GroupSize) -> Iterator[Sharding]:
    """Yield the shardings along a dimension: one, or one for each choice of optional inputs that makes a difference."""
    if not _separable(op, along):
        return
    optional = [o.name for o in op.inputs if o.optional]
    few = len(optional) <= MOST_OPTIONAL
    sizes = range(len(optional) + 1) if few else (0, len(optional))
    found: dict[tuple[str, ...], tuple[Free, Free] | None] = {}
    known: Known = {}
    entries: dict[str, int | None] = {}
    for chosen in (c for n in sizes for c in combinations(optional, n)):
        found[chosen] = Cut(op, along, frozenset(optional) - frozenset(chosen), known, entries).placements()
    together = _merged(list(found.values())) if few else None
    if together is not None:
        yield Sharding(_name(along), *together)
        return
    for chosen, placements in found.items():
        if placements is None or (len(optional) > MOST_TOLD_APART and len(chosen) not in (0, len(optional))):
            continue
        alone = _merged([placements])
        if alone is not None:
            yield Sharding(_name(along), *alone, chosen, tuple(n for n in optional if n not in chosen))


def _merged(found: Sequence[tuple[Free, Free] | None]) -> tuple[tuple[Placement, ...], tuple[Placement, ...]] | None:
    """Return placements that suit all of these; None when there are none."""
    sides: list[tuple[Placement, ...]] = []
    for side in (0, 1):
        placed: list[Placement] = []
        for choices in zip(*(f[side] for f in found if f is not None)):
            kinds = {c for c in choices if c is not None} or {Placement.REPLICATE}
            if len(kinds) > 1:
                return None
            placed += kinds
        sides.append(tuple(placed))
    return (sides[0], sides[1]) if None not in found and Placement.SHARD in sides[0] else None


def _name(along: Dim | GroupSize) -> str:
    if isinstance(along, Dim):
        return along.name
    return along.name if along.name == "..." else f"*{along.name}"


def _separable(op: Op, along: Dim | GroupSize) -> bool:
    """Whether the op's shapes and rules hold for each piece when they hold for the whole, and no operand has the axis twice."""
    sizes = [size for _, size in op.dims]
    for operand in op.operands:
        own = [d for d in operand.dims if is_along(d, along)]
        if len(own) > 1:
            return False
        sizes += [d for d in operand.dims if isinstance(d, Affine) and d not in own]
    conditions = [r.condition for r in op.require]
    return not any(mentions(size, along) for size in sizes) and not any(
        mentions(node.value, along) for c in conditions for node in walk(c) if isinstance(node, IndexValue)
    )


def format_shardings(op: Op) -> str:
    """Return the rule as text, one way to cut a line: `  along K: x Shard(K), w Shard(K) -> y Partial(sum)`."""
    lines = [f"Sharding of {op.name}: whole operands everywhere, or one of"]
    names = [o.name for o in op.inputs], [o.name for o in op.outputs]
    for s in shardings(op):
        sides = [
            ", ".join(f"{n} {_placed(s, n, p)}" for n, p in zip(group, placed) if n not in s.absent)
            for group, placed in zip(names, (s.inputs, s.outputs))
        ]
        given = f" with {', '.join(s.given)}" if s.given else ""
        without = f" without {', '.join(s.absent)}" if s.absent else ""
        axis = f"an axis of {s.along}" if s.along.startswith(("*", "...")) else s.along
        lines.append(f"  along {axis}{given}{without}: {sides[0]} -> {sides[1]}")
    return "\n".join(lines if len(lines) > 1 else [f"Sharding of {op.name}: whole operands everywhere"]) + "\n"


def _placed(s: Sharding, name: str, placement: Placement) -> str:
    match placement:
        case Placement.REPLICATE:
            return "Replicate"
        case Placement.SHARD:
            return f"Shard({s.along})"
        case Placement.OWN:
            return f"Shard({s.along}), Partial(sum) where broadcast"
        case _:
            return f"Partial({placement.value})"


__all__ = ["Placement", "Sharding", "format_shardings", "shardings"]
