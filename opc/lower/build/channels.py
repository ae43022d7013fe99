"""Windowed reductions with channels as the vector axis: the tables of what counts, and the planes of channels taken together."""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Expr, IndexValue, Read, map_affine
from opc.loops.nodes import Accumulate, Body, Continue, How, If, Let, LocalFunction, Store, Var
from opc.loops.values import (
    Address,
    Construct,
    Init,
    IntegerChoice,
    Local,
    Member,
    Named,
    Pointer,
    Word,
    call,
    compare,
    number,
    ref,
    variable,
)
from opc.lower.build.access import Accesses
from opc.lower.build.context import NEST, NO_RANGE, LoopContext, Variable, VectorRange
from opc.lower.build.split import Sweep, condition, split
from opc.lower.build.windowed import runs_along
from opc.lower.guards import replace_node
from opc.lower.nest_plans import VectorPlan
from opc.lower.nests.windowed import WindowAxis, WindowedReduction, channel_window


class ChannelBlocks:
    """Builds what computes the planes of several channels at once, ahead of the units that they are made of."""

    def __init__(self, known: LoopContext, plan: VectorPlan, windows: WindowedReduction) -> None:
        self.known, self.nest, self.plan, self.windows = known, known.nest, plan, windows
        self.of = windows.reduction.type
        self.channel = plan.statement.indices.index(windows.vector)
        self.tables, self.found, self.memory = (self.nest.fresh(n) for n in ("tables", "by_channels", "memory"))

    def table_lines(self) -> Body:
        """Return the tables of what counts at each row and each column."""
        axes, of = self.windows.axes, (self.of,)
        sizes: list[Expr] = []
        taps: list[LocalFunction] = []
        if len(axes) == 1:
            sizes += [number(1), number(1)]
            params = ("int64_t", self.nest.fresh("row")), ("int64_t", self.nest.fresh("tap"))
            taps.append(LocalFunction(self.nest.fresh("tap_of"), params, (), number(0), returns=Weak.INT))
        for a in axes:
            sizes += [Member("@nest", "size", self.plan.statement.indices.index(a.index)), IndexValue(a.axis.extent)]
            taps.append(self._tap(a))
        held = self.nest.size(self.windows.element.operand, len(self.windows.element.indices) - 1)
        place_functions = (ref(p.name) for p in taps)
        weighted = "true" if self.windows.weight else "false"
        find = call(
            "fill_channel_tables", ref(self.tables), held, *sizes, *place_functions, type=DType.BOOL, types=(self.of, weighted)
        )
        many = call("are_many", Member("@nest", "size", self.channel), type=DType.BOOL, types=of)
        whole = compare("eq", Member("@nest", "pieces"), number(1))
        memory = Named("opc::channel_memory")
        return (
            *taps,
            Var(self.tables, Named("opc::channel_tables")),
            Let(self.found, DType.BOOL, conjunction((whole, many, find))),
            Let(self.memory, memory, Construct(memory, Local(self.found, DType.BOOL))),
        )

    def _tap(self, a: WindowAxis) -> LocalFunction:
        """Return a function that finds the place of a point of a window, or -1."""
        params = ("int64_t", a.index), ("int64_t", a.axis.index)
        position = self.windows.element.indices[_entry(self.windows.element, a)]
        assert isinstance(position, Affine), "an element of a plane lies at an affine place"
        value: Expr = IndexValue(position)
        if a.guards:
            value = IntegerChoice(condition(self.known, a.guards), value, number(-1))
        return LocalFunction(self.nest.fresh("tap_of"), params, (), value, returns=Weak.INT)

    def block(self) -> Body:
        """Return the computing of several planes where the present unit is the first one of one, and the move behind them."""
        windows, of = self.windows, (self.of,)
        count, described, finish = (self.nest.fresh(n) for n in ("channels", "windows", "finish"))
        left = Call("sub", (variable("@end"), variable("@unit")), Weak.INT)
        from_here = call("channels_from", NEST, Word("at"), number(self.channel), left, types=of)
        term = number(1) if windows.term is None else IndexValue(windows.term.extent)
        members = (term, number(int(windows.padded)), *map(self._operand, windows.operands))
        args = NEST, ref(self.tables), ref(described), ref(self.memory), variable(count), variable("@offset"), ref(finish)
        done = call("reduce_channels", *args, type=DType.BOOL, types=(f"opc::combine::{windows.combine}",))
        last = call("to_last_unit", NEST, Word("at"), number(self.channel), variable(count))
        behind: Body = (Accumulate(Local("@unit", Weak.INT), "sum", last), Continue())
        let = Let(described, Named("opc::channel_windows", of), Init(members))
        return (
            Let(count, Weak.INT, IntegerChoice(Local(self.found, DType.BOOL), from_here, number(0))),
            If(compare("gt", variable(count), number(0)), (let, self._finish(finish), If(done, behind))),
        )

    def _operand(self, r: Read) -> Init:
        """Return where an operand's planes lie, and how far apart its channels, its rows and the terms of the sum."""
        term, entries = self.windows.term, [_entry(r, a) for a in self.windows.axes]

        def stride(index: str) -> Expr:
            return self.nest.stride(r.operand, r.indices.index(Affine.of(Index(index))))

        taps = (
            Affine.of(0) if n in entries or (term and i == Affine.of(Index(term.index))) else i for n, i in enumerate(r.indices)
        )
        offset = Accesses(self.known, NO_RANGE).offset(replace(r, indices=tuple(taps)), {})
        row = self.nest.stride(r.operand, entries[0]) if len(entries) > 1 else number(0)
        return Init((Address(r.operand, offset), stride(self.windows.vector), row, stride(term.index) if term else number(0)))

    def _finish(self, name: str) -> LocalFunction:
        """Return the function that makes results of what was combined at a point, lane by lane."""
        windows, known, flat = self.windows, self.known, self.plan.statement
        out, lanes = self.nest.fresh("out"), self.nest.fresh("lanes")
        params = (Pointer(self.of), out), ("auto", lanes)
        if flat.value is windows.reduction:
            return LocalFunction(name, params, ())
        own = self.nest.fresh("lane")
        position = Affine.of(Index(windows.vector)) + Index(own)
        known.bounded[position] = flat.extents[self.channel]
        rest = replace_node(flat.value, windows.reduction, known.local(Variable(out, self.of, True), own))
        rest = map_affine(rest, lambda a: a.at(windows.vector, position))
        store = Store(Local(out, self.nest.op.operand(flat.target).type, variable(own)), rest)
        return LocalFunction(name, params, split(known, Sweep(How.VECTOR, VectorRange(own, number(0), variable(lanes)), store)))


def _entry(r: Read, a: WindowAxis) -> int:
    """Return the entry of a read that moves along an axis of the window."""
    return next(n for n, i in enumerate(r.indices) if isinstance(i, Affine) and a.axis.index in i.indices())


def channel_blocks(known: LoopContext, plan: VectorPlan) -> ChannelBlocks | None:
    """Return what builds a statement's planes of several channels at once, None where its sum is none over windows of planes."""
    windows = channel_window(known.nest.op, plan.statement, known.facts)
    if windows is None or any(r.operand in known.nest.gathered or not runs_along(known, r) for r in windows.operands):
        return None
    # Elements without weights are too little work for a form more of each derivative, which takes its time to compile.
    worth = windows.weight is not None or known.nest.op.derivation is None
    return ChannelBlocks(known, plan, windows) if known.nest.decisions.take("channels", windows.vector, worth=worth) else None
