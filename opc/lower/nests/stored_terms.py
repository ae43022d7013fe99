"""Scatters whose terms hold reductions: the terms are stored, and the scatter adds them up.

`y[v] = sum[e](exp(sum[o](a[s[e], o] * b[v, o])) if t[e] == v else 0)` has one term for each e. A pass over the terms that has
loops in it is no scatter, and going through all terms for each v takes their product.

    term[e] = exp(sum[o](a[s[e], o] * b[t[e], o])) if 0 <= t[e] and t[e] < V else 0
    y[v] = sum[e](term[e] if t[e] == v else 0)
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine
from opc.ir.dtypes import Weak
from opc.ir.expr import (
    Axis,
    Const,
    Expr,
    GroupRef,
    IndexValue,
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
from opc.ir.op import Op
from opc.lower.contractions.terms import is_invariant
from opc.lower.nests.scatter import equalities, place
from opc.lower.nests.terms import conditions_of
from opc.lower.sum_parts import Rewriting, around, varies
from opc.records import replace
from opc.transform.scalar import ZERO, negation, raw


def with_stored_terms(op: Op) -> Op:
    """Return the op with the terms of such scatters as temporaries."""
    for s in op.body:
        found = _Terms(op, s)
        value = found.value(s.value, ())
        op = found.op_with(value) if found.new else op
    return op


class _Terms(Rewriting):
    """The rewriting of one statement."""

    def value(self, e: Expr, given: tuple[Expr, ...]) -> Expr:
        """Return a value with its scatters, in calls in which all this holds."""
        match e:
            case _ if not has_reduction(e):
                return e
            case Reduce():
                return self._scatter(e, given) or e
            case Select(cond=cond):
                if not is_invariant(cond):
                    return e
                then = self.value(e.then, (*given, cond))
                return replace(e, then=then, other=self.value(e.other, (*given, negation(cond))))
            case _:
                return with_children(e, tuple(self.value(c, given) for c in children(e)))

    def _scatter(self, e: Reduce, given: tuple[Expr, ...]) -> Reduce | None:
        """Return a scatter of stored terms, None for other reductions."""
        if e.kind != "sum" or not has_reduction(e.body) or free_groups(e) or any(isinstance(i, GroupRef) for i in self.target):
            return None
        conditions, term = conditions_of(e.body)
        if not has_reduction(term) or any(has_reduction(c) or may_refuse(c) for c in conditions):
            return None
        if not all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes):
            return None
        places: dict[str, Expr] = {}
        others: list[Expr] = []
        for c in conditions:
            named = next((p for p in equalities(c) if p[0] in self.target and p[0] not in places and _is_named(p[1], e)), None)
            if named is None:
                others.append(c)
            else:
                places[named[0]] = named[1]
        if not places or any(free_indices(p) & places.keys() for p in places.values()):
            return None
        inside: list[Expr] = []
        for index, position in places.items():
            size = self.target[index]
            assert isinstance(size, Affine), "it is the extent of an index"
            inside += [raw("ge", position, ZERO), raw("lt", position, IndexValue(size))]
        moved = self._at(places, [term, *others])
        if moved is None:
            return None
        term, *others = moved
        asked = frozenset[str]().union(*map(free_indices, conditions))
        # What no condition asks for is summed over in the term.
        inner = tuple(a for a in e.axes if isinstance(a, Axis) and a.index not in asked)
        outer = tuple(a for a in e.axes if a not in inner)
        if inner:
            term = replace(e, axes=inner, body=term)
        chosen = [*given, *inside, *others]
        value = Select(conjunction(chosen), term, Const(0, Weak.INT), term.type)
        loops = around(self.target, e)
        own = [i for i in (*e.extents, *self.target) if i not in places and varies(value, i)]
        read = self.stored("term", value, own, loops)
        if any(ReadsInside(replace(self.op, temporaries=(*self.op.temporaries, *self.temporaries))).outside(self.new[-1])):
            self.new.pop()
            self.temporaries.pop()
            return None
        return replace(e, axes=outer, body=Select(conjunction(list(conditions)), read, Const(0, Weak.INT), read.type))

    @staticmethod
    def _at(places: Mapping[str, Expr], values: list[Expr]) -> list[Expr] | None:
        """Return values with expressions for indices, None where one stands with others."""
        for index, position in places.items():
            put = [place(x, index, position) for x in values]
            values = [x for x in put if x is not None]
            if len(values) < len(put):
                return None
        return values


def _is_named(position: Expr, e: Reduce) -> bool:
    """Whether data says a position, for each point of a sum."""
    return any(True for _ in reads(position)) and bool(free_indices(position) & e.extents.keys()) and not may_refuse(position)
