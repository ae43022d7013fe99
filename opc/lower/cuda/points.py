"""The kernel of one statement on a device: a team of threads a point of its target, which takes the terms of reductions in turns.

A team may be a single thread. Where there are few points and many terms, several teams take a part of a point's terms each, and
the same function is run again to join what they found. A position in a group of axes is its number, in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence

from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import (
    EXTREMES,
    SEARCHES,
    Axis,
    BroadcastAxis,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    free_indices,
    reads,
    walk,
)
from opc.ir.op import Assign, Group, Op
from opc.ir.printer import format_assign
from opc.loops.bind import bind_points, share_terms
from opc.loops.nodes import Accumulate, Body, Comment, Do, How, If, Kernel, Let, Loop, Statement, Var, View, values_of
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Axes, Construct, Local, Member, Product, call, number, sum_of, variable, variables
from opc.lower.alone import of_statement
from opc.lower.build.context import NEST, Nest
from opc.lower.build.points import PointLoops
from opc.lower.build.reduction import start_of
from opc.lower.cuda.lines import along_entry
from opc.lower.cuda.reductions import (
    Widths,
    extents_of,
    joined_search,
    narrowed,
    nothing_along,
    position_of,
    search_step,
    terms_that_count,
    widths,
    with_offsets_ahead,
)
from opc.lower.cuda.small import most_of
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace

_POINT = "@point"


def point_kernel(op: Op, stage: NestStage) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _made(op, stage)[0]


class DevicePoints(PointLoops):
    """Makes the loops of one statement."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(nest)
        self.within = 0
        """How many reductions there are around what is made."""
        self.shared: list[Reduce] = []
        """The reductions whose terms a team takes in turns."""
        self.counted = False
        """Whether terms are counted beside what they are reduced to."""
        self.pairs = False
        """Whether threads that share terms find a value and a position."""
        self.most: list[tuple[Reduce, Widths]] = []
        """Of each of these, what bounds the number of terms along each axis beside its extent."""
        self.known: dict[Reduce, Expr] = {}
        """What every point asks for and has been computed."""
        entries = ((index, dim) for index, dim in self.entries if isinstance(index, str) and isinstance(dim, Affine))
        self.bounded = {Affine.of(Index(index)): dim for index, dim in entries}
        """The extents that indices are within."""
        self.divergent = False
        """Whether not all threads of a team may come to what is made."""
        self.uniform = False
        """Whether all threads take the same side of the conditional that is made."""
        self.windows = False
        """Whether conditions narrow the loops of a reduction."""
        self.chosen = False
        """Whether a side of a conditional has terms that a team takes in turns."""

    def kernel(self) -> Kernel:
        """Return the function."""
        places = self.places({n: call("entry_place", NEST, variable(_POINT), number(n)) for n in range(len(self.entries))})
        value = self.value(self.stage.assign.value)
        if self.chosen:
            # A team makes it together, before one of its threads stores it.
            name, type_ = self.nest.fresh("value"), self.nest.declared.type
            self.lines.append(Let(name, type_, Construct(type_, value)))
            value = Local(name, type_)
        if self.is_indexed_in_32_bits and len(places) > 1:
            at = sum_of([Product((variable(p.name), Member("@nest", "after", n))) for n, p in enumerate(places)])
            each = (*self.lines, self.stored(at, value))
            inside = along_entry(places, len(places) - 2, each, self.nest.fresh("first"))
        else:
            inside = used_places(places, (*self.lines, self.stored(variable(_POINT), value)))
        loop = Loop(How.SERIAL, _POINT, number(0), Member("@nest", "points"), inside)
        body: Body = (Comment(format_assign(self.stage.assign)), bind_points(loop, bool(self.shared)))
        return self.function(body, self._schedule())

    @property
    def entries(self) -> tuple[tuple[str | GroupRef, Affine | Group], ...]:
        """The target's indices, each with the extent or the group that it goes along."""
        return tuple(zip(self.stage.assign.indices, self.nest.declared.dims, strict=True))

    def places(self, found: dict[int, Expr]) -> tuple[Let, ...]:
        """Return the variables that hold places along some of the target's entries, which values know from then on."""
        lets = []
        for n, place in found.items():
            entry, dim = self.entries[n]
            if isinstance(entry, GroupRef) and isinstance(dim, Group):
                name = self.nest.fresh("place")
                self.groups[entry.name] = variable(name), Axes(dim.name, dim.of)  # type: ignore[assignment]  # in place of its rank
            else:
                name = str(entry)
            lets.append(Let(name, Weak.INT, place))
        return tuple(lets)

    def stored(self, at: Expr, value: Expr) -> Do:
        """Return the statement that stores an element of the target."""
        target = self.nest.declared
        return Do(call("store", Address(target.name, at), Construct(target.type, value)))

    def function(self, body: Body, schedule: Schedule) -> Kernel:
        """Return the function with a body."""
        nest = self.nest
        views = tuple(View(name, self.op.operand(name).type, True, n) for n, name in enumerate(nest.operands))
        return Kernel("nest", nest.operands, nest.types, body, views, schedule=schedule, span=self.stage.assign.span)

    def _schedule(self) -> Schedule:
        steps = [Transformation("bind", ("points to teams",) if self.shared else ("points to all threads",))]
        if self.shared:
            parts = ("pairs" if self.pairs else "parts",) if len(self.shared) == 1 and not self.counted else ()
            steps.append(Transformation("share", ("terms", *parts)))
            if along := self._reads_along():
                steps.append(Transformation("coalesce", (along,)))
            if self.is_indexed_in_32_bits:
                steps.append(Transformation("index", ("32 bits",)))
        return Schedule(tuple(steps))

    @property
    def is_indexed_in_32_bits(self) -> bool:
        """Whether small calls compute indices in 32 bits, and a thread has several points along an entry: windows do."""
        return bool(self.shared) and self.windows and runs_often(self.op) and most_of(self.op, self.stage.assign) is not None

    def value(self, e: Expr) -> Expr:
        """As `PointLoops` says."""
        before, self.uniform = self.uniform, isinstance(e, Select) and is_uniform(e.cond)
        found = super().value(e)
        self.uniform = before
        return found

    def branch(self, e: Expr) -> Expr:
        """As `PointLoops` says: what is asked for where an operand is present, all threads ask for."""
        before, self.divergent = self.divergent, self.divergent or not self.uniform
        found = super().branch(e)
        self.divergent = before
        return found

    def _reads_along(self) -> str | None:
        """Return along what the shared terms lie together, "terms" or "points" of the target's last entry; None: it varies."""
        last = self.entries[-1][0] if self.entries else ""
        own = last.name if isinstance(last, GroupRef) else last
        found: set[str | None] = set()
        for e in self.shared:
            axes = {_axis_name(a) for a in e.axes if isinstance(a, Axis | GroupAxis)}
            names = _neighbours(e.body)
            found |= {"terms" if n & axes else "points" if own in n else None for n in names}
        return found.pop() if len(found) == 1 else None

    def reduction(self, e: Reduce) -> Expr:
        """As `PointLoops` says; what every point asks for is computed once, however often it stands in the value."""
        if self.within == 0 and e in self.known:
            return self.known[e]
        everywhere = self.within == 0 and not self.lazy
        found = super().reduction(e)
        if everywhere:
            self.known[e] = found
        return found

    def loops_of(self, e: Reduce) -> tuple[Body, str]:
        """As `PointLoops` says: what every point asks for, whatever it holds, has its terms shared by threads."""
        outermost, extents = self.within == 0, extents_of(e)
        counts = extents is None and e.kind in EXTREMES
        shares = bool(e.axes) and outermost and not self.divergent and not (counts and e.kind in SEARCHES)
        self.within += 1
        most: Widths = ()
        if counts:
            body, result = super().loops_of(e)
            kinds = {s.name: e.kind if s.name == result else "sum" for s in body if isinstance(s, Var)}
            joined: Body = ()
        else:
            body, result, joined, most = self._loops(e, extents or ())
            kinds = {} if joined else {result: e.kind}
        self.within -= 1
        if shares:
            self.shared.append(e)
            self.most.append((e, most or tuple(() for _ in e.axes)))
            self.chosen = self.chosen or self.lazy
            self.counted, self.pairs = self.counted or len(kinds) > 1, bool(joined)
            body = (*share_terms(body, kinds, len(e.axes)), *joined)
        return with_offsets_ahead(body, self.nest.fresh, self.nest.is_optional) if outermost else body, result

    def _loops(self, e: Reduce, extents: Sequence[Affine]) -> tuple[Body, str, Body, Widths]:
        """Return the loops over the terms that count, the name of the result, what joins what threads have searched, and what
        bounds the number of terms along each axis."""
        nest, kind = self.nest, e.kind.removeprefix("arg")
        search, result = e.kind in SEARCHES, nest.fresh_result(e.kind)
        head: list[Statement] = [Var(result, e.type, number(0) if search else start_of(e.kind, e.type))]
        if e.kind in EXTREMES and self.may_be_of_nothing(e):
            over = e.over
            if (nothing := nothing_along(extents, nest.positive)) is not None:
                head.append(If(nothing, (Do(self.nothing(e.kind, over)),)))
        before, lines, conditional, bounded = dict(self.groups), self.lines, self.lazy, dict(self.bounded)
        self.lines, self.lazy = [], False
        heads = [(a, self.loop_over(a)) for a in e.axes]
        self.bounded |= {Affine.of(Index(a.index)): a.extent for a in e.axes if isinstance(a, Axis)}
        guards, term = terms_that_count(e, nest.sizes, self.bounded, nest.positive, nest.fresh)
        value = self.value(term)
        joined: Body = ()
        if search:
            best, here = nest.fresh("best"), nest.fresh("here")
            head.insert(0, Var(best, e.body.type, Construct(e.body.type, start_of(kind, e.body.type))))
            self.lines += search_step(e, value, position_of([loop.index for _, loop in heads], extents), best, result, here)
            joined = (joined_search(e, best, result),)
        else:
            self.lines.append(Accumulate(Local(result, e.type), e.kind, value))
        self.windows = self.windows or bool(guards.guards or guards.steps)
        body = narrowed(heads, guards, tuple(self.lines), nest.fresh, nest.positive)
        self.groups, self.lines, self.lazy, self.bounded = before, lines, conditional, bounded
        return (*head, *body), result, joined, tuple(widths(a, guards, nest.positive) for a in e.axes)

    def loop_over(self, axis: Axis | GroupAxis | BroadcastAxis) -> Loop:
        """As `PointLoops` says."""
        if isinstance(axis, Axis):
            return Loop(How.SERIAL, axis.index, number(0), IndexValue(axis.extent), ())
        place, whole = self.nest.fresh("place"), Axes(axis.name)
        before = self.groups.get(axis.name)
        self.groups[axis.name] = variable(place), whole  # type: ignore[assignment]  # in place of its rank
        if isinstance(axis, GroupAxis):
            return Loop(How.SERIAL, place, number(0), IndexValue(Affine.of(GroupSize(axis.name))), ())
        assert before is not None, "what is broadcast has a place of its own"
        own, running = Axes(axis.name, axis.operand), self.nest.fresh("along")
        self.lines.append(Let(place, Weak.INT, call("broadcast_place", whole, own, before[0], variable(running))))
        return Loop(How.SERIAL, running, number(0), call("broadcast_points", whole, own), ())


