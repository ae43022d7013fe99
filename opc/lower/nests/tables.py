"""Values of a loop nest that change once a row or a column: computed once each, in a statement of their own.

The weights of an interpolation depend on one index of the target, and on the taps that are summed, but a nest would compute them
at every point. Here they become tables in memory. A value that reads operands stays where it is, and so does one that costs no
more than a load. But a dear function of what operands hold, such as the cosine of a token's angle, is a table where each of its
values is for several rows, as those of all heads. The places that the terms of a scatter find by data are tables too, where a
pass over the terms for each of several points would find them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opc.analysis.bounds.quotients import every_division
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, ElementType, Weak, is_floating
from opc.ir.expr import (
    CONDITION,
    INDEX,
    POSITION,
    REDUCTION,
    Call,
    Cast,
    Expr,
    GroupIndex,
    Read,
    Reduce,
    Select,
    affines,
    children,
    free_indices,
    reads,
    traits,
    walk,
    with_children,
)
from opc.ir.function import DEAR
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Op, Operand
from opc.lower.contractions.contraction import contraction_stage
from opc.lower.guards import is_known_inside
from opc.lower.nest_plans import ScatterPlan, VectorPlan
from opc.lower.nests.flat import is_positive, is_short
from opc.lower.statement import lower_statement
from opc.records import replace
from opc.transform.indices import Namer, index_names, op_names

_FEW_STEPS = 3
"""A value of so few operations is as cheap as a load."""


def with_tables(op: Op) -> Op:
    """Return the op with such values of its loop nests as statements ahead of them."""
    namer = Namer(op_names(op) | index_names(op))
    body: list[Assign] = []
    temporaries: list[Operand] = []
    known: dict[tuple[Expr, tuple[tuple[str, Affine], ...]], Read] = {}
    # A table has not the rows that products could be fused along.
    dear = not any(contraction_stage(op, s, s.target) is not None for s in op.body)
    for s in op.body:
        tables = _Tables(op, s, namer)
        if dear and tables.has_dear_values() and row_nest(op, s):
            s = replace(s, value=tables.with_dear_values(s.value, known))
        # What the statement reads now.
        held = replace(op, temporaries=(*op.temporaries, *temporaries, *tables.operands))
        scatter = _is_scatter(held, s)
        if traits(s.value) & INDEX and (scatter or row_nest(held, s)):
            s = replace(s, value=tables.replaced(s.value, {}))
        if scatter:
            s = replace(s, value=tables.with_index_tables(s.value, {}))
        body += [*tables.statements, s]
        temporaries += tables.operands
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *temporaries)) if temporaries else op


def row_nest(op: Op, s: Assign) -> bool:
    """Whether a statement is a loop nest over several indices that is run row by row."""
    if len(s.indices) < 2 or contraction_stage(op, s, s.target) is not None:
        return False
    plans = lower_statement(op, s, "").plans
    return bool(plans) and all(isinstance(p, VectorPlan) and p.vector_axis is not None for p in plans)


def _is_scatter(op: Op, s: Assign) -> bool:
    # A scatter sums the terms whose index is that of the target: of most statements that needs no plan.
    if not traits(s.value) & REDUCTION or not traits(s.value) & CONDITION:
        return False
    plans = lower_statement(op, s, "").plans
    return bool(plans) and all(isinstance(p, ScatterPlan) for p in plans)


class _Tables:
    """The tables of one statement."""

    def __init__(self, op: Op, s: Assign, namer: Namer) -> None:
        self.op, self.s, self.namer = op, s, namer
        self.statements: list[Assign] = []
        self.operands: list[Operand] = []
        self.found: dict[Expr, Read] = {}
        dims = op.operand(s.target).dims
        self.extents = {str(i): d for i, d in zip(s.indices, dims, strict=True) if isinstance(d, Affine)}

    def replaced(self, e: Expr, axes: Mapping[str, Affine]) -> Expr:
        """Return `e` with reads of tables; `axes` are the extents of the indices that it is summed over."""
        if self._is_table(e, axes):
            return self._read(e, axes)
        if isinstance(e, Reduce):
            axes = {**axes, **e.extents}
        return with_children(e, tuple(self.replaced(c, axes) for c in children(e)))

    def with_index_tables(self, e: Expr, axes: Mapping[str, Affine]) -> Expr:
        """Return a scatter with reads of tables for the places that don't change with all of its target's indices."""
        if self._is_index(e, axes):
            extents = {**self.extents, **axes}
            return self._table(e, {n: extents[n] for n in extents if n in free_indices(e)}, DType.INT64)
        if isinstance(e, Reduce):
            axes = {**axes, **e.extents}
        return with_children(e, tuple(self.with_index_tables(c, axes) for c in children(e)))

    def has_dear_values(self) -> bool:
        """Whether there may be dear functions of what operands hold that don't change with all of the target's indices."""
        named = len(self.extents) == len(self.s.indices) > 1
        return named and any(self._is_dear(e) for e in walk(self.s.value))

    def with_dear_values(self, e: Expr, known: dict[tuple[Expr, tuple[tuple[str, Affine], ...]], Read]) -> Expr:
        """Return `e` with reads of tables for such functions where all points need them; `known` are those of all statements."""
        if self._is_dear(e):
            names = free_indices(e)
            extents = {n: x for n, x in self.extents.items() if n in names}
            key = (e, tuple(extents.items()))
            if key not in known:
                known[key] = self._table(e, extents, _stored(e))
            return known[key]
        match e:
            case Reduce():
                return e
            case Select():
                return replace(e, cond=self.with_dear_values(e.cond, known))
            case Call(fn="and" | "or"):
                return e
            case _:
                return with_children(e, tuple(self.with_dear_values(c, known) for c in children(e)))

    def _is_dear(self, e: Expr) -> bool:
        if not isinstance(e, Call) or FUNCTIONS[e.fn].cost != DEAR or not is_floating(e.type):
            return False
        names, last = free_indices(e), self.s.indices[-1]
        if last not in names or not names < self.extents.keys() or traits(e) & (REDUCTION | POSITION):
            return False
        found = list(reads(e))
        optional = {i.name for i in self.op.inputs if i.optional}
        if not found or any(r.operand in optional or r.operand == self.s.target for r in found):
            return False
        bounded = {Affine.of(Index(n)): x for n, x in self.extents.items()}
        inside = all(is_known_inside(r, self.op.operand(r.operand).sizes, bounded) for r in found)
        return inside and all(_is_safe(self.op, n) for n in walk(e))

    def _is_index(self, e: Expr, axes: Mapping[str, Affine]) -> bool:
        """Whether a value is a number found by what operands hold, one that is used for several points of the target."""
        if not isinstance(e, Cast) or e.type is not DType.INT64 or not any(isinstance(n, Call) for n in walk(e)):
            return False
        names = free_indices(e)
        if not names & axes.keys() or not names <= self.extents.keys() | axes.keys() or self.extents.keys() <= names:
            return False
        if any(axes[n].indices() for n in names & axes.keys()) or traits(e) & (REDUCTION | POSITION):
            return False
        bounded = {Affine.of(Index(n)): x for n, x in (self.extents | dict(axes)).items()}
        optional = {i.name for i in self.op.inputs if i.optional}
        found = list(reads(e))
        return all(r.operand not in optional and is_known_inside(r, self.op.operand(r.operand).sizes, bounded) for r in found)

    def _is_table(self, e: Expr, axes: Mapping[str, Affine]) -> bool:
        if not isinstance(e, Call | Select | Cast) or not is_floating(e.type):
            return False
        names = free_indices(e)
        if len(self._long(names, axes)) != 1 or not names <= self.extents.keys() | axes.keys():
            return False
        if any(axes[n].indices() for n in names & axes.keys()):
            return False
        nodes = list(walk(e))
        if any(isinstance(n, Read | Reduce | GroupIndex) for n in nodes) or not all(_is_safe(self.op, n) for n in nodes):
            return False
        return sum(isinstance(n, Call | Select | Cast) for n in nodes) > _FEW_STEPS

    def _long(self, names: Collection[str], axes: Mapping[str, Affine]) -> list[str]:
        """Return the indices among `names` whose number of points counts: those of the target, and long ones that are summed."""
        summed = [n for n in axes if n in names and not is_short(self.op, axes[n])]
        return [*summed, *(n for n in self.extents if n in names and n not in axes)]

    def _read(self, e: Expr, axes: Mapping[str, Affine]) -> Read:
        """Return the read of the table that holds `e`, by its short indices and a long one."""
        names = free_indices(e)
        (last,) = self._long(names, axes)
        indices = (*(n for n in axes if n in names and n != last), last)
        return self._table(e, {i: axes[i] if i in axes else self.extents[i] for i in indices}, _stored(e))

    def _table(self, e: Expr, extents: Mapping[str, Affine], stored: ElementType) -> Read:
        """Return the read of the table that holds `e`, which is made if there is none yet."""
        if e not in self.found:
            indices = tuple(extents)
            name = self.namer.fresh(f"{self.s.target}_{indices[-1]}")
            target = self.op.operand(self.s.target)
            self.operands.append(replace(target, name=name, type=stored, dims=tuple(extents.values()), optional=False, doc=""))
            self.statements.append(Assign(name, indices, e, self.s.span))
            self.found[e] = Read(name, tuple(Affine.of(Index(i)) for i in indices), stored, span=e.span)
        return self.found[e]


def _is_safe(op: Op, e: Expr) -> bool:
    """Whether a part of a value may also be computed where the value is not used: no divisor of integers is 0."""
    if isinstance(e, Call) and e.fn in ("floordiv", "mod") and not is_floating(e.type):
        return False
    return all(is_positive(op, d.denominator) for a in affines(e) for d in every_division(a))


def _stored(e: Expr) -> ElementType:
    """Return the type in which a value is kept as it is computed."""
    if isinstance(e.type, Weak):
        return DType.FLOAT64
    return e.type
