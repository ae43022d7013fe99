"""Products with matrices that data names, as grouped matrix products.

`u[n, h] = sum[d](x[n, d] * w[e[n], d, h])` multiplies each point n with the matrix of its group e[n], as the experts of a mixture
do. Point by point each matrix is read for each point of its group. With the points in the order of their groups there is a matrix
product for each group; so there is for the gradient of the matrices, `sum[n](x[n, d] * d_u[n, h] if i == e[n] else 0)`.

Statements are rewritten so that `opc.lower.contractions` finds such products in them: what names a group becomes a temporary of
`numbers`, and a product inside another sum a statement of its own. Compare MegaBlocks (Gale et al., 2023) and CUTLASS's grouped
GEMM. This is for a CPU; whether it pays is known when sizes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak, is_integer
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    free_groups,
    free_indices,
    has_reduction,
    may_refuse,
    reads,
    walk,
    with_children,
)
from opc.ir.op import Assign, DimSpec, Op, Operand
from opc.loops.schedule import Decisions, active
from opc.lower.contractions.contraction import contraction_stage, extract
from opc.lower.contractions.terms import entries, is_invariant, multiplicands
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import ContractionStage, NestStage, RowStage, Stage
from opc.lower.lower import SpecialisedProgram, staged
from opc.lower.specialise import GroupedSizes
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names, substitute

Loops: TypeAlias = "dict[str | GroupRef, DimSpec]"
"""The loops around a value, outermost first, with their extents."""


def with_grouped_products(variant: SpecialisedProgram) -> SpecialisedProgram | None:
    """Return the program for calls in which its products with matrices that data names pay as grouped ones; None where there are
    none, or where blocks of rows or steps go through all stages."""
    program = variant.program
    if program.fused is not None or program.steps or not runs_often(variant.case.op):
        return None
    op = variant.case.op
    for stage in program.stages:
        if isinstance(stage, NestStage) and stage.sum is None and has_reduction(stage.assign.value):
            op = _rewritten(op, stage.assign.target) or op
    decisions = Decisions(op.name, active())
    if op is variant.case.op or not decisions.take("group"):
        return None
    found = staged(variant, extract(op))
    sizes = dict.fromkeys(_sizes(found.case.op, s) for s in found.program.stages if isinstance(s, ContractionStage) and s.groups)
    case = replace(found.case, grouped=tuple(sizes))
    stages = tuple(_renamed(s, f"{s.name}{case.suffix.removeprefix(found.case.suffix)}") for s in found.program.stages)
    return replace(found, case=case, program=replace(found.program, stages=stages, schedule=decisions.schedule))


def _rewritten(op: Op, target: str) -> Op | None:
    """Return the op with the products of one statement as grouped ones; None where it has none, or one is no contraction."""
    found = _Grouping(op)
    changed = found.op_with(op.assignments[target])
    if changed is None:
        return None
    whole = extract(changed)
    numbers = {o.name for o in whole.temporaries if o.numbers}
    for s in whole.body:
        if any(r.operand in numbers for r in reads(s.value)):
            stage = contraction_stage(whole, s, s.target)
            if stage is None or stage.groups is None:
                return None
    return changed


def _sizes(op: Op, stage: ContractionStage) -> GroupedSizes:
    groups = stage.groups
    assert groups is not None, "its points are in groups"
    points = op.operand(groups.numbers).sizes
    target = zip(stage.assign.indices, op.operand(stage.assign.target).sizes, strict=True)
    elements = [size for i, size in target if i not in groups.loops and i != groups.batch]
    inner = [a.extent for a in stage.terms[0].axes if isinstance(a, Axis) and a.index not in groups.loops]
    return GroupedSizes(points, groups.count, (*elements, *inner))


class _Grouping:
    """The rewriting of one statement."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.namer = Namer(op_names(op) | index_names(op))
        self.made: dict[tuple[object, ...], str] = {
            self._key(s.value, s.indices, op.operand(s.target).dims): s.target for s in op.body if op.operand(s.target).numbers
        }
        self.new: list[Assign] = []
        self.temporaries: list[Operand] = []
        self.found = False

    def op_with(self, s: Assign) -> Op | None:
        """Return the op with this statement rewritten."""
        self.span = s.span
        loops: Loops = dict(zip(s.indices, self.op.operand(s.target).dims, strict=True))
        value = self._value(s.value, loops, False)
        if not self.found:
            return None
        body = tuple(new for old in self.op.body for new in ((*self.new, replace(s, value=value)) if old is s else (old,)))
        return replace(self.op, body=body, temporaries=(*self.op.temporaries, *self.temporaries))

    def _value(self, e: Expr, loops: Loops, inside: bool) -> Expr:
        """Return a value with its products; it stands inside of another sum or not."""
        if not has_reduction(e):
            return e
        if not isinstance(e, Reduce):
            return with_children(e, tuple(self._value(c, loops, inside) for c in children(e)))
        if not all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes):
            return e
        around: Loops = _around(loops, e)
        e = replace(e, body=self._value(e.body, around, True))
        if e.kind != "sum" or has_reduction(e.body):
            return e
        parts = list(_parts(e.body, ()))
        before = self.found, len(self.new), len(self.temporaries), dict(self.made)
        self.found = False
        sums = [self._sum(e, conditions, product, loops, inside) for conditions, product in parts]
        if not self.found:
            self.found, self.made = before[0], before[3]
            del self.new[before[1] :], self.temporaries[before[2] :]
            return e
        total = sums[0]
        for other in sums[1:]:
            total = Call("add", (total, other), e.type)
        return total

    def _sum(self, e: Reduce, conditions: tuple[Expr, ...], product: Expr, loops: Loops, inside: bool) -> Expr:
        """Return the sum of one product, under its conditions."""
        invariant = [c for c in conditions if is_invariant(c)]
        others = [c for c in conditions if not is_invariant(c)]
        value = self._product(e, others, product, loops, inside)
        for c in invariant:
            value = Select(c, value, Const(0, Weak.INT), e.type)
        return value

    def _product(self, e: Reduce, conditions: list[Expr], product: Expr, loops: Loops, inside: bool) -> Expr:
        """Return the sum of a product as it is, or as a grouped one."""
        if conditions:
            named = self._named(conditions, e, loops)
            if named is not None and not inside:
                self.found = True
                return replace(e, body=Select(named, product, Const(0, Weak.INT), product.type))
            whole = product
            for c in reversed(conditions):
                whole = Select(c, whole, Const(0, Weak.INT), product.type)
            return replace(e, body=whole)
        whole = replace(e, body=product)
        atoms = list(multiplicands(product))
        summed = e.extents.keys()
        keyed = [n for n, a in enumerate(atoms) if (r := _read(a)) is not None and _computed(r) and free_indices(a) & summed]
        matrices = _read(atoms[keyed[0]]) if len(keyed) == 1 and len(atoms) > 1 else None
        if matrices is None or len(_computed(matrices)) != 1:
            return whole
        (axis,) = _computed(matrices)
        around = _around(loops, e)
        number = self._number(matrices.indices[axis], around)
        if number is None or free_groups(matrices) - free_groups(number):
            return whole
        own = set(entries(number))
        inner = tuple(a for a in e.axes if isinstance(a, Axis) and a.index not in own)
        outer = tuple(a for a in e.axes if isinstance(a, Axis) and a.index in own)
        if not inner:
            return whole
        indices = tuple(number if k == axis else i for k, i in enumerate(matrices.indices))
        atoms[keyed[0]] = _with_read(atoms[keyed[0]], replace(matrices, indices=indices))
        under = {a.index for a in inner}
        # What does not change along the sum stands before it.
        rest = [a for a in atoms if not free_indices(a) & under]
        self.found = True
        value: Expr = replace(e, axes=inner, body=_times([a for a in atoms if a not in rest], product))
        if outer or inside:
            value = self._stored(value, number, around)
        value = _times([*rest, value], product)
        return replace(e, axes=outer, body=value) if outer else value

    def _named(self, conditions: list[Expr], e: Reduce, loops: Loops) -> Expr | None:
        """Return the condition that a point is in the group of a loop of the target, None where conditions are others."""
        match conditions:
            case [Call(fn="eq", args=(a, b))]:
                for place, named in ((a, b), (b, a)):
                    index = place.value.index if isinstance(place, IndexValue) else None
                    if index is None or index not in loops or not free_indices(named) <= e.extents.keys() or free_groups(named):
                        continue
                    number = self._number(named, _around({}, e))
                    if number is not None:
                        return Call("eq", (place, number), DType.BOOL)
        return None

    def _number(self, e: object, loops: Loops) -> Read | None:
        """Return a read of the temporary that holds which group points are in."""
        if not isinstance(e, Expr) or not is_integer(e.type) or has_reduction(e) or not any(True for _ in reads(e)):
            return None
        if any(isinstance(n, Select) or (isinstance(n, Read) and n.pad is not None) for n in walk(e)) or may_refuse(e):
            return None
        groups = free_groups(e)
        used = [i for i in loops if (i.name in groups if isinstance(i, GroupRef) else i in free_indices(e))]
        if not used or len(used) != len(groups) + len(free_indices(e)):
            return None
        indices = tuple(used)
        dims = tuple(loops[i] for i in used)
        value = e if e.type is DType.INT64 else Cast(e, DType.INT64)
        key = self._key(value, indices, dims)
        if key not in self.made:
            name = self.made[key] = self.namer.fresh("group")
            self.temporaries.append(Operand(name, DType.INT64, dims, numbers=True))
            self.new.append(Assign(name, indices, value, self.span))
        return Read(self.made[key], bare(indices), DType.INT64)

    @staticmethod
    def _key(e: Expr, indices: tuple[str | GroupRef, ...], dims: tuple[DimSpec, ...]) -> tuple[object, ...]:
        places = {i: Affine.of(Index(f"at {n}")) for n, i in enumerate(indices) if isinstance(i, str)}
        return substitute(e, places), tuple((n, i) for n, i in enumerate(indices) if isinstance(i, GroupRef)), dims

    def _stored(self, value: Expr, number: Read, loops: Loops) -> Read:
        """Return a read of a temporary that holds a product, the loops of its points first."""
        own = entries(number)
        groups = free_groups(value)
        rest = [i for i in loops if i not in own and (i.name in groups if isinstance(i, GroupRef) else i in free_indices(value))]
        indices = (*own, *rest)
        kind = DType.FLOAT64 if isinstance(value.type, Weak) else value.type
        name = self.namer.fresh("product")
        self.temporaries.append(Operand(name, kind, tuple(loops[i] for i in indices)))
        self.new.append(Assign(name, indices, value, self.span))
        return Read(name, bare(indices), kind)


