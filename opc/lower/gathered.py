"""Matrix products of rows that data names.

`y[j, o] = sum[d](x[i[j], d] * w[d, o])` is a matrix product once the rows x[i[j], d] stand together; and the gradient of x,
`sum[j, o](d_y[j, o] * w[d, o] if k == i[j] else 0)`, adds up the rows of one, sum[o](d_y[j, o] * w[d, o]). Layers of graph
networks are of this kind, which gather, multiply and scatter.

Statements are rewritten so that `opc.lower.contractions` finds such products in them: the rows become a temporary. What that
costs is made good where each is multiplied with many columns, which is known when sizes are; this is for a CPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from opc.analysis.bounds.inside import ReadsInside
from opc.ir.affine import Affine
from opc.ir.expr import (
    Axis,
    Expr,
    IndexValue,
    Reduce,
    Select,
    children,
    free_groups,
    free_indices,
    has_reduction,
    reads,
    with_children,
)
from opc.ir.op import Assign, Op, size_of
from opc.lower.contractions.contraction import contraction_stage, extract
from opc.lower.contractions.terms import is_invariant, multiplicands
from opc.lower.grouped import grouped
from opc.lower.nests.scatter import equalities
from opc.lower.specialise import RowSizes
from opc.lower.sum_parts import (
    Loop,
    Loops,
    Rewriting,
    around,
    computed_axes,
    factor_read,
    in_order,
    parts,
    times,
    total,
    under,
    varies,
)
from opc.records import replace
from opc.transform.scalar import ZERO, negation, raw


def gathered(op: Op, target: str) -> tuple[Op, tuple[RowSizes, ...]] | None:
    """Return the op with the products of one statement as those of rows that stand together, and the sizes that tell whether that
    pays; None where it has none, or where one is no contraction."""
    found = _Gathering(op, op.assignments[target])
    changed = found.changed()
    if changed is None:
        return None
    for product, given in found.products.items():
        changed = grouped(changed, product, given) or changed
    whole = extract(changed)
    inside = ReadsInside(whole)
    for s in whole.body:
        is_product = has_reduction(s.value) and (
            s.target in found.products or any(r.operand in found.gathered for r in reads(s.value))
        )
        if is_product and contraction_stage(whole, s, s.target) is None:
            return None
        if s.target in found.products and any(inside.outside(s)):
            return None
    return changed, tuple(found.sizes)


class _Gathering(Rewriting):
    """The rewriting of one statement."""

    def __init__(self, op: Op, s: Assign) -> None:
        super().__init__(op, s)
        self.gathered: set[str] = set()
        self.products: dict[str, tuple[Expr, ...]] = {}
        """Those that a scatter adds up, with the conditions without which nothing reads them."""
        self.sizes: list[RowSizes] = []

    def changed(self) -> Op | None:
        """Return the op with the statement rewritten."""
        value = self._value(self.statement.value, ())
        return self.op_with(value) if self.new else None

    def _value(self, e: Expr, given: tuple[Expr, ...]) -> Expr:
        """Return a value with its products, in calls in which all this holds."""
        match e:
            case _ if not has_reduction(e):
                return e
            case Select(cond=cond):
                if not is_invariant(cond):
                    return e  # what is read then may not be read for all points
                other = self._value(e.other, (*given, negation(cond)))
                return replace(e, then=self._value(e.then, (*given, cond)), other=other)
            case Reduce():
                plain = all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes)
                if e.kind != "sum" or not plain or has_reduction(e.body):
                    return e
                before = len(self.new)
                found = total([self._sum(e, conditions, product, given) for conditions, product in parts(e.body)], e)
                return found if len(self.new) > before else e
            case _:
                return with_children(e, tuple(self._value(c, given) for c in children(e)))

    def _sum(self, e: Reduce, conditions: tuple[Expr, ...], product: Expr, given: tuple[Expr, ...]) -> Expr:
        """Return the sum of one product, under its conditions."""
        invariant = [c for c in conditions if is_invariant(c)]
        others = [c for c in conditions if not is_invariant(c)]
        given = (*given, *invariant)
        value = self._scattered(e, others, product, given) if others else self._gathered(e, product, given)
        if value is None:
            value = replace(e, body=under(product, others))
        return under(value, invariant)

    def _gathered(self, e: Reduce, product: Expr, given: tuple[Expr, ...]) -> Expr | None:
        """Return the sum of a product in which rows that data names come from temporaries."""
        loops = around(self.target, e)
        atoms = list(multiplicands(product))
        before = len(self.new)
        for n, a in enumerate(atoms):
            read = factor_read(a)
            if read is None or not computed_axes(read):
                continue
            own = in_order(read, loops)
            columns = [i for i in self.target if i not in own]
            if not columns or not set(own) & e.extents.keys() or not set(own) & self.target.keys():
                continue
            rows = self.rows(a, loops, given)
            if rows is not None:
                atoms[n] = rows
                self.gathered.add(rows.operand)
                self._pays(columns, own, loops)
        return replace(e, body=times(atoms, product)) if len(self.new) > before else None

    def _scattered(self, e: Reduce, conditions: list[Expr], product: Expr, given: tuple[Expr, ...]) -> Expr | None:
        """Return the sum of a product whose conditions ask for some of what is summed over alone, as the sum of what it is along
        the rest."""
        asked = {i for c in conditions for i in free_indices(c)}
        outer = tuple(a for a in e.axes if isinstance(a, Axis) and a.index in asked)
        inner = tuple(a for a in e.axes if isinstance(a, Axis) and a.index not in asked)
        named = {i for i in self.target if i in asked}
        groups = any(free_groups(c) for c in conditions)
        if not outer or not inner or groups or not named or any(varies(product, i) for i in named):
            return None
        loops = around(self.target, e)
        # What is added nowhere is not read.
        given = (*given, *self._added(conditions, named))
        atoms = list(multiplicands(product))
        for n, a in enumerate(atoms):
            read = factor_read(a)
            if read is None or not computed_axes(read) or any(varies(a, i) for i in self.target):
                continue  # of matrices that data names, see `grouped`
            rows = self.rows(a, loops, given)
            if rows is None:
                return None
            atoms[n] = rows
            self.gathered.add(rows.operand)
        own = [i for i in (*(a.index for a in outer), *self.target) if varies(product, i)]
        self._pays([a.index for a in inner], own, loops)
        read = self.stored("product", replace(e, axes=inner, body=times(atoms, product)), own, loops)
        self.products[read.operand] = given
        return replace(e, axes=outer, body=under(read, conditions))

    def _added(self, conditions: list[Expr], named: Collection[str]) -> Iterator[Expr]:
        """Yield what conditions say of each term that they add somewhere, as far as it can be said without the place."""
        for c in conditions:
            if not any(varies(c, i) for i in named):
                yield c
            for index, position in equalities(c):
                size = self.target.get(index)
                if isinstance(size, Affine) and not any(varies(position, i) for i in named):
                    yield raw("ge", position, ZERO)
                    yield raw("lt", position, IndexValue(size))

    def _pays(self, again: Sequence[Loop], own: Sequence[Loop], loops: Loops) -> None:
        """Add the sizes that tell whether elements along their `own` loops are used again often enough."""
        self.sizes.append(RowSizes(tuple(size_of(loops[i]) for i in again), tuple(size_of(loops[i]) for i in own)))
