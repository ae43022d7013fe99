"""Sums to which 0 is added: `sum[k](x[k]) + (0 if mode == 'plain' else z)` where the mode is plain.

Most kernels begin a sum with 0, which is then in it already. Those of row stages begin with -0, so that a sum of one term is that
term, as the gradient of an operand that is not broadcast has it; there the 0 is added to each term.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.patterns import guarded
from opc.ir.dtypes import Weak
from opc.ir.expr import Axis, Call, Const, Expr, IndexValue, Reduce, Select, has_reduction, reads, rewrite, walk
from opc.ir.op import Assign, Op
from opc.lower.contractions.terms import terms_of
from opc.records import replace


def with_zeros_in_sums(op: Op) -> Op:
    """Return the op with no 0 added to what a sum comes to."""
    return replace(op, body=tuple(_with_zeros_in_sums(op, s) for s in op.body))


def _with_zeros_in_sums(op: Op, s: Assign) -> Assign:
    def rule(e: Expr) -> Expr:
        found = _zero_and_sum(e)
        if found is None or _is_irregular(found) or terms_of(op, s, found, ()) is not None:
            return found or e
        return replace(found, body=_with_zero(found.body))

    return replace(s, value=rewrite(s.value, rule)) if any(map(_zero_and_sum, _sums(s.value))) else s


def _sums(e: Expr) -> Iterator[Expr]:
    return walk(e) if has_reduction(e) else iter(())


def _zero_and_sum(e: Expr) -> Reduce | None:
    """Return the sum that 0 is added to."""
    if not isinstance(e, Call) or e.fn != "add":
        return None
    for zero, other in (e.args, e.args[::-1]):
        if is_unsigned_zero(zero) and isinstance(other, Reduce) and other.kind == "sum" and other.type == e.type:
            return other
    return None


def is_unsigned_zero(e: Expr) -> bool:
    """Whether an expression is the 0 that has no sign."""
    return isinstance(e, Const) and e.value == 0 and not isinstance(e.value, float)


def _is_irregular(e: Reduce) -> bool:
    """Whether a sum is none that a row stage computes: such a one goes through whole rows, whatever their place."""
    if any(isinstance(a, Axis) and a.extent.indices() for a in e.axes):
        return True
    conditions, _ = guarded(e.body)
    return any(r.pad is not None or r.checked for r in reads(e.body)) or any(
        isinstance(n, IndexValue) and n.value.indices() for c in conditions for n in walk(c)
    )


def _with_zero(e: Expr) -> Expr:
    """Return a term with 0 added, where it counts."""
    if isinstance(e, Select) and is_unsigned_zero(e.other):
        return replace(e, then=_with_zero(e.then))
    return Call("add", (e, Const(0, Weak.INT)), e.type)
