"""Recurrences as loops: an op in segments, of which those of recurrences compute one step at a time.

Lowering and the printers of array programs take an op that has recurrences through this form. Each value that steps is kept for
all its indices in a temporary whose first axis is the one that it steps along. A segment of a recurrence is an op for a single
step: its outputs are the values of the step, without that axis, and the index of the step is a size that only loops know.

Where a recurrence is by points, the steps of one point need no other point: they may run before those of the others. Its
values are then read from these temporaries alone, and an order of axes may stay as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opc.ir.affine import Affine, Dim
from opc.ir.expr import Expr, Read, operands_read, rewrite
from opc.ir.op import Assign, Group, Op, Operand, Requirement
from opc.ir.recurrence import Recurrence, recurrences, segments
from opc.records import dataclass, replace
from opc.transform.indices import Namer, bare, index_names, op_names, substitute
from opc.transform.scalar import index_value, raw


@dataclass(frozen=True, slots=True)
class Steps:
    """How a segment is repeated: for each value of the size `index` below `extent`, from the last one down if it `falls`.

    `parts` pairs each output of the segment, the value of one step, with the temporary that holds the values of all, and
    `axes` are the entries of these that they step along. With `by_points` the steps of each point are taken by themselves.
    """

    index: str
    extent: Affine
    falls: bool
    parts: tuple[tuple[str, str], ...]
    axes: tuple[int, ...]
    by_points: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """Statements that are computed together from what is in memory, as an op of their own, and how often."""

    op: Op
    steps: Steps | None = None


@dataclass(frozen=True, slots=True)
class SegmentedOp:
    """An op whose recurrences are kept in temporaries, and its segments in the order in which they are computed."""

    op: Op
    segments: tuple[Segment, ...]

    @property
    def joined(self) -> Op:
        """An op of the statements of all segments; the values of all steps are read, and have no statement."""
        parts = [t for s in self.segments if s.steps is not None for t in s.op.outputs]
        facts = dict.fromkeys(r for s in self.segments for r in s.op.require)
        body = tuple(a for s in self.segments for a in s.op.body)
        return replace(self.op, temporaries=(*self.op.temporaries, *parts), body=body, require=tuple(facts))


def in_segments(op: Op, by_points: Collection[Recurrence] = ()) -> SegmentedOp:
    """Return an op in segments, one of which has no recurrence where the op has none; `by_points` are recurrences that are."""
    namer = Namer(op_names(op) | index_names(op))
    apart: set[str] = set()
    for recurrence in recurrences(op):
        op, names = _kept(op, recurrence, recurrence not in by_points, namer)
        apart.update(names if recurrence in by_points else ())
    found: list[Segment] = []
    for n, (own, statements) in enumerate(segments(op)):
        if own is None:
            found.append(Segment(_plain(op, n, statements)))
        else:
            found.append(_stepping(op, n, own, statements, own.targets[0] in apart, namer))
    return SegmentedOp(op, tuple(found))


def _kept(op: Op, recurrence: Recurrence, first: bool, namer: Namer) -> tuple[Op, tuple[str, ...]]:
    """Return an op whose recurrence is kept in temporaries, and their names; outputs are copies of these.

    It steps along their `first` axis, or along the same as before where that is no worse.
    """
    outputs = {o.name: o for o in op.outputs}
    names = {n: namer.fresh(f"{n}_steps") if n in outputs else n for n in recurrence.targets}
    order = {n: list(range(len(op.operand(n).dims))) for n in recurrence.targets}
    if first or not _has_rows(op, recurrence):
        for n, axis in zip(recurrence.targets, recurrence.axes, strict=True):
            order[n].insert(0, order[n].pop(axis))

    def moved(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.operand not in names:
            return e
        places = order[e.operand]
        checked = tuple(sorted(places.index(k) for k in e.checked))
        return replace(e, operand=names[e.operand], indices=tuple(e.indices[k] for k in places), checked=checked)

    body: list[Assign] = []
    for s in op.body:
        value = rewrite(s.value, moved)
        if s.target not in names:
            body.append(s.with_value(value))
            continue
        indices = tuple(s.indices[k] for k in order[s.target])
        body.append(Assign(names[s.target], indices, value, s.span))
        if s.target in outputs:
            read = Read(names[s.target], bare(indices), outputs[s.target].type, span=s.span)
            body.append(Assign(s.target, s.indices, read, s.span))
    kept = {n: op.operand(n) for n in recurrence.targets}
    new = {n: replace(o, name=names[n], dims=tuple(o.dims[k] for k in order[n]), optional=False, doc="") for n, o in kept.items()}
    temporaries = [new.pop(t.name, t) for t in op.temporaries]
    kept_op = replace(op, body=tuple(body), temporaries=(*temporaries, *new.values()), inplace=())
    return kept_op, tuple(names.values())


def _has_rows(op: Op, recurrence: Recurrence) -> bool:
    """Whether the last axis of each value is another than that of the steps, and is one wherever the others are."""
    for n, axis in zip(recurrence.targets, recurrence.axes, strict=True):
        dims = op.operand(n).dims
        if axis == len(dims) - 1 or (isinstance(dims[-1], Group) and len(dims) > 2):
            return False
    return True


def _plain(op: Op, n: int, statements: tuple[Assign, ...]) -> Op:
    """Return an op of statements alone: what they read of others are its inputs, what others read are its outputs."""
    own = {s.target for s in statements}
    later = {name for s in op.body if s.target not in own for name in operands_read(s.value)}
    outputs = [o for o in op.outputs if o.name in own]
    outputs += [t for t in op.temporaries if t.name in own & later]
    return _segment(op, n, statements, outputs)


def _segment(op: Op, n: int, statements: tuple[Assign, ...], outputs: list[Operand]) -> Op:
    own = {s.target for s in statements}
    given = {o.name for o in outputs}
    stored = tuple(replace(o, optional=False) for o in (*op.temporaries, *op.outputs) if o.name not in own)
    return replace(
        op,
        name=f"{op.name}_{n}",
        inputs=(*op.inputs, *stored),
        outputs=tuple(outputs),
        temporaries=tuple(t for t in op.temporaries if t.name in own and t.name not in given),
        body=statements,
        inplace=(),
    )


def _stepping(op: Op, n: int, recurrence: Recurrence, statements: tuple[Assign, ...], by_points: bool, namer: Namer) -> Segment:
    """Return the segment of one step of a recurrence that is kept in temporaries."""
    step = namer.fresh(f"{recurrence.index_of(statements[0])}_now")
    now = {s.target: namer.fresh(f"{s.target.removesuffix('_steps')}_now") for s in statements}
    here = Affine.of(Dim(step))
    outputs, body = [], []
    for s in statements:
        operand = op.operand(s.target)
        index = recurrence.index_of(s)
        axis = recurrence.axis_of(s.target)
        value = substitute(s.value, {index: here})
        if not by_points:
            value = rewrite(value, lambda e: _present(e, here, now))
        body.append(Assign(now[s.target], (*s.indices[:axis], *s.indices[axis + 1 :]), value, s.span))
        outputs.append(replace(operand, name=now[s.target], dims=(*operand.dims[:axis], *operand.dims[axis + 1 :])))
    inside = Requirement(raw("lt", index_value(here), index_value(recurrence.extent)), f"{step} < {recurrence.extent}", step=step)
    known = replace(op, require=(*op.require, inside))
    parts = tuple((now[s.target], s.target) for s in statements)
    steps = Steps(step, recurrence.extent, recurrence.falls, parts, tuple(map(recurrence.axis_of, now)), by_points)
    return Segment(_segment(known, n, tuple(body), outputs), steps)


def _present(e: Expr, here: Affine, now: Mapping[str, str]) -> Expr:
    """Return a read of a value of the present step as one of that step's own."""
    if not isinstance(e, Read) or e.operand not in now or e.indices[0] != here:
        return e
    checked = tuple(k - 1 for k in e.checked if k > 0)
    return replace(e, operand=now[e.operand], indices=e.indices[1:], checked=checked)


__all__ = ["Segment", "SegmentedOp", "Steps", "in_segments"]
