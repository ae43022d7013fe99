"""What a statement reduces that is made anew: values of rows and columns, of sums of products at these.

See `opc.lower.cuda.rematerialise` for which statements do.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.dtypes import DType, TypeVar, is_floating
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    children,
    free_indices,
    free_names,
    outermost,
    reads,
    walk,
)
from opc.ir.op import Op
from opc.lower.cuda.products import steps_of, stored_alike
from opc.lower.cuda.weigh import Needed, are_halves, kinds_of, needed_where
from opc.lower.loop_ir import NestStage
from opc.lower.nests.flat import is_positive
from opc.records import dataclass
from opc.transform.normalize import placed

MOST_PRODUCTS = 2
"""Of how many sums of products a value is made at most."""

_MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class Rematerialised:
    """A reduction over columns of values that are made of sums of products.

    `row` and `across` are entries of the target, `batch` the others; `column` is the index of the reduction that goes over
    columns, and `others` are its other axes. `value` is what is made at a row and a column, of `products` whose `factors` are
    those of rows and of columns. `weighed` is what values are multiplied with, None where they are reduced alone.
    """

    reduction: Reduce
    value: Expr
    products: tuple[Reduce, ...]
    factors: tuple[tuple[Read, Read], ...]
    weighed: Read | None
    column: Axis
    others: tuple[ReduceAxis, ...]
    batch: tuple[int, ...]
    row: int
    across: int | None
    stored: TypeVar | DType | None
    """The type of the elements of inputs or outputs that the factors and what is weighed are, where it is one."""
    needed: Needed | None

    @property
    def scaled(self) -> tuple[Call, ...]:
        """What stands for sums of products wherever they stand in the value: their quotients, or products with an element."""
        found: list[Call] = []
        for p in self.products:
            around = [e for e in walk(self.value) if p in children(e)]
            calls = [e for e in dict.fromkeys(around) if isinstance(e, Call) and e.args[0] == p and _is_scale(e)]
            found += calls if len(calls) == len({*around}) else ()
        return tuple(found)

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which of the shapes of the runtime's `shape_of_weights` stand for each: others would be the same function."""
        # Elements across make no difference to what is reduced alone.
        shapes = self.weighed is not None or are_halves(self.stored, dtypes)
        return kinds_of(self.stored, self.reduction.type, dtypes) if shapes else (0, 0, 0)

    def term(self, n: int) -> Axis:
        """The axis of the terms of a sum of products."""
        (axis,) = self.products[n].axes
        assert isinstance(axis, Axis), "it is one index"
        return axis


def rematerialised_of(op: Op, stage: NestStage) -> Rematerialised | None:
    """Return the reduction of values made anew that a statement computes, None where it does anything else."""
    found = [*dict.fromkeys(outermost(stage.assign.value))]
    if len(found) != 1 or found[0].kind not in ("sum", "max") or not is_floating(found[0].type) or stage.plans:
        return None
    (e,) = found
    products = tuple(dict.fromkeys(r for r in walk(e.body) if isinstance(r, Reduce)))
    if not 0 < len(products) <= MOST_PRODUCTS or len({e.type, stage.assign.value.type, *(p.type for p in products)}) != 1:
        return None
    own = [i.name if isinstance(i, GroupRef) else i for i in stage.assign.indices]
    # Of several the last ones: neighbours lie together there.
    for column in reversed(e.axes):
        if not isinstance(column, Axis) or any(isinstance(a, Axis) and a.extent.indices() for a in e.axes):
            continue
        for row, entry in reversed([*enumerate(stage.assign.indices)]):
            if isinstance(entry, str) and (factors := _factors(op, products, entry, column.index)) is not None:
                value, weighed, across = _weighed(e, own, row, column.index)
                others = tuple(a for a in e.axes if a != column)
                batch = tuple(n for n in range(len(own)) if n not in (row, across))
                stored = _stored(op, factors, weighed)
                needed = _needed(op, e.kind, value, weighed, entry, column.index)
                return _checked(
                    op,
                    stage,
                    Rematerialised(e, value, products, factors, weighed, column, others, batch, row, across, stored, needed),
                )
    return None