def _parts(e: Expr, conditions: tuple[Expr, ...]) -> Iterator[tuple[tuple[Expr, ...], Expr]]:
    """Yield what a sum adds up, each with its conditions."""
    match e:
        case Call(fn="add", args=(a, b)):
            yield from _parts(a, conditions)
            yield from _parts(b, conditions)
        case Select(other=Const(value=0)):
            yield from _parts(e.then, (*conditions, *conjuncts(e.cond)))
        case _:
            yield conditions, e


def _around(loops: Loops, e: Reduce) -> Loops:
    """Return the loops around the body of a reduction."""
    found = dict(loops)
    found.update(e.extents)
    return found


def _computed(e: Read) -> tuple[int, ...]:
    """Return the axes of a read whose places are data."""
    return tuple(n for n, i in enumerate(e.indices) if not isinstance(i, Affine | GroupRef))


def _read(e: Expr) -> Read | None:
    """Return the read that a factor is, converted or not; None for others, and for one that is padded."""
    while isinstance(e, Cast):
        e = e.arg
    return e if isinstance(e, Read) and e.pad is None else None


def _with_read(e: Expr, read: Read) -> Expr:
    """Return a factor with another read in it."""
    return replace(e, arg=_with_read(e.arg, read)) if isinstance(e, Cast) else read


def _times(factors: list[Expr], product: Expr) -> Expr:
    """Return the product of some factors, of the type of `product`."""
    found = factors[0]
    for other in factors[1:]:
        found = Call("mul", (found, other), product.type)
    return found


def _renamed(stage: Stage, name: str) -> Stage:
    if isinstance(stage, ContractionStage):
        return replace(stage, name=name, epilogue=replace(stage.epilogue, name=name))
    if isinstance(stage, RowStage) and stage.once is not None:
        return replace(stage, name=name, once=replace(stage.once, name=f"{name}_once"))
    return replace(stage, name=name)
