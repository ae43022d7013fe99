"""Sums at points that lie side by side, of which a thread has a pack: neighbours along the target's last index, 16 bytes of what
is read along it.

A gradient of what all rows share, such as a bias, is a sum over rows for each column. Where a thread has one column it computes
for each element where that lies, and reads the values that a row has anew; a thread that has a pack does so once for its columns.
Parts of the rows are summed by themselves, and joined by the loop over single points, which takes all where there are no packs.
"""

from __future__ import annotations

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Axis, Call, Cast, Const, Expr, GroupAxis, IndexValue, Reduce, children, free_indices, reads, walk
from opc.ir.op import Op
from opc.loops.bind import WORK, share_terms
from opc.loops.nodes import Accumulate, Body, Do, How, If, Kernel, Let, Loop, Var
from opc.loops.packs import COUNT
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import (
    Local,
    Member,
    Named,
    Product,
    Word,
    call,
    number,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.packed import PackedPoints, always_packed
from opc.lower.cuda.points import point_kernel, used_places
from opc.lower.guards import replace_node
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace


def summed_entry(op: Op, stage: NestStage) -> int | None:
    """Return the entry of the target that threads take packs along, the last; None where a statement is no such sum."""
    nest, value = Nest(op, stage), stage.assign.value
    if not runs_often(op) or not stage.assign.indices or not isinstance(stage.assign.indices[-1], str):
        return None
    found = [e for e in walk(value) if isinstance(e, Reduce)]
    if len(found) != 1 or found[0] is not _unconditional(value):
        return None
    (total,) = found
    if total.kind != "sum" or len(total.axes) != 1 or isinstance(total.type, Weak) or total.type != total.body.type:
        return None
    (axis,) = total.axes
    own = nest.stage.assign.indices[-1]
    plain = isinstance(axis, GroupAxis) or (isinstance(axis, Axis) and not axis.extent.indices())
    # A read may stand both in the sum and beside it.
    beside = reads(replace_node(value, total, Const(0, total.type)))
    if not plain or any(own in free_indices(r) for r in beside) or own in _places(value):
        return None
    entry = len(stage.assign.indices) - 1
    return entry if always_packed(nest, total.body, entry) else None


def _unconditional(e: Expr) -> Expr | None:
    """Return the reduction that a value always asks for, None where there is none."""
    match e:
        case Reduce():
            return e
        case Call() | Cast():
            return next((found for c in children(e) if (found := _unconditional(c)) is not None), None)
        case _:
            return None


def summed_kernel(op: Op, stage: NestStage, entry: int) -> Kernel:
    """Return the function of a sum, whose variables have no names of their own yet: a loop over packs, and that over points."""
    single = point_kernel(op, stage)
    comment, loop = single.body
    packs = PackedSums(Nest(op, stage), entry)
    steps = (*single.schedule.steps, Transformation("pack", ("16 bytes", packs.index)))
    return replace(single, body=(comment, *packs.loop(), loop), schedule=Schedule(steps))


class PackedSums(PackedPoints):
    """Makes the loop over packs of columns."""

    def loop(self) -> Body:
        """Return how many columns a pack has, and the loop."""
        lane, own = variable(self.lane), self.nest.fresh("own")
        places = self.starts()
        value = self.value(self.stage.assign.value)
        point, total = sum_of([variable(self.first), lane]), Local(self.total, self.type, lane)
        keep = self.each((Do(call("keep_terms", NEST, variable(WORK), point, total, types=(self.type,))),))
        part = If(call("is_part", NEST, type=DType.BOOL), (keep,), self.stored_pack(self.lanes, value))
        head = Let(own, Weak.INT, call("point_of", NEST, variable(WORK)))
        begin = Let(self.first, Weak.INT, Product((variable(own), Word(COUNT))))
        body = (head, begin, *used_places(places, (*self.lines, part)))
        return self.count(), Loop(How.TEAMS, WORK, number(0), Member("@nest", "packed"), body)

    def reduction(self, e: Reduce) -> Expr:
        """As `PointLoops` says: a total for each column."""
        (axis,) = e.axes
        assert isinstance(axis, Axis | GroupAxis), "a sum in packs goes over one axis"
        assert not isinstance(e.type, Weak)
        self.total, self.type = self.nest.fresh("totals"), e.type
        groups, lines, self.lines = dict(self.groups), self.lines, []
        loop = self.loop_over(axis)
        value = self.value(e.body)
        each = Accumulate(Local(self.total, e.type, variable(self.lane)), e.kind, value)
        inner = (*self.ahead, self.each((*self.lines, each)))
        self.groups, self.lines, self.ahead = groups, lines, []
        zeros = Var(self.total, Named("auto"), call("no_terms", types=(e.type, COUNT)))
        self.lines += [zeros, *share_terms((replace(loop, body=inner),), {}, 1)]
        found = self.nest.fresh("total")
        self.lanes = (Let(found, e.type, Local(self.total, e.type, variable(self.lane))),)
        return Local(found, e.type)


def _places(value: Expr) -> frozenset[str]:
    """Return the indices whose places a value computes with."""
    return frozenset().union(*(e.value.indices() for e in walk(value) if isinstance(e, IndexValue)))


__all__ = ["summed_entry", "summed_kernel"]
