"""Register tiling of reductions over windows: which lanes' windows lie inside, and the elements in them one after the other.

The runtime calls the loops over the elements for tiles of several vectors, whose windows all lie inside, and for other lanes.
"""

from __future__ import annotations

from dataclasses import replace

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak, is_floating
from opc.ir.expr import Axis, Call, Const, Expr, IndexValue, Read, Reduce
from opc.loops.nodes import Body, How, If, Loop, Scope, Statement, Store, Var
from opc.loops.values import Address, Init, Intrinsic, Local, Named, call, compare, computed_as, number, ref, variable
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, Known, Range
from opc.lower.build.split import clip, condition
from opc.lower.build.taps import lie, runs_along
from opc.lower.guards import Guard

_FOLDS = ("sum", "max", "min")


class Strips:
    """Builds loops over the windows of one row. `guards` are the conditions under which an element counts."""

    def __init__(self, known: Known, row: Range, axes: list[Axis], read: Read, guards: tuple[Affine, ...]) -> None:
        self.known, self.nest, self.row, self.axes, self.read, self.guards = known, known.nest, row, axes, read, guards
        self.ranges: dict[str, tuple[Expr, Expr]] = {}

    def fold(self, kind: str, result: str) -> tuple[Body, str]:
        """Return what computes a row in tiles, and the variable that tells whether that could be."""
        ranges = tuple(s for a in self.axes for s in self.range(a))
        lanes, row = self.lanes()
        computed = self.nest.fresh("computed")
        advance = IndexValue(self.advance())
        windows = call("fold_windows", ref(result), ref(row), advance, type=DType.BOOL, types=(f"opc::folds_{kind}",))
        loops = self.candidates(windows, computed)
        if fixed := self.fixed():
            found = condition(self.known, fixed)
            return (
                *ranges,
                *lanes,
                Var(computed, DType.BOOL, Const(False, DType.BOOL)),
                If(found, (replace(loops, assigns=True),)),
            ), computed
        return (*ranges, *lanes, loops), computed

    def range(self, axis: Axis) -> Body:
        """Return the range of an axis of the windows where it lies inside, as far as the lane does not matter."""
        extent = IndexValue(axis.extent)
        found = [g for g in self.guards if axis.index in g.indices() and self.row.lane not in g.indices()]
        if not found:
            self.ranges[axis.index] = number(0), extent
            return ()
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        self.ranges[axis.index] = variable(low), variable(high)
        clips = (clip(self.known, g, axis.index, (ref(low), ref(high))) for g in found)
        return Var(low, Weak.INT, number(0)), Var(high, Weak.INT, call("greatest", number(0), extent)), *clips

    def fixed(self) -> tuple[Affine, ...]:
        """Return the conditions that are the same for all of the row, which neither `range` nor `lanes` asks."""
        own = {self.row.lane, *(a.index for a in self.axes)}
        return tuple(g for g in self.guards if not g.indices() & own)

    def lanes(self) -> tuple[Body, str]:
        """Return the lanes of the row: those whose windows lie inside, and those whose windows' first elements do."""
        lane, high = self.row.lane, self.row.high
        row = self.nest.fresh("row")
        start = Init((high, number(0), high, number(0), high))
        body: list[Statement] = [Var(row, Named("opc::window_row"), start)]

        def member(name: str) -> Local:
            return Local(row, Weak.INT, None, name)

        for g in self.guards:
            if lane not in g.indices():
                continue
            body.append(clip(self.known, self._at(g, number(0)), lane, (member("first_low"), member("first_high"))))
            ends = [self.ranges[a.index] for a in self.axes if a.index in g.indices()] or [(number(0), number(1))]
            first, end = ends[0]
            for point in (first, minus_one(end)):
                body.append(clip(self.known, self._at(g, point), lane, (member("low"), member("high"))))
        outside = [compare("gt", low, number(0)) for low, _ in self.ranges.values() if low != number(0)]
        if outside:
            cond = outside[0]
            for c in outside[1:]:
                cond = Call("or", (cond, c), DType.BOOL)
            body.append(If(cond, (Store(member("first_high"), member("first_low")),)))
        return tuple(body), row

    def _at(self, g: Affine, point: Expr) -> Affine:
        """Return a condition at a point of the axis of the windows that it depends on."""
        assert isinstance(point, IndexValue), "a point is an integer"
        own = {a.index for a in self.axes}
        return g.substitute(lambda s: point.value if isinstance(s, Index) and s.name in own else None)

    def advance(self) -> Affine:
        """Return how far apart the windows of the row are."""
        last = self.read.indices[-1]
        found = last.coefficient(self.row.lane) if isinstance(last, Affine) else None
        assert found is not None, "windows are a fixed step apart"
        return found

    def candidates(self, windows: Intrinsic, result: str = "") -> Scope:
        """Return the loops over the elements of the windows as the last argument of a call."""
        strip, step = self.nest.fresh("strip"), self.nest.fresh("step")
        body = self._loops(self.axes, strip, (self.advance(), step))
        return Scope(windows, (("auto &", strip), ("auto", step)), body, True, result)

    def number(self) -> tuple[Expr, ...]:
        """Return what an element is told by beside its value, as further arguments of what takes it."""
        return ()

    def _loops(self, axes: list[Axis], strip: str, step: tuple[Affine, str]) -> Body:
        """Return the loops over axes of the windows. `step` is how far apart the windows are, and its name."""
        if axes:
            low, high = self.ranges[axes[0].index]
            return (Loop(How.SERIAL, axes[0].index, low, high, self._loops(axes[1:], strip, step)),)
        offset = Accesses(self.known, NO_RANGE).offset(self.without({self.row.lane}), {})
        names = self.nest.fresh("low"), self.nest.fresh("high")
        moving = (g for g in self.guards if self.row.lane in g.indices())
        clips = tuple(clip(self.known, g, self.row.lane, (ref(names[0]), ref(names[1])), step) for g in moving)
        take = call(f"{strip}.take", Address(self.read.operand, offset), variable(step[1]), *self.number())
        return (Scope(take, (("int64_t &", names[0]), ("int64_t &", names[1])), clips, True),)

    def without(self, names: set[str]) -> Read:
        """Return the read where these indices are 0."""

        def zero(s: object) -> Affine | None:
            return Affine.of(0) if isinstance(s, Index) and s.name in names else None

        indices = tuple(i.substitute(zero) for i in self.read.indices if isinstance(i, Affine))
        return Read(self.read.operand, indices, self.read.type)


