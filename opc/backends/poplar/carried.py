"""What of an op Poplar has tensors for: it lacks float64, bfloat16 and whole numbers of 64 bits."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.dtypes import lacking
from opc.backends.poplar.recent import of_family
from opc.diagnostics import Diagnostic
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.ir.narrow import narrow
from opc.ir.node import remembered
from opc.ir.op import Family, Op, Operand
from opc.records import replace

OWN_DOMAINS = ("ai.graphcore", "ai.onnx", "ai.onnx.ml")
"""The domains of PopART's own ops, which have versions of their own."""


def has(dtype: DType) -> bool:
    """Whether Poplar has tensors of a dtype."""
    return dtype.row.popart is not None


def carries(dtype: DType) -> bool:
    """Whether an operand of a dtype can be a tensor in Poplar: one of int64 is held as int32."""
    return has(dtype) or dtype is DType.INT64


def carried_type(t: ElementType) -> ElementType:
    """Return an element type as Poplar holds it; itself where Poplar has none.

    A type variable keeps those of its dtypes that Poplar has; int32 stands for int64 where it would have none.
    """
    match t:
        case TypeVar():
            kept = tuple(d for d in t.dtypes if has(d))
            return TypeVar(t.name, kept or tuple(dict.fromkeys(DType.INT32 if d is DType.INT64 else d for d in t.dtypes)))
        case Acc():
            of = carried_type(t.of)
            return Acc(of) if isinstance(of, TypeVar | DType) else of
        case _:
            return DType.INT32 if t is DType.INT64 else t


@remembered("_carried")
def carried(op: Op) -> Op:
    """Return an op whose operands have the element types that Poplar holds. What it computes is left as it is."""

    op = narrow(op, {t.name: kept for t in op.types if 0 < len(kept := tuple(d for d in t.dtypes if has(d))) < len(t.dtypes)})

    def of(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(o, type=carried_type(o.type)) for o in operands)

    types = tuple(t for v in op.types if isinstance(t := carried_type(v), TypeVar))
    return replace(op, types=types, inputs=of(op.inputs), outputs=of(op.outputs), temporaries=of(op.temporaries))


@of_family
def carried_family(family: Family) -> Family:
    """Return a family whose op has the element types that Poplar holds, without what is derived from it."""
    return replace(family, forward=carried(family.forward), backward=None, backward_backward=None, jvp=None, backward_jvp=None)


def reached(family: Family) -> tuple[Op, ...]:
    """Return the ops that PopART's autodiff reaches: the op, its gradient, and the gradient of that."""
    return tuple(op for op in (family.forward, family.backward, family.backward_backward) if op is not None)


def refusals(family: Family, title: str) -> Iterator[Diagnostic]:
    """Yield why no framework on Poplar can carry a family, whatever its body: operands, and the domain."""
    yield from lacking(reached(family), title, carries)
    for a in family.forward.attributes:
        if a.picks is not None or a.among is not None or a.permutes is not None:
            how = "permutes them" if a.permutes is not None else "lists them" if a.among is None else "places one"
            yield Diagnostic(f"{title}'s bodies take the axes of tensors as they are declared, not as '{a.name}' {how}", a.span)
    if family.forward.domain in OWN_DOMAINS:
        yield Diagnostic(
            f"the domain {family.forward.domain} is that of PopART's own ops, and ops of users need another",
            hint="give the spec a domain of its own",
        )