class FlatPoints(DevicePoints):
    """Makes the loops of a statement whose groups are indexed by their places, as single axes are."""

    def read(self, e: Read) -> Expr:
        """As `PointLoops` says."""
        dims = self.op.operand(e.operand).dims
        indices = list(e.indices)
        for n, (index, dim) in enumerate(zip(e.indices, dims, strict=True)):
            if isinstance(dim, Group) and isinstance(index, Affine):
                name = index.index
                assert name is not None, "the index of a group is a variable"
                self.groups[name] = variable(name), Axes(dim.name)  # type: ignore[assignment]  # in place of its rank
                indices[n] = GroupRef(name)
        return super().read(replace(e, indices=tuple(indices)))

    def inside(self, e: Expr) -> tuple[Body, Expr]:
        """Return a value, and the statements that it needs, in a body of their own."""
        before, known, self.lines, self.known = self.lines, self.known, [], {}
        value = self.value(e)
        own, self.lines, self.known = tuple(self.lines), before, known
        return own, value


def shared_terms(op: Op, stage: NestStage) -> tuple[tuple[Reduce, Widths], ...]:
    """Return the reductions of a statement whose terms are shared, each with what bounds their number along its axes."""
    return _made(op, stage)[1]


def _made(op: Op, stage: NestStage) -> tuple[Kernel, tuple[tuple[Reduce, Widths], ...]]:
    """Return the function of a statement and its shared terms: of stages alike but for their names these are the same."""
    return _made_of(op, stage.assign, replace(stage, name=""))


