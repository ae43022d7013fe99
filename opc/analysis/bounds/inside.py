"""Which reads of an op are proved inside their operand: that of a spec, or one derived from it, after whatever passes.

A read is inside where the ranges of its indices and the conditions around it say so. A padded read may fall outside, and a
checked one is tested when the op runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.knowledge import Conditions, knowledge_of
from opc.analysis.bounds.prover import facts_of
from opc.analysis.bounds.value_range import Values
from opc.ir.affine import Affine
from opc.ir.expr import (
    CHOICE,
    CONDITION,
    READ,
    REDUCTION,
    Call,
    Expr,
    GroupAxis,
    GroupRef,
    Read,
    Reduce,
    Select,
    affine_value,
    children,
    conjuncts,
    free_groups,
    free_indices,
    reads,
    traits,
)
from opc.ir.op import Assign, Op


def unproved_reads(op: Op) -> list[Read]:
    """Return the reads of an op that are neither proved inside, nor padded, nor checked when the op runs."""
    reads = ReadsInside(op)
    return [r for s in op.body for r in reads.outside(s)]


class ReadsInside:
    """Proves that reads of an op are inside; the proofs are remembered."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.knowledge = knowledge_of(op)
        self.values = Values(op)

    def outside(self, statement: Assign) -> Iterator[Read]:
        """Yield the reads of a statement that are not proved inside, padded or checked."""
        ranges = ranges_of(statement, self.op.operand(statement.target))
        return (r for r, around, under in _visit(statement.value, ranges, ()) if self.axes_outside(r, around, under))

    def axes_outside(self, read: Read, ranges: Mapping[str, Affine], conditions: Conditions) -> tuple[int, ...]:
        """Return the axes along which a read is not proved inside, padded or checked."""
        if read.pad is not None:
            return ()
        dims = enumerate(zip(read.indices, self.op.operand(read.operand).dims, strict=True))
        return tuple(
            n
            for n, (i, dim) in dims
            if n not in read.checked and isinstance(dim, Affine) and not self._is_inside(i, dim, ranges, conditions)
        )

    def _is_inside(self, index: Affine | GroupRef | Expr, size: Affine, ranges: Mapping[str, Affine], under: Conditions) -> bool:
        if isinstance(index, GroupRef):
            return True
        if not isinstance(index, Affine):
            return _is_said(index, size, under) or self.values.within(index, size, ranges)
        if index.index is not None and ranges.get(index.index) == size:
            return True
        return all(self._nonnegative(f, ranges, under) for f in (index, size - 1 - index))

    def _nonnegative(self, f: Affine, ranges: Mapping[str, Affine], conditions: Conditions) -> bool:
        """Whether an expression is proved not negative: by what its own indices tell, which ops of a family share, or by all."""
        if f.is_never_negative:
            return True
        if any(f == fact for cond, holds in conditions for fact in facts_of(cond, holds)):
            return True
        names = _reached(f.indices(), ranges)
        own = {n: x for n, x in ranges.items() if n in names}
        said = tuple((c, holds) for c, holds in conditions if free_indices(c) <= names and not traits(c) & READ)
        proved = self.knowledge.nonnegative
        return proved(f, own, said) or ((own, said) != (ranges, conditions) and proved(f, ranges, conditions))


def _reached(names: Iterable[str], ranges: Mapping[str, Affine]) -> set[str]:
    """Return index variables and those that their extents hold."""
    found: set[str] = set()
    waiting = [n for n in names if n in ranges]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [n for n in ranges[name].indices() if n in ranges]
    return found


def parts(e: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Iterator[tuple[Expr, Mapping[str, Affine], Conditions]]:
    """Yield the direct subexpressions of `e`, each with the loops and the conditions that it stands in; given those of `e`."""
    match e:
        case Select():
            yield e.cond, ranges, under
            yield e.then, ranges, (*under, (e.cond, True))
            yield e.other, ranges, (*under, (e.cond, False))
            return
        case Call(fn="and" | "or" as fn, args=(first, second)):
            yield first, ranges, under
            yield second, ranges, (*under, (first, fn == "and"))
            return
        case Reduce():
            # An index of the reduction hides one of its name outside.
            own = set(e.extents)
            groups = {a.name for a in e.axes if isinstance(a, GroupAxis)}
            under = tuple((c, holds) for c, holds in under if not own & free_indices(c) and not groups & free_groups(c))
            outer = {n: x for n, x in ranges.items() if n not in own}
            ranges = {**outer, **e.extents}
    for c in children(e):
        yield c, ranges, under


def _visit(e: Expr, ranges: Mapping[str, Affine], under: Conditions) -> Iterator[tuple[Read, Mapping[str, Affine], Conditions]]:
    """Yield every read with the loops and the conditions that it stands in."""
    waiting = [(e, ranges, under)]
    while waiting:
        e, ranges, under = waiting.pop()
        if not traits(e) & READ:
            continue
        if not traits(e) & (CHOICE | CONDITION | REDUCTION):
            # The same loops and conditions are around all of them.
            for read in reads(e):
                yield read, ranges, under
            continue
        if isinstance(e, Read):
            yield e, ranges, under
        waiting += [*parts(e, ranges, under)][::-1]


def _is_said(index: Expr, size: Affine, conditions: Conditions) -> bool:
    """Whether conditions say that an index that is data is inside."""
    known = [c for cond, holds in conditions if holds for c in conjuncts(cond)]
    said = {(c.fn, affine_value(c.args[1])) for c in known if isinstance(c, Call) and len(c.args) == 2 and c.args[0] == index}
    return ("ge", Affine.of(0)) in said and ("lt", size) in said