def _is_scale(e: Call) -> bool:
    return e.fn == "div" or (e.fn == "mul" and isinstance(e.args[1], Read))


def _checked(op: Op, stage: NestStage, found: Rematerialised) -> Rematerialised | None:
    """Return what has been found if tiles can make it."""
    extents = [found.column.extent, *(found.term(n).extent for n in range(len(found.products)))]
    if any(x.indices() for x in extents) or any(r.pad is not None or r.checked or not placed(r) for r in reads(found.value)):
        return None
    if found.weighed is None:
        return found if not found.others and (found.reduction.kind == "sum" or is_positive(op, extents[0])) else None
    if found.across is None or found.reduction.kind != "sum":
        return None
    across = stage.assign.indices[found.across]
    names = {str(across), found.column.index}
    return found if isinstance(across, str) and steps_of(op, found.weighed, names) is not None else None


def _factors(op: Op, products: tuple[Reduce, ...], row: str, column: str) -> tuple[tuple[Read, Read], ...] | None:
    """Return the factors of sums of products, those of rows first, None where one is no such sum."""
    found: list[tuple[Read, Read]] = []
    for p in products:
        match p:
            case Reduce(kind="sum", axes=(Axis(index=term),), body=Call(fn="mul", args=(Read() as a, Read() as b))):
                left, right = (a, b) if row in free_indices(a) else (b, a)
                if column in free_indices(left) or row in free_indices(right):
                    return None
                steps = steps_of(op, left, (row, term)), steps_of(op, right, (column, term))
                if any(s is None or len(s) != 2 for s in steps):
                    return None
                found.append((left, right))
            case _:
                return None
    return tuple(found)


def _weighed(e: Reduce, own: list[str], row: int, column: str) -> tuple[Expr, Read | None, int | None]:
    """Return what is made at a row and a column, what it is multiplied with, and which entry of the target only that has."""
    match e.body:
        case Call(fn="mul", args=(a, b)):
            for value, other in ((a, b), (b, a)):
                if not isinstance(other, Read) or any(isinstance(r, Reduce) for r in walk(other)):
                    continue
                names = free_names(other) - free_names(value)
                across = [n for n, name in enumerate(own) if name in names]
                if len(across) == 1 and column in free_names(other) and own[row] not in free_names(other):
                    return value, other, across[0]
    return e.body, None, None


def _stored(op: Op, factors: tuple[tuple[Read, Read], ...], weighed: Read | None) -> TypeVar | DType | None:
    first, *rest = [f for pair in factors for f in pair] + ([] if weighed is None else [weighed])
    found = {stored_alike(op, first, f) for f in rest}
    return found.pop() if len(found) == 1 else None


def _needed(op: Op, kind: str, value: Expr, weighed: Read | None, row: str, column: str) -> Needed | None:
    """Return which columns a condition leaves in a row: where it drops a value, that is nothing to the reduction.

    0 times what is weighed is 0 where that is finite, which is looked for when the op runs.
    """
    found = _dropped(value, _MINUS_INFINITY if kind == "max" else 0.0)
    if found is None:
        return None
    finite = (*found[1], *((weighed,) if weighed is not None else ()))
    # What a row's values have in common makes all of them no numbers, or none.
    names = dict.fromkeys(r.operand for r in finite if r is weighed or column in free_indices(r))
    if any(i.optional and i.name in names for i in op.inputs):
        return None
    return needed_where(found[0], row, column, tuple(names))


def _dropped(e: Expr, nothing: float) -> tuple[Expr, tuple[Read, ...]] | None:
    """Return the condition without which a value is `nothing`, if what some elements are made of is finite."""
    match e:
        case Select(cond=cond, other=Const(value=value)) if value == nothing:
            return cond, ()
        case Call(fn="exp", args=(Call(fn="sub", args=(score, shift)),)) if nothing == 0:
            found = _dropped(score, _MINUS_INFINITY)
            return None if found is None else (found[0], (*found[1], *reads(shift)))
        case Call(fn="div" | "mul", args=(a, b)) if nothing == 0 and (found := _dropped(a, nothing)) is not None:
            return found[0], (*found[1], *reads(b))
    return None
