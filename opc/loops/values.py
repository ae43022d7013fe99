"""Values of the loop IR: those of `opc.ir.expr`, in which reads are of variables and of memory.

Integers are int64: affine expressions over the variables in scope (`IndexValue`), and sums of products of these with strides. An
access is a stride map: the element of `x[n, i + p]` lies at `n * x.stride[0] + (i + p) * 1`, whatever the indices are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Acc, DType, ValueType, Weak, candidates, is_floating
from opc.ir.expr import Call, Const, Expr, IndexValue
from opc.ir.expr_nodes import CHILDREN
from opc.ir.node import memoised, remembered
from opc.loops.kinds import Kind, Named, Pointer, ReferenceType, StoredType, type_text
from opc.loops.value_nodes import (
    Address,
    As,
    Axes,
    Block,
    Construct,
    Deref,
    Init,
    Integer,
    IntegerChoice,
    Intrinsic,
    Lambda,
    Load,
    Local,
    Member,
    Product,
    Rank,
    Speculative,
    Static,
    Sum,
    Word,
)

__all__ = [
    "Address",
    "As",
    "Axes",
    "Block",
    "Construct",
    "Deref",
    "Init",
    "Integer",
    "IntegerChoice",
    "Intrinsic",
    "Kind",
    "Lambda",
    "Load",
    "Local",
    "Member",
    "Named",
    "Pointer",
    "Product",
    "Rank",
    "ReferenceType",
    "Speculative",
    "Static",
    "StoredType",
    "Sum",
    "Word",
    "call",
    "compare",
    "computed_as",
    "group_offsets",
    "is_one",
    "number",
    "product_of",
    "ref",
    "sum_of",
    "type_text",
    "variable",
    "variables",
    "zero",
]


@memoised
def number(value: int) -> Expr:
    """Return an integer."""
    return IndexValue(Affine.of(value))


@memoised
def variable(name: str) -> Expr:
    """Return the value of an integer variable."""
    return IndexValue(Affine.of(Index(name)))


def sum_of(terms: Iterable[Expr]) -> Expr:
    """Return the sum of integers, without the literal 0 among them."""
    found = tuple(t for t in terms if not (isinstance(t, IndexValue) and t.value.constant == 0))
    return found[0] if len(found) == 1 else Sum(found) if found else number(0)


def product_of(index: Expr, stride: Expr | None) -> Expr:
    """Return an index times a stride; None is the stride 1."""
    return index if stride is None else stride if is_one(index) else Product((index, stride))


def is_one(e: Expr) -> bool:
    """Whether an integer is 1."""
    return isinstance(e, IndexValue) and e.value.constant == 1


def call(name: str, *args: Expr, type: ValueType = Weak.INT, types: tuple[Any, ...] = ()) -> Intrinsic:
    """Return the call of an intrinsic."""
    return Intrinsic(name, args, type, types)


def compare(fn: str, a: Expr, b: Expr) -> Expr:
    """Return the comparison of two integers."""
    return Call(fn, (_literal(a), _literal(b)), DType.BOOL)


def _literal(e: Expr) -> Expr:
    known = e.value.constant if isinstance(e, IndexValue) else None
    return e if known is None else Const(known, Weak.INT)


def ref(name: str) -> Local:
    """Return a variable as an argument of an intrinsic that takes it whole: an array, a struct, a function."""
    return Local(name, Weak.INT)


def zero(t: ValueType) -> Expr:
    """Return 0 in a type."""
    return Const(0, t)


@remembered("_variables", blank=True)
def variables(e: Expr) -> tuple[str, ...]:
    """Return the variables that a value uses, indices among them, in the order in which they stand."""
    below = CHILDREN[e.__class__](e)
    if not below:
        return (e.name,) if isinstance(e, Local) else tuple(sorted(e.value.indices())) if isinstance(e, IndexValue) else ()
    own = (e.name,) if isinstance(e, Local) else ()
    return tuple(dict.fromkeys([*own, *[v for c in below for v in variables(c)]]))


@remembered("_offsets", blank=True)
def group_offsets(e: Expr) -> tuple[Intrinsic, ...]:
    """Return the offsets of places in axis groups that a value uses, as often as they stand in it, those around others first."""
    parts = CHILDREN[e.__class__](e)
    if not parts:
        return ()
    below = [offset for c in parts for offset in group_offsets(c)]
    return (e, *below) if isinstance(e, Intrinsic) and e.name == "group_offset" else tuple(below)


def computed_as(t: ValueType) -> ValueType:
    """Return the type that values of a type are computed in; two types are computed alike where these are equal."""
    match t:
        case DType():
            return t.compute
        case Acc(of=DType() as of):
            return of.accumulator
        case Acc(of=of) if is_floating(of):
            return of
        case Acc(of=of) if not any(d.is_floating for d in candidates(of)):
            return DType.INT64
        case Weak.INT:
            return DType.INT64
        case Weak.FLOAT:
            return DType.FLOAT64
        case _:
            return t
