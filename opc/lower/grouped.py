"""Products with matrices that data names, as grouped matrix products.

`u[n, h] = sum[d](x[n, d] * w[e[n], d, h])` multiplies each point n with the matrix of its group e[n], as the experts of a mixture
do. Point by point each matrix is read for each point of its group. With the points in the order of their groups there is a matrix
product for each group; so there is for the gradient of the matrices, `sum[n](x[n, d] * d_u[n, h] if i == e[n] else 0)`.

Statements are rewritten so that `opc.lower.contractions` finds such products in them: what names a group becomes a temporary of
`numbers`, and a product inside another sum a statement of its own. Compare MegaBlocks (Gale et al., 2023) and CUTLASS's grouped
GEMM. This is for a CPU; whether it pays is known when sizes are.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, is_integer
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Expr,
    GroupRef,
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
    walk,
    with_children,
)
from opc.ir.op import Assign, DimSpec, Op
from opc.lower.contractions.contraction import contraction_stage, extract
from opc.lower.contractions.terms import entries, is_invariant, multiplicands
from opc.lower.loop_ir import ContractionStage
from opc.lower.specialise import GroupedSizes
from opc.lower.sum_parts import (
    Loops,
    Rewriting,
    around,
    computed_axes,
    factor_read,
    parts,
    times,
    total,
    under,
    varies,
    with_read,
)
from opc.records import replace
from opc.transform.indices import bare, substitute
from opc.transform.scalar import ZERO, negation, raw


def grouped(op: Op, target: str, given: tuple[Expr, ...] = ()) -> Op | None:
    """Return the op with the products of one statement as grouped ones; None where it has none, or one is no contraction.

    Where it is not `given` that conditions hold, nothing reads what the statement computes, and data may name no matrix.
    """
    found = _Grouping(op, op.assignments[target], given)
    changed = found.changed()
    if changed is None:
        return None
    whole = extract(changed)
    numbers = {o.name for o in whole.temporaries if o.numbers}
    for s in whole.body:
        if has_reduction(s.value) and any(r.operand in numbers for r in reads(s.value)):
            stage = contraction_stage(whole, s, s.target)
            if stage is None or stage.groups is None:
                return None
    return changed


def grouped_sizes(op: Op, stage: ContractionStage) -> GroupedSizes:
    """Return the sizes that tell whether a grouped product pays."""
    groups = stage.groups
    assert groups is not None, "its points are in groups"
    points = op.operand(groups.numbers).sizes
    target = zip(stage.assign.indices, op.operand(stage.assign.target).sizes, strict=True)
    elements = [size for i, size in target if i not in groups.loops and i != groups.batch]
    inner = [a.extent for a in stage.terms[0].axes if isinstance(a, Axis) and a.index not in groups.loops]
    return GroupedSizes(points, groups.count, (*elements, *inner))


class _Grouping(Rewriting):
    """The rewriting of one statement."""

    def __init__(self, op: Op, s: Assign, given: tuple[Expr, ...]) -> None:
        super().__init__(op, s)
        self.given = given
        self.made: dict[tuple[object, ...], str] = {
            self._key(s.value, s.indices, op.operand(s.target).dims): s.target for s in op.body if op.operand(s.target).numbers
        }
        self.found = False

    def changed(self) -> Op | None:
        """Return the op with the statement rewritten."""
        value = self._value(self.statement.value, self.target, False, self.given)
        return self.op_with(value) if self.found else None

    def _value(self, e: Expr, loops: Loops, inside: bool, given: tuple[Expr, ...]) -> Expr:
        """Return a value with its products, where all this holds; it stands inside of another sum or not."""
        match e:
            case _ if not has_reduction(e):
                return e
            case Select(cond=cond):
                if not is_invariant(cond):
                    return e  # data may name no matrix for other points
                then = self._value(e.then, loops, inside, (*given, cond))
                return replace(e, then=then, other=self._value(e.other, loops, inside, (*given, negation(cond))))
            case Reduce():
                return self._reduction(e, loops, inside, given)
            case _:
                return with_children(e, tuple(self._value(c, loops, inside, given) for c in children(e)))

    def _reduction(self, e: Reduce, loops: Loops, inside: bool, given: tuple[Expr, ...]) -> Expr:
        if not all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes):
            return e
        e = replace(e, body=self._value(e.body, around(loops, e), True, given))
        if e.kind != "sum" or has_reduction(e.body):
            return e
        before = self.found, len(self.new), len(self.temporaries), dict(self.made)
        self.found = False
        sums = [self._sum(e, conditions, product, loops, inside, given) for conditions, product in parts(e.body)]
        if not self.found:
            self.found, self.made = before[0], before[3]
            del self.new[before[1] :], self.temporaries[before[2] :]
            return e
        return total(sums, e)

    def _sum(
        self, e: Reduce, conditions: tuple[Expr, ...], product: Expr, loops: Loops, inside: bool, given: tuple[Expr, ...]
    ) -> Expr:
        """Return the sum of one product, under its conditions."""
        invariant = [c for c in conditions if is_invariant(c)]
        others = [c for c in conditions if not is_invariant(c)]
        given = (*given, *invariant)
        if not others:
            value = self._product(e, product, loops, inside, given)
        else:
            found = None if inside else self._in_groups(e, others, product, loops, given)
            value = replace(e, body=under(product, others)) if found is None else found
        return under(value, invariant)

    def _product(self, e: Reduce, product: Expr, loops: Loops, inside: bool, given: tuple[Expr, ...]) -> Expr:
        """Return the sum of a product as it is, or as a grouped one."""
        whole: Expr = replace(e, body=product)
        atoms = list(multiplicands(product))
        every = around(loops, e)
        keyed = [n for n, a in enumerate(atoms) if self._has_matrices(a, e, every)]
        matrices = factor_read(atoms[keyed[0]]) if len(keyed) == 1 and len(atoms) > 1 else None
        if matrices is None or len(computed_axes(matrices)) != 1:
            return whole
        (axis,) = computed_axes(matrices)
        number = self._number(matrices.indices[axis], every, given)
        if number is None or free_groups(matrices) - free_groups(number):
            return whole
        own = set(entries(number))
        inner = tuple(a for a in e.axes if isinstance(a, Axis) and a.index not in own)
        outer = tuple(a for a in e.axes if isinstance(a, Axis) and a.index in own)
        if not inner:
            return whole
        indices = tuple(number if k == axis else i for k, i in enumerate(matrices.indices))
        for n, a in enumerate(atoms):
            if n != keyed[0] and self._has_rows(a, e):
                rows = self.rows(a, every, given)
                if rows is None:
                    return whole
                atoms[n] = rows
        atoms[keyed[0]] = with_read(atoms[keyed[0]], replace(matrices, indices=indices))
        self.found = True
        value: Expr = replace(e, axes=inner, body=times(atoms, product))
        if outer or inside:
            first = [*entries(number), *(i for i in every if i not in own and varies(value, i))]
            value = self.stored("product", under(value, filter(is_invariant, given)), first, every)
        return replace(e, axes=outer, body=value) if outer else value

    def _in_groups(self, e: Reduce, conditions: list[Expr], product: Expr, loops: Loops, given: tuple[Expr, ...]) -> Expr | None:
        """Return the sum of the products of those points that are in the group of a loop of the target; None for other sums.

        Other conditions on points make rows of zeros of both factors: 0 times what else stands there may be no 0.
        """
        every = around(loops, e)
        for n, c in enumerate(conditions):
            named = self._named(c, e, loops)
            if named is None:
                continue
            place, number = named
            count = loops[place]
            assert isinstance(count, Affine), "it is the extent of an index"
            others = conditions[:n] + conditions[n + 1 :]
            if any(varies(c, i) for c in others for i in loops) or any(map(may_refuse, others)):
                return None
            inside = (*given, raw("ge", number, ZERO), raw("lt", number, IndexValue(count)), *others)
            atoms: list[Expr] = []
            for a in multiplicands(product):
                rows = self.rows(a, every, inside) if others or self._has_rows(a, e) else a
                if rows is None:
                    return None
                atoms.append(rows)
            self.found = True
            return replace(e, body=under(times(atoms, product), [raw("eq", IndexValue(Affine.of(Index(place))), number)]))
        return None

    @staticmethod
    def _has_rows(e: Expr, of: Reduce) -> bool:
        """Whether data names what a factor of a sum reads along the sum."""
        read = factor_read(e)
        return read is not None and bool(computed_axes(read) and free_indices(e) & of.extents.keys())

    @staticmethod
    def _has_matrices(e: Expr, of: Reduce, loops: Loops) -> bool:
        """Whether a factor of a sum has a matrix for each of some points: data says which, and it has columns of its own."""
        read = factor_read(e)
        if read is None or not _Grouping._has_rows(e, of):
            return False
        axes = computed_axes(read)
        named = [i for i in loops if any(varies(replace(read, indices=(read.indices[n],)), i) for n in axes)]
        return any(varies(e, i) for i in loops if i not in named and i not in of.extents)

    def _named(self, condition: Expr, e: Reduce, loops: Loops) -> tuple[str, Read] | None:
        """Return the loop of the target in whose group a condition says that a point is, and its group; None for others."""
        match condition:
            case Call(fn="eq", args=(a, b)):
                for place, named in ((a, b), (b, a)):
                    index = place.value.index if isinstance(place, IndexValue) else None
                    if index is None or index not in loops or not free_indices(named) <= e.extents.keys() or free_groups(named):
                        continue
                    number = self._number(named, around({}, e), ())
                    if number is not None:
                        return index, number
        return None

    def _number(self, e: object, loops: Loops, given: tuple[Expr, ...]) -> Read | None:
        """Return a read of the temporary that holds which group points are in: the first one where not all is `given`."""
        if not isinstance(e, Expr) or not is_integer(e.type) or has_reduction(e) or not any(True for _ in reads(e)):
            return None
        optional = {o.name for o in self.op.inputs if o.optional}
        if any(r.operand in optional for r in reads(e)):
            return None
        if any(isinstance(n, Select) or (isinstance(n, Read) and n.pad is not None) for n in walk(e)) or may_refuse(e):
            return None
        groups = free_groups(e)
        used = [i for i in loops if varies(e, i)]
        if not used or len(used) != len(groups) + len(free_indices(e)):
            return None
        if any(varies(c, i) for c in given for i in loops if i not in used):
            return None
        indices = tuple(used)
        dims = tuple(loops[i] for i in used)
        value = under(e if e.type is DType.INT64 else Cast(e, DType.INT64), given)
        key = self._key(value, indices, dims)
        if key not in self.made:
            self.made[key] = self.stored("group", value, indices, loops, numbers=True).operand
        return Read(self.made[key], bare(indices), DType.INT64)

    @staticmethod
    def _key(e: Expr, indices: tuple[str | GroupRef, ...], dims: tuple[DimSpec, ...]) -> tuple[object, ...]:
        places = {i: Affine.of(Index(f"at {n}")) for n, i in enumerate(indices) if isinstance(i, str)}
        return substitute(e, places), tuple((n, i) for n, i in enumerate(indices) if isinstance(i, GroupRef)), dims
