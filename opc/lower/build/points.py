"""Loop nests point by point: the plain form, for statements that no other form has.

Reductions become loops before the value that uses them. Under a conditional, where they must not run unless they are chosen,
they become blocks, and so do reads that may fall outside.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak, is_integer
from opc.ir.expr import (
    EXTREMES,
    NOTHING,
    SEARCHES,
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    free_indices,
)
from opc.ir.op import Group
from opc.ir.printer import format_assign
from opc.loops.nodes import (
    Accumulate,
    Body,
    Buffer,
    Comment,
    Do,
    GroupPoints,
    How,
    If,
    Kernel,
    Let,
    Loop,
    Refuse,
    Statement,
    Store,
    Var,
    View,
    Yield,
)
from opc.loops.values import (
    Address,
    Axes,
    Block,
    Construct,
    Intrinsic,
    Load,
    Local,
    Member,
    Product,
    Rank,
    Sum,
    Word,
    call,
    compare,
    number,
    ref,
    variable,
)
from opc.lower.build.access import Loads
from opc.lower.build.context import NEST, Nest
from opc.lower.build.reduction import start_of
from opc.records import replace


def point_nest(nest: Nest) -> Kernel:
    """Return the function of a statement that computes one point of its target after the other."""
    return PointLoops(nest).kernel()


class PointLoops(Loads):
    """Makes the function of one statement."""

    def __init__(self, nest: Nest) -> None:
        super().__init__(NOTHING, False)
        self.op, self.stage, self.nest = nest.op, nest.stage, nest
        self.groups: dict[str, tuple[Expr, Rank]] = {}
        self.lines: list[Statement] = []

    def kernel(self) -> Kernel:
        """Return the function."""
        assign, nest = self.stage.assign, self.nest
        target = nest.declared
        used = free_indices(assign.value)
        for n, (entry, dim) in enumerate(zip(assign.indices, target.dims, strict=True)):
            at = Member("@nest", "start", n)
            if isinstance(entry, GroupRef) and isinstance(dim, Group):
                self.groups[entry.name] = Sum((ref("@at"), at)), Rank(dim.name, dim.of)
            elif str(entry) in used:
                self.lines.append(Let(str(entry), Weak.INT, Local("@at", Weak.INT, at)))
        value = self.value(assign.value)
        store = Do(call("store", Address(target.name, variable("@point")), Construct(target.type, value)))
        loop = Loop(
            How.SERIAL,
            "@point",
            variable("@begin"),
            variable("@end"),
            (*self.lines, store),
            after=call("advance", NEST, Word("at")),
        )
        body: Body = (
            Buffer("@at", Weak.INT, "opc::max_axes"),
            Do(call("locate", NEST, Word("begin"), Word("at"))),
            Comment(format_assign(assign)),
            loop,
        )
        views = tuple(View(name, self.op.operand(name).type, True, n) for n, name in enumerate(nest.operands))
        return Kernel("nest", nest.operands, nest.types, body, views, span=assign.span)

    def value(self, e: Expr) -> Expr:
        """Return an expression with loads for its reads and variables for its reductions."""
        match e:
            case Reduce():
                return self.reduction(e)
            case GroupIndex():
                return call("group_index", Axes(e.group), self.groups[e.group][0])
            case _:
                return super().value(e)

    def read(self, e: Read) -> Expr:
        """Return the load of an element, with the tests that it needs."""
        declared = self.op.operand(e.operand)
        terms: list[Expr] = []
        body: list[Statement] = []
        checks: list[tuple[Expr, Expr, Expr]] = []
        for n, (index, dim) in enumerate(zip(e.indices, declared.dims, strict=True)):
            axis = self.nest.axis_of(declared, n)
            if isinstance(index, GroupRef) and isinstance(dim, Group):
                at_point, rank = self.groups[index.name]
                terms.append(call("group_offset", ref(e.operand), axis, Axes(dim.name, dim.of), at_point, rank))
                continue
            assert not isinstance(index, GroupRef), "a group indexes a group"
            at: Expr = IndexValue(index) if isinstance(index, Affine) else self.value(index)
            if e.pad is not None or n in e.checked or not isinstance(at, IndexValue):
                name = self.nest.fresh(f"at_{n}")
                body.append(Let(name, Weak.INT, at))
                at = variable(name)
                size: Expr = Member(e.operand, "shape", axis)
                checks.append((at, axis, size))
            terms.append(Product((at, Member(e.operand, "stride", axis))))
        load: Expr = Load(e.operand, Sum(tuple(terms)) if terms else number(0), e.type, True)
        optional = self.nest.is_optional(e.operand) and e.operand not in self.given
        if not checks:
            return Select(Present(e.operand), load, Const(0, e.type), e.type) if optional else load
        if optional:
            # No place is outside of what is absent.
            body.insert(0, If(Call("not", (Present(e.operand),), DType.BOOL), (Yield(Const(0, e.type)),)))
        for place, axis, end in checks:
            outside = call("outside", place, end, type=DType.BOOL)
            if e.pad is not None:
                body.append(If(outside, (Yield(self.branch(e.pad)),)))
            else:
                body.append(Refuse(outside, call("report", NEST, self.nest.told(e.operand), axis, place, end)))
        return Block(tuple(body), load, e.type)

    def reduction(self, e: Reduce) -> Expr:
        """Return the variable that the loops of a reduction fill, or a block where it may not be chosen."""
        loops, result = self.loops_of(e)
        if self.lazy:
            return Block(loops, Local(result, e.type), e.type)
        self.lines += loops
        return Local(result, e.type)

    def loops_of(self, e: Reduce) -> tuple[Body, str]:
        """Return the loops of a reduction and the name of its result."""
        search, of = e.kind in SEARCHES, e.body.type
        tested = e.kind in EXTREMES and self.may_be_of_nothing(e)
        result = self.nest.fresh_result(e.kind)
        head: list[Statement] = []
        best, count = self.nest.fresh("best"), self.nest.fresh("count")
        if search:
            head.append(Var(best, of, Const(0, of)))
        if search or tested:
            head.append(Var(count, Weak.INT, number(0)))
        head.append(Var(result, e.type, number(0) if search else start_of(e.kind, e.type)))
        outer, lines, lazy = dict(self.groups), self.lines, self.lazy
        self.lines, self.lazy = [], False
        heads = [self.loop_over(a) for a in e.axes]
        value = self.value(e.body)
        inner: list[Statement] = [*self.lines]
        counted = Accumulate(Local(count, Weak.INT), "sum", number(1))
        if search:
            here = self.nest.fresh("here")
            first = compare("eq", variable(count), number(0))
            a, b = Local(here, of), Local(best, of)
            better: Expr = Call("gt" if e.kind == "argmax" else "lt", (a, b), DType.BOOL)
            if not (is_integer(of) or of is DType.BOOL):
                nan = Call("and", (Call("ne", (a, a), DType.BOOL), Call("eq", (b, b), DType.BOOL)), DType.BOOL)
                better = Call("or", (better, nan), DType.BOOL)
            found = Store(Local(best, of), Local(here, of)), Store(Local(result, e.type), variable(count))
            inner += [Let(here, of, value), If(Call("or", (first, better), DType.BOOL), found)]
        else:
            inner.append(Accumulate(Local(result, e.type), e.kind, value))
        if search or tested:
            inner.append(counted)
        self.groups, self.lines, self.lazy = outer, lines, lazy
        body: Body = tuple(inner)
        for loop in reversed(heads):
            body = (replace(loop, body=body),)
        tail: list[Statement] = []
        if tested:
            over = e.over
            tail.append(If(compare("eq", variable(count), number(0)), (Do(self.nothing(e.kind, over)),)))
        return (*head, *body, *tail), result

    def may_be_of_nothing(self, e: Reduce) -> bool:
        """Whether it must be tested that there is an element of which the greatest or least is taken."""
        return True

    def nothing(self, kind: str, over: str) -> Intrinsic:
        """Return the report of a reduction over nothing that has no value there."""
        return self.nest.nothing(kind, over)

    def loop_over(self, axis: Axis | GroupAxis | BroadcastAxis) -> Loop | GroupPoints:
        """Return the loop over an axis, without a body, whose points the values inside then use."""
        if isinstance(axis, Axis):
            return Loop(How.SERIAL, axis.index, number(0), IndexValue(axis.extent), ())
        points = self.nest.fresh("points")
        own = (Axes(axis.name, axis.operand), self.groups[axis.name][0]) if isinstance(axis, BroadcastAxis) else ()
        self.groups[axis.name] = Local(points, Weak.INT, None, "at"), Rank(axis.name)
        return GroupPoints(points, (Axes(axis.name), *own), ())
