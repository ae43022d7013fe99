"""Types of indices that loops need not be compiled for one by one: a copy of an operand as int64 costs little beside them."""

from __future__ import annotations

from opc.ir.dtypes import Acc, DType, TypeVar
from opc.ir.expr import Call, Expr, Read, reads, walk
from opc.ir.function import DEAR
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Op, Operand
from opc.lower.heuristics import runs_often

_INDICES = frozenset((DType.INT32, DType.INT64))


def widened_types(op: Op) -> tuple[TypeVar, ...]:
    """Return the types whose operands a kernel takes as int64: those that an op only reads indices in.

    Nothing is computed in such a type, so that nothing wraps in it. An op that runs often has to compute much for each index.
    """
    made = {o.type for o in (*op.outputs, *op.temporaries)}
    values = [e for s in op.body for e in walk(s.value)]
    computed = {e.type for e in values if not isinstance(e, Read)} | made
    computed |= {t.of for t in computed if isinstance(t, Acc)}
    found = [t for t in op.types if set(t.dtypes) == _INDICES and t not in computed]
    if runs_often(op):
        found = [t for t in found if all(_is_small(op, o, values) for o in op.inputs if o.type == t)]
    return tuple(found)


def _is_small(op: Op, o: Operand, values: list[Expr]) -> bool:
    """Whether a function that takes long is asked at many points for each element of an operand."""
    dear = [e for e in values if isinstance(e, Call) and FUNCTIONS[e.fn].cost == DEAR]
    return any(set(op.operand(r.operand).dims) > set(o.dims) for e in dear for r in reads(e))