@of_statement
def _made_of(op: Op, assign: Assign, stage: NestStage) -> tuple[Kernel, tuple[tuple[Reduce, Widths], ...]]:
    points = DevicePoints(Nest(op, stage))
    return points.kernel(), tuple(points.most)


def is_uniform(cond: Expr) -> bool:
    """Whether a condition is the same at all points: it depends on which operands are present, on attributes and sizes."""
    return not free_indices(cond) and not any(isinstance(n, Read | Reduce | GroupIndex) for n in walk(cond))


def _axis_name(axis: Axis | GroupAxis) -> str:
    return axis.index if isinstance(axis, Axis) else axis.name


def _neighbours(e: Expr) -> set[frozenset[str]]:
    """Return the indices, or groups, that the last axes of an expression's largest reads go along, neighbour by neighbour."""
    found = [r for r in reads(e) if r.indices]
    most = max((len(r.indices) for r in found), default=0)
    return {_last_names(r) for r in found if len(r.indices) == most}


def _last_names(e: Read) -> frozenset[str]:
    last = e.indices[-1]
    if isinstance(last, GroupRef):
        return frozenset((last.name,))
    if not isinstance(last, Affine):
        return frozenset()
    units = (Affine.of(1), Affine.of(-1))
    return frozenset(name for name in last.indices() if last.coefficient(name) in units)


def neighbouring_axis(e: Reduce) -> int | None:
    """Return which axis of a reduction its largest reads go along, neighbour by neighbour, None where there is not one."""
    names = _neighbours(e.body)
    found = [k for k, a in enumerate(e.axes) if isinstance(a, Axis | GroupAxis) and all(_axis_name(a) in n for n in names)]
    return found[0] if names and len(found) == 1 else None


def place_of(of: Expr, behind: Sequence[Expr], size: Expr) -> Expr:
    """Return the digit of a number that has `size` values, behind which there are digits of other sizes."""
    after = Product(tuple(behind)) if len(behind) > 1 else behind[0] if behind else number(1)
    return call("place_in", of, after, size)


def used_places(places: tuple[Let, ...], body: Body) -> Body:
    """Return a body behind the places that are used in it, and in those."""
    used = {name for v in values_of(body) for name in variables(v)}
    found: list[Statement] = []
    for place in reversed(places):
        if place.name in used:
            found.insert(0, place)
            used |= set(variables(place.value))
    return (*found, *body)
