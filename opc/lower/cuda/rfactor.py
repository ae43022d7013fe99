"""rfactor: sums over rows and over what lies within them become sums of rows, and sums of these.

A sum for each channel of images goes over the images and over the points of each: `b[c] = sum[n, *S](d_y[n, c, *S])`. What a
point of the target needs lies in pieces far from one another, and targets are few. Its rows are summed by a stage of rows
instead, which reads packs of neighbours, each once for all sums of the same rows, and what is left are sums of few numbers.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import Weak
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Expr,
    GroupRef,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    free_groups,
    free_indices,
    has_reduction,
    reads,
)
from opc.ir.op import Assign, Op
from opc.lower.cuda.products import products_of
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.lower.nests.rfactor import KINDS, Entries, Rfactor
from opc.records import replace


def with_sums_of_rows(op: Op, nests: frozenset[str]) -> Op:
    """Return the op with sums of rows as statements ahead of the sums of them, in the statements that are loop nests."""
    if not runs_often(op):
        return op
    # A single number has all its terms side by side as it is.
    return _Rows(op, "rows").changed(s.target for s in op.body if s.indices and s.target in nests)


class _Rows(Rfactor):
    def goes_into(self, e: Expr) -> bool:
        """As `Rfactor` says; and where the condition is the same for all points."""
        if isinstance(e, Select):
            return not free_indices(e.cond) and not has_reduction(e.cond)
        return super().goes_into(e)

    def parts(self, s: Assign, e: Reduce) -> tuple[Entries, tuple[ReduceAxis, ...]] | None:
        """As `Rfactor` says: the rows of what has all that a sum goes over, and the axes that lie within them."""
        if e.kind not in KINDS or isinstance(e.type, Weak) or e.type != e.body.type or has_reduction(e.body):
            return None
        own = {_name(a): a for a in e.axes}
        extents = e.extents.values()
        if len(own) < 2 or any(isinstance(a, BroadcastAxis) for a in e.axes) or any(x.indices() for x in extents):
            return None
        places = {r: _places(r) for r in reads(e.body)}
        ends = {p[-1] for p in places.values() if p} & set(own)
        behind = {_behind(p, own) for p in places.values() if p is None or ends.intersection(p)}
        if len(behind) != 1 or not (row := behind.pop()):
            return None
        if len(row) == len(own):
            # All of it lies together, and is no row of the statement's stage: rows are along the last group.
            row = row[-1:]
            if isinstance(own[row[0]], Axis):
                return None
        points = {_name_of(i) for i in s.indices} & (free_indices(e.body) | free_groups(e.body))
        everything = points | set(own)
        full = next((r for r, p in places.items() if p is not None and set(p) == everything), None)
        if full is None or products_of(self.op, NestStage(s.target, replace(s, value=e), ())) is not None:
            return None
        rows = full.indices[: len(full.indices) - len(row)]
        entries = tuple(i if isinstance(i, GroupRef) else str(i) for i in rows if isinstance(i, Affine | GroupRef))
        return entries, tuple(own[name] for name in row)


def _name(a: ReduceAxis) -> str:
    return a.index if isinstance(a, Axis) else a.name


def _name_of(i: str | GroupRef) -> str:
    return i.name if isinstance(i, GroupRef) else i


def _places(r: Read) -> tuple[str, ...] | None:
    """Return the indices of a read, None where one is computed, or stands in two places."""
    if r.pad is not None or r.checked:
        return None
    names = []
    for i in r.indices:
        name = i.name if isinstance(i, GroupRef) else i.index if isinstance(i, Affine) else None
        if name is None or name in names:
            return None
        names.append(name)
    return tuple(names)


def _behind(places: tuple[str, ...] | None, own: dict[str, ReduceAxis]) -> tuple[str, ...]:
    """Return the axes of a sum that an operand's last indices are."""
    found: tuple[str, ...] = ()
    for name in reversed(places or ()):
        if name not in own:
            break
        found = (name, *found)
    return found


__all__ = ["with_sums_of_rows"]
