"""Which operands of a call may have integers while the op is differentiated by others, and what derived ops take in their place.

A derived op exists for floating types alone, so a type variable that may be bound to integers too keeps only the floating ones
there. Where a call binds it to integers, its operands are constants: `a ** cast(T, b)` has a derivative by `a` whatever type `b`
has. Given to the derived op in a floating type that has all their values, they give the same derivative if the op does nothing
with them but cast them to floating types, and casts nothing to theirs on the way to another output.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, candidates, is_floating
from opc.ir.expr import Cast, Expr, Read, children, walk
from opc.ir.op import AttributeKind, Op, Operand

_PRECISION = {DType.FLOAT32: 24, DType.FLOAT16: 11, DType.BFLOAT16: 8}
"""How many bits of an integer a floating type has."""


def constants(op: Op) -> dict[str, DType]:
    """Return the operands and dtype attributes that derived ops take in a floating type where a call has them in integers.

    Integers of 64 bits beyond 2**53 are rounded to float64.
    """
    chosen = {t: wide for t in op.types if (wide := _stand_in(op, t)) is not None}
    operands = {o.name: chosen[t] for o in (*op.inputs, *op.outputs) if (t := _variable(o.type)) in chosen and o.type == t}
    names = {t.name: wide for t, wide in chosen.items()}
    attributes = (a for a in op.attributes if a.kind is AttributeKind.DTYPE)
    return operands | {a.name: names[a.binds] for a in attributes if a.binds is not None and a.binds in names}


def unmoved(op: Op) -> tuple[str, ...]:
    """Return the outputs that have no derivative in calls where they are of integers, though inputs of the call have one."""
    return tuple(
        o.name for o in op.outputs if (t := _variable(o.type)) is not None and _mixed(t) and any(_moves(x, t) for x in op.inputs)
    )


def _variable(t: ValueType) -> TypeVar | None:
    """Return the type variable that a type is, or is the accumulator of."""
    found = t.of if isinstance(t, Acc) else t
    return found if isinstance(found, TypeVar) else None


def _mixed(t: TypeVar) -> bool:
    return any(d.is_floating for d in t.dtypes) and not all(d.is_floating for d in t.dtypes)


def _moves(operand: Operand, apart_from: TypeVar) -> bool:
    """Whether an operand has a derivative in a call that binds a variable to integers."""
    return _variable(operand.type) != apart_from and any(d.is_floating for d in candidates(operand.type))


def _stand_in(op: Op, t: TypeVar) -> DType | None:
    """Return the floating type that stands for the integers of a variable, None where there is none."""
    if not _mixed(t) or not any(_moves(x, t) for x in op.inputs):
        return None
    wide = max((d for d in t.dtypes if d.is_floating), key=lambda d: d.bits)
    bits = [d.bits for d in t.dtypes if d.is_integer and any(x.type == t for x in op.inputs)]
    if wide is not DType.FLOAT64 and max(bits, default=0) > _PRECISION.get(wide, 0):
        return None
    values = list(_values(op, t))
    if not values or not all(_casts_only(v, t) for v in values):
        return None
    return wide


def _values(op: Op, t: TypeVar) -> Iterator[Expr]:
    """Yield the values that the outputs with a derivative depend on, in a call that binds a variable to integers."""
    waiting = [o.name for o in op.outputs if _moves(o, t)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for s in (s for s in op.body if s.target == name):
            yield s.value
            waiting += [r.operand for r in walk(s.value) if isinstance(r, Read)]


def _casts_only(value: Expr, t: TypeVar) -> bool:
    """Whether a value has elements of a variable's type only where it reads them and casts them at once to floating ones."""
    pairs = [(None, value), *((e, c) for e in walk(value) for c in children(e))]
    found = [(outer, e) for outer, e in pairs if _variable(e.type) == t]
    return all(isinstance(e, Read) and isinstance(outer, Cast) and is_floating(outer.type) for outer, e in found)
