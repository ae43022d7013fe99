"""Choices that only say whether a read is inside: written as reads that are padded.

`x[at] if at >= 0 and at < N else 0` is `pad(x[at], 0)`. Where the place is one of the lane's own, a nest finds the places of a
whole row ahead of its loop, and those outside among them, so that nothing is tested where the element is used.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak, candidates
from opc.ir.expr import Call, Cast, Const, Expr, GroupRef, IndexValue, Read, Select, children, free_indices, with_children
from opc.ir.op import Op
from opc.lower.guards import conjuncts
from opc.records import replace
from opc.transform.scalar import negation

_WIDE = frozenset({DType.INT32, DType.INT64})
"""Integers that count any axis."""


def with_padded_reads(op: Op, e: Expr, vector_axis: str) -> Expr:
    """Return `e` with such choices, of reads whose place changes along the vector axis, as padded reads."""
    e = with_children(e, tuple(with_padded_reads(op, c, vector_axis) for c in children(e)))
    match e:
        case Select(cond=cond, then=Read() as read, other=Const() as other):
            pass
        case Select(cond=cond, then=Const() as other, other=Read() as read):
            cond = negation(cond)
        case _:
            return e
    asked = {_narrow(c) for c in conjuncts(cond)}
    if read.pad is not None or any(isinstance(read.indices[n], Affine) for n in read.checked):
        return e
    wanted = {c for n, i in enumerate(read.indices) if not isinstance(i, Affine | GroupRef) for c in _inside(op, read, n, i)}
    moves = any(vector_axis in free_indices(i) for i in read.indices if not isinstance(i, Affine | GroupRef))
    if asked != wanted or not moves:
        return e
    return replace(read, pad=replace(other, type=read.type), checked=())


def _inside(op: Op, read: Read, entry: int, place: Expr) -> tuple[Expr, Expr]:
    """Return the conditions under which a computed place is inside of its axis."""
    size = op.operand(read.operand).sizes[entry]
    zero, end = Const(0, Weak.INT), IndexValue(size)
    return Call("ge", (_narrow(place), zero), DType.BOOL), Call("lt", (_narrow(place), end), DType.BOOL)


def _narrow(e: Expr) -> Expr:
    """Return a place, or the comparison of one, without the conversion that lets it be compared with any size."""
    match e:
        case Call(fn="not", args=(Call(fn="ge" | "lt" as fn) as asked,)):
            return _narrow(replace(asked, fn="lt" if fn == "ge" else "ge"))  # no index is NaN
    if isinstance(e, Call) and e.fn in ("ge", "lt"):
        return replace(e, args=(_narrow(e.args[0]), e.args[1]))
    if not isinstance(e, Cast) or e.type is not DType.INT64 or isinstance(e.arg.type, Weak):
        return e
    return e.arg if _WIDE.issuperset(candidates(e.arg.type)) else e
