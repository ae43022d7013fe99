"""Axes of one point or of as many as another: `scale[n % S]`, where `S == 1 or S == N` is required, is broadcast along N.

Such a read is regular, with a stride of 0 where S is 1. Its transpose sums over the n that are i modulo S, written
`sum[j:(N - 1) // S + 1](f(i + j*S) if i + j*S < N else 0)`: over all of them where S is 1, else over the one that is i.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Dim, Index, Mod
from opc.ir.expr import Axis, BroadcastAxis, Call, Expr, Reduce, Select, free_indices, map_affine
from opc.ir.node import remembered
from opc.ir.op import Op
from opc.lower.guards import guards
from opc.lower.loop_ir import IndexLoop, Loop
from opc.lower.nests.terms import conditions_of
from opc.records import replace
from opc.transform.indices import Namer, bound_indices


@remembered("_broadcast")
def broadcast_sizes(op: Op) -> Mapping[Affine, Affine]:
    """Return the sizes that are required to be 1 or another size, and that other size of each."""
    found: dict[Affine, Affine] = {}
    for r in op.require:
        match r.condition:
            case Call(fn="or", args=(Call(fn="eq", args=(a, b)), Call(fn="eq", args=(c, d)))):
                first, second = (affine_of(a), affine_of(b)), (affine_of(c), affine_of(d))
                found |= {s: n for s, n in (*_sizes(first, second), *_sizes(second, first)) if s not in found}
    return found


def _sizes(
    one: tuple[Affine | None, Affine | None], other: tuple[Affine | None, Affine | None]
) -> Iterator[tuple[Affine, Affine]]:
    """Yield the size that `one` says is 1 with the size that `other` says it is."""
    for size, number in (one, one[::-1]):
        if size is None or number is None or number.constant != 1 or not isinstance(size.single, Dim):
            continue
        for same, n in (other, other[::-1]):
            if same == size and n is not None and isinstance(n.single, Dim):
                yield size, n


def is_broadcast(index: Affine, loop: Loop, loops: Mapping[str, Loop]) -> bool:
    """Whether a read at `index` of an axis that is broadcast follows the loop it is broadcast along."""
    atom = index.single
    if not isinstance(loop, IndexLoop) or loop.along is None or not isinstance(atom, Mod) or atom.denominator != loop.extent:
        return False
    mine = loops.get(atom.numerator.index or "")
    return isinstance(mine, IndexLoop) and mine.along is None and mine.extent == loop.along


def joined(e: Reduce, loops: Mapping[str, Loop], taken: Collection[str]) -> tuple[Reduce, Axis] | None:
    """Return a sum over the points that broadcast to one of `loops` as a sum over one axis, whose name is not `taken`, and that
    axis; None when `e` is no such sum."""
    if e.kind != "sum" or any(isinstance(a, BroadcastAxis) for a in e.axes):
        return None
    for axis in e.axes:
        for index, loop in loops.items():
            if not isinstance(axis, Axis) or not isinstance(loop, IndexLoop) or loop.along is None:
                continue
            if axis.extent == (loop.along - 1) // loop.extent + 1:
                name = Namer({*taken, *loops} | bound_indices(e)).fresh("point")
                body = _along(e.body, index, axis.index, loop.extent, loop.along, name)
                if body is not None:
                    new = Axis(name, loop.along)
                    return replace(e, axes=tuple(new if a is axis else a for a in e.axes), body=body), new
    return None


def _along(body: Expr, index: str, turn: str, size: Affine, along: Affine, name: str) -> Expr | None:
    """Return the term at `index + turn * size`, which must be below `along`, as one at the point `name`."""
    conditions, term = conditions_of(body)
    place = Affine.of(Index(index)) + Affine.of(Index(turn)) * size
    bound = [c for c in conditions if guards(c, lambda _: False) == (along - 1 - place,)]
    if not bound:
        return None
    there = Affine.of(Index(name)) - Affine.of(Index(turn)) * size

    def moved(a: Affine) -> Affine:
        return a.at(index, there) if turn in a.indices() else a

    for c in reversed([c for c in conditions if c is not bound[0]]):
        term = Select(c, term, _nothing(body), body.type)
    term = map_affine(term, moved)
    return None if turn in free_indices(term) else term


def _nothing(body: Expr) -> Expr:
    """Return the 0 that a term under conditions is otherwise."""
    assert isinstance(body, Select), "a term under conditions is a choice"
    return body.other
