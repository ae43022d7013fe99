"""Scatters whose terms hold reductions: the terms are stored, and the scatter adds them up.

`y[v] = sum[e](exp(sum[o](a[s[e], o] * b[v, o])) if t[e] == v else 0)` has one term for each e. A pass over the terms that has
loops in it is no scatter, and going through all terms for each v takes their product.

    term[e] = exp(sum[o](a[s[e], o] * b[t[e], o])) if 0 <= t[e] and t[e] < V else 0
    y[v] = sum[e](term[e] if t[e] == v else 0)
"""

from __future__ import annotations

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Axis,
    Const,
    Expr,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    free_groups,
    free_indices,
    has_reduction,
    may_refuse,
    reads,
    with_children,
)
from opc.ir.op import Assign, DimSpec, Op, Operand
from opc.lower.contractions.terms import is_invariant
from opc.lower.nests.scatter import equalities, place
from opc.lower.nests.terms import conditions_of
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names
from opc.transform.scalar import ZERO, negation, raw


def with_stored_terms(op: Op) -> Op:
    """Return the op with the terms of such scatters as temporaries."""
    found = _Terms(op)
    body: list[Assign] = []
    for s in op.body:
        changed = s.with_value(found.value(s, s.value, ()))
        body += [*found.new, changed]
        found.new.clear()
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *found.temporaries)) if found.temporaries else op


class _Terms:
    def __init__(self, op: Op) -> None:
        self.op = op
        self.namer = Namer(op_names(op) | index_names(op))
        self.new: list[Assign] = []
        self.temporaries: list[Operand] = []

    def value(self, s: Assign, e: Expr, given: tuple[Expr, ...]) -> Expr:
        """Return a value in a statement with its scatters, in calls in which all this holds."""
        match e:
            case _ if not has_reduction(e):
                return e
            case Reduce():
                found = _stored(self.op, s, e, given, self.namer)
                if found is None:
                    return e
                memory, first, scatter = found
                self.temporaries.append(memory)
                self.new.append(first)
                return scatter
            case Select(cond=cond):
                if not is_invariant(cond):
                    return e
                then = self.value(s, e.then, (*given, cond))
                return replace(e, then=then, other=self.value(s, e.other, (*given, negation(cond))))
            case _:
                return with_children(e, tuple(self.value(s, c, given) for c in children(e)))


def _stored(op: Op, s: Assign, e: Reduce, given: tuple[Expr, ...], namer: Namer) -> tuple[Operand, Assign, Reduce] | None:
    """Return the memory of the terms of a scatter, the statement that computes them, and the scatter of them; None for others."""
    if e.kind != "sum" or not has_reduction(e.body) or free_groups(e):
        return None
    conditions, term = conditions_of(e.body)
    loops: dict[str, DimSpec] = {i: d for i, d in zip(s.indices, op.operand(s.target).dims, strict=True) if isinstance(i, str)}
    plain = all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes)
    if not plain or len(loops) < len(s.indices) or not has_reduction(term):
        return None
    if any(has_reduction(c) or may_refuse(c) for c in conditions):
        return None
    places = dict(named for c in conditions for named in equalities(c) if named[0] in loops and _is_named(named[1], e))
    if not places or any(free_indices(p) & places.keys() for p in places.values()):
        return None
    inside: list[Expr] = []
    for index, position in places.items():
        size = loops[index]
        assert isinstance(size, Affine), "it is the extent of an index"
        inside += [raw("ge", position, ZERO), raw("lt", position, IndexValue(size))]
    moved = [term, *(c for c in conditions if not any(named[0] in places for named in equalities(c)))]
    for index, position in places.items():
        put = [place(x, index, position) for x in moved]
        moved = [x for x in put if x is not None]
        if len(moved) < len(put):
            return None
    term, *others = moved
    asked = frozenset[str]().union(*map(free_indices, conditions))
    # What no condition asks for is summed over in the term.
    inner = tuple(a for a in e.axes if isinstance(a, Axis) and a.index not in asked)
    outer = tuple(a for a in e.axes if a not in inner)
    if inner:
        term = replace(e, axes=inner, body=term)
    chosen = [*given, *inside, *others]
    value: Expr = Select(conjunction(chosen), term, Const(0, Weak.INT), term.type)
    loops.update(e.extents)
    used = [i for i in (*e.extents, *s.indices) if isinstance(i, str) and i not in places and i in free_indices(value)]
    kind = DType.FLOAT64 if isinstance(term.type, Weak) else term.type
    memory = Operand(namer.fresh("term"), kind, tuple(loops[i] for i in used))
    first = Assign(memory.name, tuple(used), value, s.span)
    if any(ReadsInside(replace(op, temporaries=(*op.temporaries, memory))).outside(first)):
        return None
    read = Read(memory.name, bare(tuple(used)), kind)
    body = Select(conjunction(list(conditions)), read, Const(0, Weak.INT), kind)
    return memory, first, replace(e, axes=outer, body=body)


def _is_named(position: Expr, e: Reduce) -> bool:
    """Whether data says a position, for each point of a sum."""
    return any(True for _ in reads(position)) and bool(free_indices(position) & e.extents.keys()) and not may_refuse(position)
