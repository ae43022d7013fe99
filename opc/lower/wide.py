"""Types of indices that loops need not be compiled for one by one: a copy of an operand as int64 costs little beside them."""

from __future__ import annotations

from opc.ir.dtypes import Acc, DType, TypeVar
from opc.ir.expr import Read, walk
from opc.ir.op import Op
from opc.lower.heuristics import runs_often

_INDICES = frozenset((DType.INT32, DType.INT64))


def widened_types(op: Op) -> tuple[TypeVar, ...]:
    """Return the types whose operands a kernel takes as int64: those that an op which is seldom run only reads indices in."""
    return () if runs_often(op) else index_types(op)


def index_types(op: Op) -> tuple[TypeVar, ...]:
    """Return the types that an op only reads indices in: nothing is computed in such a type, so that nothing wraps in it."""
    found = tuple(t for t in op.types if set(t.dtypes) == _INDICES)
    if not found:
        return ()
    made = {o.type for o in (*op.outputs, *op.temporaries)}
    computed = {e.type for s in op.body for e in walk(s.value) if not isinstance(e, Read)} | made
    computed |= {t.of for t in computed if isinstance(t, Acc)}
    return tuple(t for t in found if t not in computed)