def minus_one(e: Expr) -> Expr:
    """Return an integer less one."""
    assert isinstance(e, IndexValue), "an end is an integer"
    return IndexValue(e.value - 1)


def folded_strips(known: Known, over: Range, e: Reduce, body: Expr, guards: list[Guard]) -> Strips | None:
    """Return a reduction over the windows of a whole row, if it is one of elements alone that are read where they lie."""
    axes = [a for a in e.axes if isinstance(a, Axis)]
    own = {a.index for a in axes}
    if e.kind not in _FOLDS or over.low != number(0) or len(axes) < len(e.axes) or any(a.extent.indices() for a in axes):
        return None
    if not isinstance(body, Read) or body.pad is not None or not body.indices or not is_floating(e.type):
        return None
    if computed_as(body.type) != computed_as(e.type) or not lie(known, (body,)) or not runs_along(known, body):
        return None
    *others, last = body.indices
    step = last.coefficient(over.lane) if isinstance(last, Affine) else None
    if step is None or step.constant not in (None, 1, 2) or step.indices() & own:
        return None
    if any(not isinstance(i, Affine) or over.lane in i.indices() for i in others):
        return None
    found = tuple(g for g in guards if isinstance(g, Affine) and _is_even(g, over.lane, own))
    return Strips(known, over, axes, body, found) if len(found) == len(guards) else None


def _is_even(g: Affine, lane: str, own: set[str]) -> bool:
    """Whether a condition holds for a range of lanes, and of one axis of the windows."""
    used = g.indices() & own
    moves = [g.coefficient(i) for i in (*used, lane)]
    return len(used) <= 1 and all(m is not None and not m.indices() & {lane, *own} for m in moves)
