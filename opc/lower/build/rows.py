"""Loop nests over rows: the outer loops of a statement in parallel, the innermost one vectorised.

Along the last index of the target, the vector axis, reductions keep their partial results in an array of accumulators, and their
loops stand outside of the loop over the vector axis. Without a lane each reduction is a loop of its own that ends in one value.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Const, Expr, IndexValue, Read, Select, free_indices, has_reduction, map_affine
from opc.ir.identity import is_identity
from opc.ir.printer import format_assign, format_expr
from opc.loops.nodes import Body, Buffer, Comment, Continue, Do, How, If, Kernel, Let, Loop, Return, Statement, Store, Var, View
from opc.loops.values import (
    Construct,
    Init,
    IntegerChoice,
    Local,
    Member,
    Named,
    Pointer,
    Sum,
    Word,
    call,
    compare,
    number,
    ref,
    variable,
)
from opc.lower.build.access import Accesses
from opc.lower.build.channels import ChannelBlocks, channel_blocks
from opc.lower.build.context import NEST, NO_RANGE, LoopContext, Nest, UnsupportedForm, VectorRange
from opc.lower.build.gather_indices import gather_index_rows
from opc.lower.build.order import order_body
from opc.lower.build.reduction import reductions
from opc.lower.build.scan import scan_body
from opc.lower.build.scatter import scatter_body
from opc.lower.build.split import Sweep, condition, is_mostly_zero, split
from opc.lower.nest_plans import OrderPlan, ScanPlan, ScatterPlan, VectorPlan
from opc.lower.nests.flat import goes_in_runs, in_phase, in_run, period
from opc.records import replace

_LEAST_RUN = 16
"""Lanes that are alike in runs of so many go run by run; in shorter ones there would be loops over less than a vector."""


class _RowNest:
    def __init__(self, nest: Nest) -> None:
        self.op, self.stage, self.nest = nest.op, nest.stage, nest
        self.blocks: ChannelBlocks | None = None

    def kernel(self) -> Kernel:
        """Return the function."""
        nest, first = self.nest, self.stage.plans[0]
        body = self._plan(first, alone=False)
        if len(self.stage.plans) > 1:
            other = self._plan(self.stage.plans[1], alone=True)
            body = (If(Word("nest.alone"), (*other, Return())), *body)
        views = tuple(
            View(name, self.op.operand(name).type, name in nest.gathered, n) for n, name in enumerate(nest.operands[:-1])
        )
        return Kernel(
            "row_nest",
            nest.operands,
            nest.types,
            (Comment(format_assign(self.stage.assign)), *nest.memory, *body),
            views,
            channel=None if self.blocks is None else self.blocks.channel,
            short_rows=self.blocks is not None and self.blocks.windows.weight is None,
            span=self.stage.assign.span,
        )

    def _plan(self, plan: VectorPlan | ScatterPlan | ScanPlan | OrderPlan, alone: bool) -> Body:
        """Return the loop over units of work of one plan."""
        nest = self.nest
        known = LoopContext(nest, {n: nest.unit(n, alone) for n in nest.operands[:-1]})
        if alone:
            known.bounded[Affine.of(0)] = self.stage.plans[0].statement.extents[-1]
        if isinstance(plan, ScatterPlan):
            places = [f"{index} = {format_expr(place)}" for index, place in plan.scatter_indices]
            if plan.run is not None:
                places = [f"run of {plan.run.index}"]
            how = {f"rows {plan.row}": plan.row, "windows": plan.window, "atomic": plan.shared}
            self._decide("scatter", *places, *(text for text, holds in how.items() if holds))
            return scatter_body(known, plan)
        if isinstance(plan, OrderPlan):
            place = plan.ordering.rank if plan.index is None else plan.index
            self._decide(
                "sort", *(["descending"] if plan.ordering.descending is True else []), f"{place} of {plan.ordering.along}"
            )
            return order_body(known, plan)
        if isinstance(plan, ScanPlan):
            self._decide("scan", plan.index, *(["down"] if plan.descending else []))
            return scan_body(known, plan)
        self._decide("vectorise", *([plan.vector_axis] if plan.vector_axis is not None else ()))
        if plan.looked_up:
            self.nest.decisions.take("prefetch", *plan.looked_up, *([f"for all [{', '.join(plan.inner)}]"] if plan.inner else ()))
        return self._lanes(known, plan, alone)

    def _decide(self, name: str, *args: str) -> None:
        """Note what the nest becomes; where that is overridden, it has the plain form.

        Raises:
            Unsupported: where it is.
        """
        if not self.nest.decisions.take(name, *args):
            raise UnsupportedForm(f"{name} is left out")

    def _lanes(self, known: LoopContext, plan: VectorPlan, alone: bool) -> Body:
        flat, nest = plan.statement, self.nest
        of = nest.declared.type
        used = free_indices(flat.value)
        copied = self._copies(flat.value, plan.vector_axis)
        ahead: list[Statement] = [Var("@at", Named("opc::cursor"), Init((NEST, variable("@begin"))))]
        copies = Var("@copies", Named("opc::row_copies"), Init((NEST,)))
        ahead.append(copies if copied else Buffer("@buffer", of, self._buffer_size(plan)))
        for name, extent in zip(flat.indices, flat.extents, strict=True):
            known.bound(name, extent)
        blocks = None if alone else channel_blocks(known, plan)
        tables: Body = ()
        if blocks is not None:
            self.blocks = blocks
            tables = blocks.table_lines()
        body: list[Statement] = []
        for n, name in enumerate(plan.outer):
            if name in used:
                body.append(Let(name, Weak.INT, Member("@at", "index", n)))
        if self.stage.stored:
            body.append(Let("@offset", Weak.INT, call("@at.target")))
        if blocks is not None:
            body += blocks.block()
        declared: Body = ()
        if plan.vector_axis is None:
            body += self._point(known, flat.value)
        elif copied:
            body += self._copy_row(known, flat.value, plan.vector_axis)
        else:
            declared, row = self._row(known, plan, plan.vector_axis)
            body += row
        return (*ahead, *declared, *tables, units(tuple(body)))

    def _buffer_size(self, plan: VectorPlan) -> str:
        if plan.vector_axis is None:
            return "1"
        return (
            "2 * opc::nest_columns"
            if period(self.op, plan.statement.value, plan.vector_axis) is not None
            else "opc::nest_columns"
        )

    def _result_row(self) -> Expr:
        return call("result_row", NEST, Word("offset"), ref("@buffer"))

    def _point(self, known: LoopContext, value: Expr) -> Body:
        """Return the computing of one point."""
        of = self.nest.declared.type
        loops, rest = reductions(known, NO_RANGE, value)
        value = Accesses(known, NO_RANGE, lazy=True).value(rest)
        return (
            *loops,
            Let("@out", Pointer(of), self._result_row()),
            Store(Local("@out", of, number(0)), value),
            Do(call("finish_row", NEST, Word("offset"), ref("@out"), number(1))),
        )

    def _row(self, known: LoopContext, plan: VectorPlan, vector_axis: str) -> tuple[Body, Body]:
        """Return a piece of a row, phase by phase where lanes that are a period apart are alike, and before it what it needs
        declared ahead of the loop over units."""
        value, extent, nest = plan.statement.value, plan.statement.extents[-1], self.nest
        divisor = period(self.op, value, vector_axis)
        start, own = nest.fresh("start"), nest.fresh(vector_axis)
        known.row_axis = own
        if plan.looked_up:
            known.row_size = "opc::gather_row"
        body: list[Statement] = [Let(start, Weak.INT, call("@at.first")), Let("@count", Weak.INT, call("@at.count"))]
        if divisor is not None:
            where = vector_axis, divisor, extent, Index(start), Index(own)
            if not goes_in_runs(value, vector_axis) or has_reduction(value) or (divisor.constant or _LEAST_RUN) < _LEAST_RUN:
                return (), (*body, *self._phases(known, value, *where))
            if divisor.constant is not None:
                return (), (*body, *self._runs(known, value, *where))
            long = compare("ge", IndexValue(divisor), number(_LEAST_RUN))
            return (), (*body, If(long, self._runs(known, value, *where), self._phases(known, value, *where)))
        of = nest.declared.type
        position = Affine.of(Index(start)) + Index(own)
        known.bounded[position] = extent
        value = map_affine(value, lambda a: a.at(vector_axis, position))
        over = VectorRange(own, number(0), variable("@count"))
        declared, places = gather_index_rows(known, plan, value, over, {*plan.outer, start, own})
        loops, rest = reductions(known, over, value)
        zeroed = self.stage.stored and not plan.inner and is_mostly_zero(known, rest, own)
        body += [*places, Let("@out", Pointer(of), self._result_row() if self.stage.stored else ref("@buffer")), *loops]
        if zeroed:
            declared = (*declared, Do(call("zero_units", NEST, Word("begin"), Word("end"))))
            is_buffer = compare("eq", ref("@out"), ref("@buffer"))
            body.append(If(is_buffer, (Do(call("fill", ref("@out"), variable("@count"), Construct(of, Const(0, of)))),)))
        body += split(known, Sweep(How.VECTOR, over, Store(Local("@out", of, variable(own)), rest), zeroed))
        if self.stage.stored:
            body.append(Do(call("finish_row", NEST, Word("offset"), ref("@out"), variable("@count"))))
        if self.stage.sum is not None:
            body.append(Do(call("sum_unit", NEST, Word("unit"), ref("@out"), variable("@count"))))
        return declared, tuple(body)

    def _phases(
        self, known: LoopContext, value: Expr, vector_axis: str, divisor: Affine, extent: Affine, start: Index, own: Index
    ) -> Body:
        """Return a piece of a row phase by phase: lanes that are `divisor` apart are alike."""
        of = self.nest.declared.type
        phase = Affine.of(start) + Index("@phase")
        known.bounded[divisor * own + phase] = extent
        value = map_affine(value, lambda a: in_phase(a, vector_axis, divisor, Affine.of(own), phase))
        over = VectorRange(own.name, number(0), variable("@lanes"))
        loops, rest = reductions(known, over, value)
        count, pitch = Affine.of(Index("@count")), Affine.of(Index("@pitch"))
        at = Affine.of(Index("@phase"))
        one = compare("eq", variable("@phases"), number(1))
        body: Body = (
            Let("@lanes", Weak.INT, call("quotient_up", IndexValue(count - at), variable("@phases"))),
            Let("@out", Pointer(of), Sum((ref("@row"), IndexValue(at * pitch)))),
            *loops,
            *split(known, Sweep(How.VECTOR, over, Store(Local("@out", of, variable(own.name)), rest))),
        )
        within = call("least", variable("@phases"), variable("@count"))
        return (
            Let("@phases", Weak.INT, IndexValue(divisor)),
            Let("@pitch", Weak.INT, call("quotient_up", variable("@count"), variable("@phases"))),
            Let("@row", Pointer(of), IntegerChoice(one, self._result_row(), ref("@buffer"))),
            Loop(How.SERIAL, "@phase", number(0), within, body),
            If(
                one,
                (Do(call("finish_row", NEST, Word("offset"), ref("@row"), variable("@count"))),),
                (
                    Do(
                        call(
                            "finish_phases",
                            NEST,
                            Word("offset"),
                            ref("@row"),
                            variable("@pitch"),
                            variable("@phases"),
                            variable("@count"),
                        )
                    ),
                ),
            ),
        )

    def _runs(
        self, known: LoopContext, value: Expr, vector_axis: str, divisor: Affine, extent: Affine, start: Index, own: Index
    ) -> Body:
        """Return a piece of a row run by run: `divisor` lanes beside one another are alike."""
        of, run = self.nest.declared.type, Index(self.nest.fresh("run"))
        known.bounded[Affine.of(start) + Affine.of(own)] = extent
        known.bounded[Affine.of(start) + Affine.of(own) - Affine.of(run) * divisor] = divisor
        value = map_affine(value, lambda a: in_run(a, vector_axis, divisor, Affine.of(run), Affine.of(start) + Affine.of(own)))
        begin = Affine.of(run) * divisor - Affine.of(start)
        low, high = self.nest.fresh("low"), self.nest.fresh("high")
        over = VectorRange(own.name, variable(low), variable(high))
        body: Body = (
            Let(low, Weak.INT, call("greatest", number(0), IndexValue(begin))),
            Let(high, Weak.INT, call("least", variable("@count"), IndexValue(begin + divisor))),
            *split(known, Sweep(How.VECTOR, over, Store(Local("@out", of, variable(own.name)), value))),
        )
        end = call("quotient_up", IndexValue(Affine.of(start) + Affine.of(Index("@count"))), IndexValue(divisor))
        return (
            Let("@out", Pointer(of), self._result_row()),
            Loop(How.SERIAL, run.name, IndexValue(Affine.of(start) // divisor), end, body),
            Do(call("finish_row", NEST, Word("offset"), ref("@out"), variable("@count"))),
        )

    def _copies(self, value: Expr, vector_axis: str | None) -> bool:
        """Whether a row is a row of an operand that is stored as the target is, or zeros, and needs no more than to be copied."""
        if self.stage.sum is not None:
            return False
        while isinstance(value, Select) and is_identity("sum", value.other):
            if vector_axis in free_indices(value.cond):
                return False
            value = value.then
        return isinstance(value, Read) and value.pad is None and self._is_row(value, vector_axis)

    def _is_row(self, e: Read, vector_axis: str | None) -> bool:
        last = e.indices[-1] if e.indices else None
        if vector_axis is None or not isinstance(last, Affine) or last.index != vector_axis or self.nest.is_optional(e.operand):
            return False
        others = free_indices(replace(e, indices=e.indices[:-1])) if len(e.indices) > 1 else set()
        # A temporary holds what is computed of a half type.
        held, target = {t.name for t in self.op.temporaries}, self.nest.declared
        alike = (e.operand in held) == (target.name in held) and self.op.operand(e.operand).type == target.type
        return e.operand in self.nest.gathered and vector_axis not in others and alike

    def _copy_row(self, known: LoopContext, value: Expr, vector_axis: str) -> Body:
        """Return the copying of a row."""
        body: list[Statement] = [Let(vector_axis, Weak.INT, call("@at.first"))]
        count = call("@at.count")
        while isinstance(value, Select):
            no = Call("not", (condition(known, (value.cond,)),), DType.BOOL)
            body.append(If(no, (Do(call("@copies.zero", Word("offset"), count)), Continue())))
            value = value.then
        assert isinstance(value, Read), "only a read is copied"
        accesses = Accesses(known, NO_RANGE)
        tests, places = accesses.indices(value)
        offset = accesses.offset(value, places)
        copy = call("@copies.copy", self.nest.number_of(value.operand), offset, Word("offset"), count)
        return (*body, *accesses.before, *tests, Do(copy))


def units(body: Body) -> Loop:
    """Return the loop over units of work."""
    return Loop(How.SERIAL, "@unit", variable("@begin"), variable("@end"), body, after=call("@at.next"))


def row_nest(nest: Nest) -> Kernel:
    """Return the function of a statement that is run row by row.

    Raises:
        Unsupported: when the statement has no such form.
    """
    return _RowNest(nest).kernel()
