"""Scatters on a device, where a spec permits atomic additions: a thread for each term at each point of the other indices.

The target is a temporary of zeros, as wide as what is computed. Without that permission the sum is a reduction like any other, in
an order of its own for each element.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, is_floating
from opc.ir.expr import Axis, Call, Expr, IndexValue
from opc.ir.op import Assign, Op, ScatterMode
from opc.ir.printer import format_assign
from opc.loops.nodes import Body, Comment, Continue, Do, How, If, Kernel, Let, Loop, Statement
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Construct, Member, Product, call, compare, number, sum_of, variable
from opc.lower.build.context import Nest
from opc.lower.cuda.points import FlatPoints, place_of
from opc.lower.loop_ir import NestStage, ScatterPlan
from opc.lower.nests.scatter import scatter_plan

_TERM = "@term"

_ADDED = frozenset({DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT32, DType.UINT64})
"""The types whose elements a GPU adds to atomically."""


def scatters_atomically(op: Op, assign: Assign) -> ScatterPlan | None:
    """Return how a statement adds its terms to the elements that they name, in any order; None where that isn't permitted."""
    if op.scatter is not ScatterMode.ATOMIC:
        return None
    plan = scatter_plan(op, assign)
    return plan if plan is not None and plan.shared and _is_added(op.operand(assign.target).type) else None


def _is_added(of: ValueType) -> bool:
    """Whether values of a type are computed in one that is added to atomically."""
    kinds = of.dtypes if isinstance(of, TypeVar) else (of,)
    return all(isinstance(d, DType) and (d in _ADDED or (is_floating(d) and d.bits < 32)) for d in kinds)


def scatter_of(stage: NestStage) -> ScatterPlan | None:
    """Return how a stage adds atomically, None where it does not."""
    plan = stage.plans[0] if stage.plans else None
    return plan if isinstance(plan, ScatterPlan) else None


def other_entries(plan: ScatterPlan) -> tuple[int, ...]:
    """Return the entries of the target's indices that no term names."""
    named = dict(plan.scatter_indices)
    return tuple(n for n, index in enumerate(plan.statement.indices) if index not in named)


def scatter_kernel(nest: Nest, plan: ScatterPlan) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceScatter(nest, plan).kernel()


class _DeviceScatter(FlatPoints):
    """Makes the loop of one statement: over terms, and over the points of the indices that no term names, which vary fastest."""

    def __init__(self, nest: Nest, plan: ScatterPlan) -> None:
        super().__init__(nest)
        self.plan = plan

    def kernel(self) -> Kernel:
        """Return the function."""
        plan, target = self.plan, self.nest.declared
        indices = plan.statement.indices
        body: list[Statement] = [*self._places()]
        for cond in plan.given:
            body += self._only_if(cond)
        for index, position in plan.scatter_indices:
            lines, value = self.inside(position)
            size = Member("@nest", "size", indices.index(index))
            body += [*lines, Let(index, Weak.INT, value)]
            body.append(If(call("outside", variable(index), size, type=DType.BOOL), (Continue(),)))
        for guard in plan.guards:
            body += self._only_if(guard)
        lines, value = self.inside(plan.body)
        at = sum_of([Product((variable(name), Member("@nest", "after", n))) for n, name in enumerate(indices)])
        body += [*lines, Do(call("add_at", Address(target.name, at), Construct(target.type, value)))]
        loop = Loop(How.GRID, _TERM, number(0), Member("@nest", "work"), tuple(body))
        named = tuple(index for index, _ in plan.scatter_indices)
        schedule = Schedule((Transformation("bind", ("terms to all threads",)), Transformation("scatter", (*named, "atomic"))))
        return self.function((Comment(format_assign(self.stage.assign)), loop), schedule)

    def _only_if(self, guard: Affine | Expr) -> Body:
        """Return what goes on to the next term where a guard does not hold."""
        if isinstance(guard, Affine):
            return (If(compare("lt", IndexValue(guard), number(0)), (Continue(),)),)
        lines, value = self.inside(guard)
        return (*lines, If(Call("not", (value,), DType.BOOL), (Continue(),)))

    def _places(self) -> tuple[Let, ...]:
        """Return the places along the axes of the sum and the indices that no term names."""
        digits: list[tuple[str, Expr]] = []
        for axis in self.plan.sum.axes:
            assert isinstance(axis, Axis), "the statement is flat"
            digits.append((axis.index, IndexValue(axis.extent)))
        indices = self.plan.statement.indices
        digits += [(indices[n], Member("@nest", "size", n)) for n in other_entries(self.plan)]
        sizes = [size for _, size in digits]
        return tuple(
            Let(name, Weak.INT, place_of(variable(_TERM), sizes[k + 1 :], size)) for k, (name, size) in enumerate(digits)
        )
