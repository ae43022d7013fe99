"""Channel vectorisation of sums over windows: the tables of what counts, and the planes of channels computed together."""

from __future__ import annotations

from dataclasses import replace

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Expr, IndexValue, Read, map_affine
from opc.loops.nodes import Accumulate, Body, Continue, Function, How, If, Let, Loop, Scope, Store, Var
from opc.loops.values import (
    Address,
    Choice,
    Construct,
    Init,
    Local,
    Member,
    Named,
    Pointer,
    Product,
    Static,
    Sum,
    Word,
    call,
    compare,
    number,
    ref,
    variable,
)
from opc.lower.build.access import Accesses
from opc.lower.build.context import NEST, NO_RANGE, Known, Range, Variable
from opc.lower.build.split import Sweep, condition, split
from opc.lower.guards import replace_node
from opc.lower.loop_ir import Lanes
from opc.lower.nests.planes import PlaneAxis, Planes, planes_of


class PlaneBlocks:
    """Builds what computes the planes of several channels at once, ahead of the units that they are made of."""

    def __init__(self, known: Known, plan: Lanes, planes: Planes) -> None:
        self.known, self.nest, self.plan, self.planes = known, known.nest, plan, planes
        self.of = planes.sum.type
        self.channel = plan.statement.indices.index(planes.channel)
        self.tables, self.found, self.memory = (self.nest.fresh(n) for n in ("planes", "by_planes", "memory"))

    def table_lines(self) -> Body:
        """Return the tables of what counts at each row and each column."""
        axes = self.planes.axes
        last = len(self.plan.statement.indices) - 1
        sizes: list[Expr] = []
        places: list[Function] = []
        if len(axes) == 1:
            sizes += [number(1), number(1)]
            names = self.nest.fresh("row"), self.nest.fresh("tap")
            params = ("int64_t", names[0]), ("int64_t", names[1])
            places.append(Function(self.nest.fresh("place_of"), params, (), number(0), returns=Weak.INT))
        for n, a in enumerate(axes):
            sizes += [Member("@nest", "size", last + 1 - len(axes) + n), IndexValue(a.axis.extent)]
            places.append(self._place(a))
        channels = Member("@nest", "size", self.channel)
        held = self.nest.size(self.planes.element.operand, len(self.planes.element.indices) - 1)
        find = call(
            "find_planes", ref(self.tables), held, *sizes, *(ref(p.name) for p in places), type=DType.BOOL, types=(self.of,)
        )
        found: Expr = Call(
            "and",
            (
                compare("eq", Member("@nest", "pieces"), number(1)),
                call("are_many", channels, type=DType.BOOL, types=(self.of,)),
            ),
            DType.BOOL,
        )
        return (
            *places,
            Var(self.tables, Named("opc::plane_tables")),
            Let(self.found, DType.BOOL, Call("and", (found, find), DType.BOOL)),
            Let(self.memory, Named("opc::plane_memory"), Construct(Named("opc::plane_memory"), Local(self.found, DType.BOOL))),
        )

    def _place(self, a: PlaneAxis) -> Function:
        """Return a function that tells the place of a point of a window, or -1."""
        params = ("int64_t", a.index), ("int64_t", a.axis.index)
        place = IndexValue(a.place)
        value = Choice(condition(self.known, a.guards), place, number(-1)) if a.guards else place
        return Function(self.nest.fresh("place_of"), params, (), value, returns=Weak.INT)

    def block(self) -> Body:
        """Return the computing of several planes where the present unit is the first one of one, and the move behind them."""
        planes = self.planes
        count, sums, finish = (self.nest.fresh(n) for n in ("channels", "sums", "finish"))
        from_here = call(
            "planes_from",
            NEST,
            Word("at"),
            number(self.channel),
            Call("sub", (variable("@end"), variable("@unit")), Weak.INT),
            types=(self.of,),
        )
        term = number(1) if planes.term is None else IndexValue(planes.term.extent)
        own = [Affine.of(Index(a.axis.index)) for a in planes.axes]
        entries = [planes.factor.indices.index(i) for i in own]
        members = (
            self._operand(planes.element, [(a.index, a.axis.index, a.entry) for a in planes.axes]),
            self._operand(planes.factor, [(a.axis.index, "", n) for a, n in zip(planes.axes, entries)]),
            term,
            number(int(planes.padded)),
        )
        functions, name = self._finish(finish, count)
        args = NEST, ref(self.tables), ref(sums), ref(self.memory), variable(count), variable("@place"), ref(name)
        done = call("sum_planes", *args, type=DType.BOOL, types=(self.of,))
        last = call("to_last_unit", NEST, Word("at"), number(self.channel), variable(count))
        behind: Body = (Accumulate(Local("@unit", Weak.INT), "sum", last), Continue())
        body: Body = (Let(sums, Named("opc::plane_sums", (self.of,)), Init(members)), *functions, If(done, behind))
        return (
            Let(count, Weak.INT, Choice(Local(self.found, DType.BOOL), from_here, number(0))),
            If(compare("gt", variable(count), number(0)), body),
        )

    def _operand(self, r: Read, axes: list[tuple[str, str, int]]) -> Init:
        """Return where an operand's planes lie, which the entries of `axes` run along."""
        nest = self.nest
        moving = {name for a in axes for name in a[:2]} | ({self.planes.term.index} if self.planes.term else set())

        def stride(index: str) -> Expr:
            entry = [n for n, i in enumerate(r.indices) if i == Affine.of(Index(index))]
            return nest.stride(r.operand, entry[0]) if entry else number(0)

        first = [
            i.substitute(lambda s: Affine.of(0) if isinstance(s, Index) and s.name in moving else None)
            if not any(n == a[2] for a in axes)
            else Affine.of(0)
            for n, i in enumerate(r.indices)
            if isinstance(i, Affine)
        ]
        offset = Accesses(self.known, NO_RANGE).offset(replace(r, indices=tuple(first)), {})
        row = nest.stride(r.operand, axes[0][2]) if len(axes) > 1 else number(0)
        term = stride(self.planes.term.index) if self.planes.term else number(0)
        return Init((Address(r.operand, offset), stride(self.planes.channel), row, term))

    def _finish(self, name: str, count: str) -> tuple[Body, str]:
        """Return the function that makes results of sums, lane by lane of their tile, and its name."""
        planes, known = self.planes, self.known
        flat = self.plan.statement
        pointer = Pointer(self.of)
        tile, points, point, lanes = (self.nest.fresh(n) for n in ("tile", "points", "point", "lanes"))
        if flat.value is planes.sum:
            return (Function(name, ((pointer, tile), ("int64_t", points)), ()),), name
        own, out = self.nest.fresh("lane"), self.nest.fresh("out")
        position = Affine.of(Index(planes.channel)) + Index(own)
        known.bounded[position] = flat.extents[self.channel]
        read = known.local(Variable(out, planes.sum.type, True), own)
        rest = replace_node(flat.value, planes.sum, read)
        rest = map_affine(rest, lambda a: a.substitute(lambda s: position if s == Index(planes.channel) else None))
        over = Range(own, number(0), variable(lanes))
        store = Store(Local(out, self.nest.op.operand(flat.target).type, variable(own)), rest)
        vector = Static(Named("opc::plane_vector", (self.of,)), "lanes", Weak.INT)
        at = Sum((ref(tile), Product((variable(point), vector))))
        loop: Body = (Let(out, pointer, at), *split(known, Sweep(How.VECTOR, over, store)))
        each = Loop(How.SERIAL, point, number(0), variable(points), loop)
        scope = Scope(call("with_channels", variable(count), types=(self.of,)), (("auto", lanes),), (each,))
        return (Function(name, ((pointer, tile), ("int64_t", points)), (scope,)),), name


def plane_blocks(known: Known, plan: Lanes) -> PlaneBlocks | None:
    """Return what builds a statement's planes of several channels at once, None where its sum is none over windows of planes."""
    nest = known.nest
    planes = planes_of(nest.op, plan.statement, nest.sizes, known.bounded, known.positive)
    if planes is None:
        return None
    found = (planes.element, planes.factor)
    if any(r.operand in nest.gathered or known.units[r.operand] != len(r.indices) - 1 for r in found):
        return None
    return PlaneBlocks(known, plan, planes) if nest.decisions.take("channels", planes.channel) else None
