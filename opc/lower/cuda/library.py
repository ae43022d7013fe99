"""Sums of products that a library may make: products of matrices, whose elements are taken as they are stored, and to whose
rows at most a vector is added. Whether it makes them is found by each call, from where elements lie."""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import Weak
from opc.ir.expr import Call, Const, Expr, GroupRef, Present, Read, Select
from opc.ir.op import Family, Op
from opc.lower.cuda.products import Products, steps_of
from opc.lower.loop_ir import NestStage
from opc.records import dataclass

LIBRARY = "cuBLASLt"
"""The library, as a schedule names it."""


@dataclass(frozen=True, slots=True)
class LibraryProduct:
    """What a library multiplies, and the vector that it adds to each row, if there is one."""

    factors: tuple[Read, Read]
    bias: Read | None


def library_product_of(op: Op, stage: NestStage, products: Products) -> LibraryProduct | None:
    """Return the product of matrices that a statement is; None where it is more than that, or less."""
    left, right = products.factors
    if not isinstance(left, Read) or not isinstance(right, Read):
        return None
    if products.split is not None or products.computed or products.gathered or products.guarded:
        return None
    if any(found is None or len(found) < len(f.indices) for f in (left, right) for found in (places_in(op, stage, products, f),)):
        return None
    value = stage.assign.value
    if value == products.sum:
        return LibraryProduct((left, right), None)
    match value:
        case Call(fn="add", args=(a, b)) if products.sum in (a, b):
            bias = _bias(op, stage, products, b if a == products.sum else a)
            return None if bias is None else LibraryProduct((left, right), bias)
    return None


def ops_with_library(family: Family) -> tuple[Op, ...]:
    """Return the ops of a family of whose products a library may make some."""
    from opc.lower.cuda.kernels import cuda_kernel
    from opc.lower.cuda.stages import device_programs

    def may_call(op: Op) -> bool:
        variants = device_programs(op)
        return any(cuda_kernel(v.case.op, s).schedule.args("library") for v in variants for s in v.program.stages)

    return tuple(op for op in family.ops if not op.opaque and may_call(op))


def places_in(op: Op, stage: NestStage, products: Products, factor: Read) -> dict[str, int] | None:
    """Return which entry of a factor each index and group is that it has of the target's and the sum's; None where elements are
    not in steps along them."""
    own = (i.name if isinstance(i, GroupRef) else str(i) for i in stage.assign.indices)
    found = steps_of(op, factor, {*own, *products.terms})
    return None if found is None else dict(found)


def _bias(op: Op, stage: NestStage, products: Products, e: Expr) -> Read | None:
    """Return the vector that a value is, along the points across; it may be 0 where there is none."""
    match e:
        case Select(cond=Present(operand=operand), then=Read() as read, other=Const(value=0, type=Weak.INT | Weak.FLOAT)):
            if read.operand != operand:
                return None
        case Read() as read:
            if op.operand(read.operand) in (i for i in op.inputs if i.optional):
                return None
        case _:
            return None
    if len(products.across) != 1 or read.pad is not None or read.checked or len(read.indices) != 1:
        return None
    (index,), entry = read.indices, stage.assign.indices[products.across[0]]
    return read if isinstance(index, Affine) and index.index == entry else None
