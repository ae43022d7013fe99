"""Running reductions on a device: a thread carries one along an index of the target, at each position of the others."""

from __future__ import annotations

from opc.ir.dtypes import Weak
from opc.ir.expr import Axis, Expr, IndexValue
from opc.ir.printer import format_assign
from opc.loops.nodes import Accumulate, Body, Comment, Do, How, If, Kernel, Let, Loop, Statement, Var, While
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Block, Local, Member, Product, call, compare, number, sum_of, variable
from opc.lower.build.context import Nest
from opc.lower.build.reduction import start_of
from opc.lower.cuda.points import FlatPoints, used_places
from opc.lower.guards import replace_node
from opc.lower.loop_ir import NestStage, ScanPlan

_ROW = "@row"


def scan_of(stage: NestStage) -> ScanPlan | None:
    """Return how a stage carries a reduction along an index, None where it does not."""
    plan = stage.plans[0] if stage.plans else None
    return plan if isinstance(plan, ScanPlan) else None


def scanned_entry(plan: ScanPlan) -> int:
    """Return the entry of the target's indices along which a reduction is carried."""
    return plan.statement.indices.index(plan.index)


def scan_kernel(nest: Nest, plan: ScanPlan) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceScan(nest, plan).kernel()


class _DeviceScan(FlatPoints):
    """Makes the loop of one statement."""

    def __init__(self, nest: Nest, plan: ScanPlan) -> None:
        super().__init__(nest)
        self.plan, self.along = plan, scanned_entry(plan)

    def kernel(self) -> Kernel:
        """Return the function."""
        plan, assign, e = self.plan, self.stage.assign, self.plan.reduction
        (axis,) = e.axes
        assert isinstance(axis, Axis), "a scan goes along an axis"
        index, carried = plan.index, self.nest.fresh({"sum": "total", "prod": "product"}.get(e.kind, e.kind))
        places = self._rows()
        terms = IndexValue(axis.extent)
        first, last = (terms, variable(index)) if plan.from_here else (number(0), terms)
        lines, value = self.inside(e.body)
        take: Body = (*lines, Accumulate(Local(carried, e.type), e.kind, value))
        step = Accumulate(Local(axis.index, Weak.INT), "sum", number(-1 if plan.from_here else 1))
        left = compare("gt" if plan.from_here else "lt", variable(axis.index), last)
        body: list[Statement] = []
        if not plan.nonempty:
            empty = compare("le", terms, variable(index) if plan.from_here else number(0))
            body.append(If(empty, (Do(self.nothing(e.kind, axis.index)),)))
        lines, value = self.inside(replace_node(plan.statement.value, e, Local(carried, e.type)))
        body += [While(left, (step, *take) if plan.from_here else (*take, step)), *lines, self.stored(self._place(), value)]
        size = Member("@nest", "size", self.along)
        row: Body = (
            Var(carried, e.type, start_of(e.kind, e.type)),
            Var(axis.index, Weak.INT, self._start(first, index, size)),
            Loop(How.SERIAL, index, number(0), size, tuple(body), down=plan.descending),
        )
        loop = Loop(How.GRID, _ROW, number(0), Member("@nest", "work"), used_places(places, row))
        schedule = Schedule((Transformation("bind", ("rows to all threads",)), Transformation("scan", (index,))))
        return self.function((Comment(format_assign(assign)), loop), schedule)

    def _rows(self) -> tuple[Let, ...]:
        """Return the places of a row along the indices of the target that it does not go along."""
        indices = self.plan.statement.indices
        others = [n for n in range(len(indices)) if n != self.along]
        lets = []
        for k, n in enumerate(others):
            behind: list[Expr] = [Member("@nest", "size", m) for m in others[k + 1 :]]
            after = Product(tuple(behind)) if len(behind) > 1 else behind[0] if behind else number(1)
            lets.append(Let(indices[n], Weak.INT, call("place_in", variable(_ROW), after, Member("@nest", "size", n))))
        return tuple(lets)

    def _place(self) -> Expr:
        """Return where the element of a point is."""
        indices = enumerate(self.plan.statement.indices)
        return sum_of([Product((variable(name), Member("@nest", "after", n))) for n, name in indices])

    def _start(self, first: Expr, index: str, size: Expr) -> Expr:
        """Return the number of the first term that is taken in, at the first point of a row."""
        assert isinstance(first, IndexValue), "the number of terms is affine"
        if index not in first.value.indices():
            return first
        at = sum_of([size, number(-1)]) if self.plan.descending else number(0)
        return Block((Let(index, Weak.INT, at),), first, Weak.INT)
