"""The loops of a codelet: over a box of its target point by point, over the terms of a scatter, or along the index of a scan."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    children,
    free_indices,
    may_refuse,
    walk,
)
from opc.ir.op import Op
from opc.loops.nodes import (
    Accumulate,
    Body,
    Continue,
    Do,
    GroupPoints,
    How,
    If,
    Let,
    Loop,
    Refuse,
    Return,
    Statement,
    Var,
    Yield,
)
from opc.loops.values import (
    Address,
    Block,
    Construct,
    Intrinsic,
    Load,
    Local,
    Member,
    Word,
    call,
    compare,
    number,
    product_of,
    sum_of,
    variable,
)
from opc.lower.build.context import Nest
from opc.lower.build.points import PointLoops
from opc.lower.build.reduction import start_of
from opc.lower.build.scan import first_number, take_terms
from opc.lower.build.split import as_condition
from opc.lower.guards import Guard, guard_indices, is_known_inside, replace_node
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import ScanPlan, ScatterPlan
from opc.lower.nests.flat import is_positive
from opc.lower.poplar.codelet_fields import adds_up
from opc.lower.poplar.codelet_nodes import STATUS_OF_WORKER, WORKER, Nonempty, OfNothing, Outside
from opc.lower.poplar.codelet_sums import split_axes
from opc.lower.poplar.entries import Entries
from opc.records import replace


class CodeletLoops(PointLoops):
    """Makes the loops of one statement, and notes what these refuse."""

    def __init__(self, source: Op, entries: Entries, name: str) -> None:
        super().__init__(Nest(entries.op, NestStage(name, entries.assign)))
        self.source, self.entries, self.assign = source, entries, entries.assign
        self.indices = tuple(map(str, entries.assign.indices))
        self.refusals: dict[Outside | OfNothing, int] = {}
        self.always = frozenset(_always(entries.assign.value))
        self.nonempty: dict[Nonempty, None] = {}
        self.found: dict[Reduce, Expr] = {}
        self.split = split_axes(entries.assign.value)
        self.shares = tuple((self.nest.fresh(f"{i}_low"), self.nest.fresh(f"{i}_high")) for i in self.indices)
        self.bounded = {Affine.of(Index(i)): d for i, d in zip(self.indices, self.nest.declared.dims) if isinstance(d, Affine)}
        for e in walk(entries.assign.value):
            if isinstance(e, Reduce):
                self.bounded |= {Affine.of(Index(a.index)): a.extent for a in e.axes if isinstance(a, Axis)}

    def loop_over(self, axis: Axis | GroupAxis | BroadcastAxis) -> Loop | GroupPoints:
        """As `PointLoops` says; an axis of the whole target's reduction runs over a part of it."""
        loop = super().loop_over(axis)
        if isinstance(loop, Loop) and axis in self.split:
            low, high = self._ends(len(self.indices) + self.split.index(axis))
            return replace(loop, low=low, high=high)
        return loop

    # The forms.

    def points(self) -> Body:
        """Return the loops over a box of the target, whose points are stored side by side."""
        value = self.value(self.assign.value)
        element = self.nest.fresh("element")
        step = Accumulate(Local(element, Weak.INT), "sum", number(1))
        body = (*self.lines, self._stored(variable(element), value), step)
        start = call("share_first", Word(WORKER), Member(self.assign.target, "share"))
        return Var(element, Weak.INT, start), *self._box(body, range(len(self.indices)))

    def scatter(self, plan: ScatterPlan) -> Body:
        """Return one pass over the terms of a reduction, of which those count that go to the box."""
        every = range(len(self.indices))
        clear = self._box((self._stored(self._place(), start_of(plan.reduction.kind, plan.reduction.type)),), every)
        scattered = [i for i, _ in plan.scatter_indices]
        # Where the index along which rows are added tells where they go, it is one more index around the terms.
        moving = any(plan.vector_axis in free_indices(p) for _, p in plan.scatter_indices)
        row = None if moving else plan.vector_axis
        terms = self._term(plan, row)
        for axis in reversed(plan.reduction.axes):
            assert isinstance(axis, Axis), "groups are single axes here"
            terms = (Loop(How.SERIAL, axis.index, number(0), IndexValue(axis.extent), terms),)
        outer = [n for n, i in enumerate(self.indices) if i not in scattered and i != row]
        body = self._box(terms, outer)
        for g in reversed(plan.given):
            body = (If(g, body),)
        return *clear, *body

    def scan(self, plan: ScanPlan) -> Body:
        """Return a reduction carried along one index of the box, which begins anew at each point of the others."""
        e = plan.reduction
        axis, at = plan.axis, self.indices.index(plan.index)
        carried = self.nest.fresh_result(e.kind)
        lines, value = self._inside(e.body)
        take: Body = (*lines, Accumulate(Local(carried, e.type), e.kind, value))
        more = take_terms(plan, take, lambda empty: If(empty, (Do(self.nothing(e.kind, axis.index)),)))
        lines, value = self._inside(replace_node(plan.statement.value, e, Local(carried, e.type)))
        body = (*more, *lines, self._stored(self._place(), value))
        along = Loop(How.SERIAL, plan.index, *self._ends(at), body, down=plan.descending)
        start = Var(axis.index, Weak.INT, first_number(plan, *self._ends(at)))
        row: Body = (Var(carried, e.type, start_of(e.kind, e.type)), start, along)
        return self._box(row, [n for n in range(len(self.indices)) if n != at])

    def _term(self, plan: ScatterPlan, row: str | None) -> Body:
        """Return the statements that add one term where it goes, if that is in the box, or all of a row of the target's."""
        scattered = {i for i, _ in plan.scatter_indices}
        body: list[Statement] = []

        def unless(g: Guard) -> None:
            lines, value = self._inside(as_condition(g, cut=False))
            body.extend([*lines, If(Call("not", (value,), DType.BOOL), (Continue(),))])

        # An index may be looked up where the guards say that there is one.
        inner = {row} if row is not None else set()
        late = [g for g in plan.guards if guard_indices(g) & (scattered | inner) or (not isinstance(g, Affine) and may_refuse(g))]
        for g in plan.guards:
            if g not in late:
                unless(g)
        for index, position in plan.scatter_indices:
            lines, value = self._inside(position)
            # Once it is known to be in the box, an index has 32 bits.
            wide = position.type is DType.INT64
            place = self.nest.fresh(f"{index}_place") if wide else index
            body += [*lines, Let(place, DType.INT64 if wide else Weak.INT, value)]
            low, high = self._ends(self.indices.index(index))
            outside = Call("or", (compare("lt", variable(place), low), compare("ge", variable(place), high)), DType.BOOL)
            body.append(If(outside, (Continue(),)))
            if wide:
                body.append(Let(index, Weak.INT, Construct(DType.INT32, variable(place))))
        around, body = body, []
        for g in late:
            unless(g)
        lines, value = self._inside(plan.body)
        target = self.nest.declared
        body += [*lines, Accumulate(Local(target.name, plan.reduction.type, self._place()), plan.reduction.kind, value)]
        inside = tuple(body)
        if row is not None:
            inside = self._box(inside, [self.indices.index(row)])
        return *around, *inside

    def share(self) -> Body:
        """Return the statements that find the part of the box which is a worker's."""
        target, worker = self.assign.target, Word(WORKER)
        if not self.indices:
            return (If(compare("gt", worker, number(0)), (Return(),)),)
        body: list[Statement] = []
        for n, (low, high) in enumerate(self.shares):
            own = compare("eq", Member(target, "along"), number(n))
            ends, chunk = (Member(target, "begin", n), Member(target, "end", n)), Member(target, "chunk")
            body.append(Let(low, Weak.INT, call("share_begin", *ends, own, worker, chunk)))
            body.append(Let(high, Weak.INT, call("share_end", *ends, own, worker, chunk)))
        return tuple(body)

    def _ends(self, n: int) -> tuple[Expr, Expr]:
        """Return where a worker's part of the box begins and ends along an index, or the whole box along an axis."""
        if n < len(self.indices):
            return variable(self.shares[n][0]), variable(self.shares[n][1])
        return Member(self.assign.target, "begin", n), Member(self.assign.target, "end", n)

    def _stored(self, at: Expr, value: Expr) -> Do:
        """Return the statement that stores an element of the target."""
        of = self.nest.declared.type
        value = Construct(of, value)
        if of is DType.INT64 and not adds_up(self.assign.value):
            value = call("saturated", value, type=DType.INT32)
        return Do(call("store", Address(self.assign.target, at), value))

    def _box(self, body: Body, entries: range | list[int]) -> Body:
        """Return the loops over a box along some of its indices, outer ones first."""
        for n in reversed(entries):
            body = (Loop(How.SERIAL, self.indices[n], *self._ends(n), body),)
        return body

    def _place(self) -> Expr:
        """Return where in the box the element of a point is."""
        last, name = len(self.indices) - 1, self.assign.target
        strides = (None if n == last else Member(name, "stride", n) for n in range(last + 1))
        return sum_of([*(product_of(variable(i), s) for i, s in zip(self.indices, strides)), Member(name, "first")])

    def _inside(self, e: Expr) -> tuple[Body, Expr]:
        """Return a value, and the loops of its reductions, that stand in a body of their own."""
        lines, self.lines, found = self.lines, [], dict(self.found)
        value = self.value(e)
        own, self.lines, self.found = tuple(self.lines), lines, found
        return own, value

    # Values.

    def read(self, e: Read) -> Expr:
        """As `PointLoops` says."""
        terms: list[Expr] = []
        body: list[Statement] = []
        checks: list[tuple[int, Expr]] = []
        sizes = self.nest.sizes(e.operand)
        for n, index in enumerate(e.indices):
            assert not isinstance(index, GroupRef), "groups are single axes here"
            at: Expr = IndexValue(index) if isinstance(index, Affine) else self.value(index)
            inside = is_known_inside(replace(e, indices=(index,)), sizes[n : n + 1], self.bounded)
            if n in e.checked or not isinstance(index, Affine) or (e.pad is not None and not inside):
                name = self.nest.fresh(f"at_{n}")
                wide = at.type is DType.INT64
                body.append(Let(name, DType.INT64 if wide else Weak.INT, at))
                checks.append((n, variable(name)))
                # Once it is known to be inside, an index has 32 bits.
                at = Construct(DType.INT32, variable(name)) if wide else variable(name)
            last = n == len(e.indices) - 1
            terms.append(product_of(at, None if last else Member(e.operand, "stride", n)))
        terms.append(Member(e.operand, "first"))
        load: Expr = Load(e.operand, sum_of(terms), e.type, True)
        if self.nest.is_optional(e.operand) and e.operand not in self.given:
            load = Select(Present(e.operand), load, Const(0, e.type), e.type)
        for n, place in checks:
            outside = call("outside", place, Member(e.operand, "size", n), type=DType.BOOL)
            if e.pad is not None:
                body.append(If(outside, (Yield(self.branch(e.pad)),)))
            else:
                body.append(Refuse(outside, self._report(Outside(e.operand, self._entry(e.operand, n)), place)))
        return Block(tuple(body), load, e.type) if checks else load

    def reduction(self, e: Reduce) -> Expr:
        """As `PointLoops` says; what has been reduced already isn't again."""
        if e in self.found:
            return self.found[e]
        conditional, result = self.lazy, super().reduction(e)
        if not conditional:
            self.found[e] = result
        return result

    def loops_of(self, e: Reduce) -> tuple[Body, str]:
        """As `PointLoops` says."""
        found = dict(self.found)
        loops = super().loops_of(e)
        self.found = found
        return loops

    def may_be_of_nothing(self, e: Reduce) -> bool:
        """As `PointLoops` says: of a reduction that every point asks for, the host knows."""
        extents = tuple(e.extents.values())
        varying = any(x.indices() for x in extents)
        if not varying and all(is_positive(self.source, x) for x in extents):
            return False
        over = e.over
        if e not in self.always or varying:
            return True
        self.nonempty[Nonempty(OfNothing(e.kind, over), extents)] = None
        return False

    def nothing(self, kind: str, over: str) -> Intrinsic:
        """As `PointLoops` says."""
        return self._report(OfNothing(kind, over), number(0))

    def _report(self, what: Outside | OfNothing, value: Expr) -> Intrinsic:
        code = self.refusals.setdefault(what, len(self.refusals) + 1)
        return call("report", Word(STATUS_OF_WORKER), number(code), value)

    def _entry(self, operand: str, axis: int) -> int:
        """Return the entry of an operand's shape that an axis of its view is of."""
        axes = [n for n, v in enumerate(self.entries.views[operand]) for _ in range(1 if v.parts is None else 2)]
        return axes[axis]


def _always(e: Expr) -> Iterator[Reduce]:
    """Yield the reductions that a value asks for whatever its operands hold."""
    match e:
        case Reduce():
            yield e
        case Select():
            yield from _always(e.cond)
        case Call(fn="and" | "or", args=(first, *_)):
            yield from _always(first)
        case Read():
            for index in e.indices:
                if not isinstance(index, Affine | GroupRef):
                    yield from _always(index)
        case _:
            for c in children(e):
                yield from _always(c)
