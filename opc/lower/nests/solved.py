"""Sums in which a condition says what an affine expression of their indices is: run over the terms that it leaves alone.

`y[n] = sum[r, k](f[r, k] if r*hop + k == n else 0)` is `sum[k](f[(n - k) // hop, k] if ... else 0)`, as the gradient of
`y[r, k] = x[r*hop + k]` is derived. A bare index that such a condition names is a read (see `scatter`); where an expression can't
be solved, as where the sign of `hop` is not known, the sum is a scatter.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.patterns import conjunction
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    Reduce,
    ReduceAxis,
    Select,
    children,
    has_reduction,
    may_refuse,
    with_children,
)
from opc.ir.op import Assign, Op
from opc.lower.alone import of_statement
from opc.lower.nests.terms import conditions_of
from opc.records import dataclass, replace
from opc.transform.affine_rules import Equation
from opc.transform.domain import Domain
from opc.transform.equations import System
from opc.transform.indices import Namer, statement_names
from opc.transform.sums import varies

_Ranges = Mapping[str, Affine]


def with_solved_sums(op: Op) -> Op:
    """Return the op with each sum that such conditions fix over the indices that they leave."""
    body = tuple(_solved(op, s) for s in op.body)
    return op if all(new is s for new, s in zip(body, op.body, strict=True)) else op.with_body(body)


@of_statement
def _solved(op: Op, s: Assign) -> Assign:
    if not has_reduction(s.value):
        return s

    def visited(e: Expr, around: _Ranges) -> Expr:
        if not has_reduction(e):
            return e
        inside = around
        if isinstance(e, Reduce):
            inside = {**around, **{a.index: a.extent for a in e.axes if isinstance(a, Axis)}}
        e = with_children(e, tuple(visited(c, inside) for c in children(e)))
        return _solved_sum(op, s, e, around) if isinstance(e, Reduce) and e.kind == "sum" else e

    ranges = {a.index: a.extent for a in Domain.of(s, op.operand(s.target)).axes}
    value = visited(s.value, ranges)
    found = s if value == s.value else s.with_value(value)
    # A loop that is gone may have been what said that an axis has elements.
    return s if found is s or any(ReadsInside(op).outside(found)) else found


def _solved_sum(op: Op, s: Assign, e: Reduce, around: _Ranges) -> Expr:
    loops = [a for a in e.axes if isinstance(a, Axis)]
    conditions, body = conditions_of(e.body)
    equations: list[Equation] = []
    rest: list[Expr] = []
    for n, c in enumerate(conditions):
        if may_refuse(c):
            rest += conditions[n:]  # asked for all indices
            break
        equation = _equation(c, loops, around)
        if equation is None:
            rest.append(c)
        else:
            equations.append(equation)
    if not equations:
        return e
    value = Select(conjunction(rest), body, Const(0, body.type), body.type) if rest else body
    system = _Terms(Namer(statement_names(op, s)), list(loops), value, knowledge_of(op), equations, ranges=dict(around), whole=e)
    if not all(map(system.is_soluble, equations)):
        return e
    return system.solve(tuple(a for a in e.axes if not isinstance(a, Axis)))


def _equation(c: Expr, loops: list[Axis], around: _Ranges) -> Equation | None:
    """Return what a condition says of the loops of a sum, where it is an affine expression of theirs and no bare one."""
    if not isinstance(c, Call) or c.fn != "eq":
        return None
    one, other = map(affine_of, c.args)
    if one is None or other is None:
        return None
    own = {a.index for a in loops}
    if {one.index, other.index} & own:
        return None
    difference = one - other
    right = Affine.of(0)
    for index in sorted(own & difference.indices()):
        coefficient = difference.coefficient(index)
        if coefficient is None or coefficient.indices():
            return None
        right = right + coefficient * Index(index)
    left = right - difference
    if right == Affine.of(0) or left.indices() & own or not left.indices() <= around.keys():
        return None
    if right.terms[0][1] < 0:
        left, right = -left, -right
    return Equation(left, right, left + 1 if left.index is None else around[left.index])


@dataclass(slots=True)
class _Terms(System):
    """The loops of a sum, which stays one over those that are left."""

    whole: Reduce | None = None

    def is_soluble(self, equation: Equation) -> bool:
        """Whether an equation can be solved for each loop that it holds: else a long one might be left."""
        right = equation.right
        assert isinstance(right, Affine), "an affine expression is no data"
        held = [right.coefficient(a.index) for a in self.loops if a.index in right.indices()]
        return all(c is not None and self._nonzero(c) for c in held)

    def _sum(self, groups: tuple[ReduceAxis, ...]) -> Expr:
        e = self.whole
        assert e is not None
        axes = (*groups, *self.loops)
        inner = [g for g in self.guards if varies(g, axes)]
        outer = [g for g in self.guards if not varies(g, axes)]
        body = self.value
        if inner:
            body = Select(conjunction(inner), body, Const(0, body.type), body.type)
        total: Expr = replace(e, axes=axes, body=body) if axes else Call("add", (Const(0, Weak.INT), body), e.type)
        return Select(conjunction(outer), total, Const(0, e.type), e.type) if outer else total
