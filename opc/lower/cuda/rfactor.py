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
    Call,
    Cast,
    Expr,
    GroupRef,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    children,
    free_groups,
    free_indices,
    has_reduction,
    reads,
    with_children,
)
from opc.ir.op import Assign, Group, Op, Operand
from opc.lower.cuda.products import products_of
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names

_KINDS = ("sum", "prod", "any", "all")
"""These have a value where there are no terms; the report that a maximum has none names all axes."""


def with_sums_of_rows(op: Op, nests: frozenset[str]) -> Op:
    """Return the op with sums of rows as statements ahead of the sums of them, in the statements that are loop nests."""
    if not runs_often(op):
        return op
    splitter = _Rfactor(op)
    for s in op.body:
        # A single number has all its terms side by side as it is.
        splitter.body.append(replace(s, value=splitter.split(s, s.value)) if s.indices and s.target in nests else s)
    if not splitter.temporaries:
        return op
    return replace(op, body=tuple(splitter.body), temporaries=(*op.temporaries, *splitter.temporaries))


class _Rfactor:
    def __init__(self, op: Op) -> None:
        self.op = op
        self.namer = Namer(op_names(op) | index_names(op))
        self.body: list[Assign] = []
        self.temporaries: list[Operand] = []

    def split(self, s: Assign, e: Expr) -> Expr:
        """Return a part of the value of `s` with its sums as sums of those of rows, whose statements are appended; what is
        computed on a condition that points differ in stays as it is."""
        match e:
            case Reduce():
                row = self._row(s, e)
                return e if row is None else self._rfactored(s, e, *row)
            case Select(cond=cond) if not free_indices(cond) and not has_reduction(cond):
                return with_children(e, tuple(self.split(s, c) for c in children(e)))
            case Call() | Cast():
                return with_children(e, tuple(self.split(s, c) for c in children(e)))
            case _:
                return e

    def _row(self, s: Assign, e: Reduce) -> tuple[Read, tuple[ReduceAxis, ...]] | None:
        """Return what has all rows that a sum goes over, and the axes that lie within them; None where there is no such."""
        if e.kind not in _KINDS or isinstance(e.type, Weak) or e.type != e.body.type or has_reduction(e.body):
            return None
        own = {_name(a): a for a in e.axes}
        extents = (a.extent for a in e.axes if isinstance(a, Axis))
        if len(own) < 2 or any(isinstance(a, BroadcastAxis) for a in e.axes) or any(x.indices() for x in extents):
            return None
        found = [*reads(e.body)]
        places = [_places(r) for r in found]
        behind = {_behind(p, own) for p in places if p is None or set(p) & _within(places, own)}
        if len(behind) != 1 or not (row := behind.pop()):
            return None
        if len(row) == len(own):
            # All of it lies together, and is no row of the statement's stage: rows are along the last group.
            row = row[-1:]
            if isinstance(own[row[0]], Axis):
                return None
        outer = set(own) - set(row)
        points = {_entry(i) for i in s.indices} & (free_indices(e.body) | free_groups(e.body))
        all_rows = points | outer
        full = next((r for r, p in zip(found, places, strict=True) if p is not None and set(p) == all_rows | set(row)), None)
        if full is None or products_of(self.op, NestStage(s.target, replace(s, value=e), ())) is not None:
            return None
        return full, tuple(own[name] for name in row)

    def _rfactored(self, s: Assign, e: Reduce, full: Read, inner: tuple[ReduceAxis, ...]) -> Expr:
        """Append the statement of the sums of rows, and return the sum of them."""
        outer = tuple(a for a in e.axes if a not in inner)
        dims: dict[str, Affine | Group] = {}
        for i, dim in zip(s.indices, self.op.operand(s.target).dims, strict=True):
            dims[_entry(i)] = dim
        dims |= {_name(a): a.extent if isinstance(a, Axis) else Group(a.name) for a in outer}
        rows = full.indices[: len(full.indices) - len(inner)]
        indices = tuple(i if isinstance(i, GroupRef) else str(i) for i in rows if isinstance(i, Affine | GroupRef))
        name = self.namer.fresh(f"{s.target}_rows")
        assert not isinstance(e.type, Weak), "what has a weak type is not split"
        own = Operand(name, e.type, tuple(dims[_entry(i)] for i in indices))
        self.temporaries.append(own)
        self.body.append(Assign(name, indices, replace(e, axes=inner), s.span))
        return replace(e, axes=outer, body=Read(name, bare(indices), e.type, span=e.span))


def _name(a: ReduceAxis) -> str:
    return a.index if isinstance(a, Axis) else a.name


def _entry(i: str | GroupRef) -> str:
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


def _within(places: list[tuple[str, ...] | None], own: dict[str, ReduceAxis]) -> set[str]:
    """Return the axes of a sum that something read ends with."""
    return {p[-1] for p in places if p and p[-1] in own}


def _behind(places: tuple[str, ...] | None, own: dict[str, ReduceAxis]) -> tuple[str, ...]:
    """Return the axes of a sum that an operand's last indices are."""
    found: tuple[str, ...] = ()
    for name in reversed(places or ()):
        if name not in own:
            break
        found = (name, *found)
    return found


__all__ = ["with_sums_of_rows"]
