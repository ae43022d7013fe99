"""Rematerialisation: loop nests compute the values of single points again that they would else read from a temporary.

Regular statements that share no stage with a nest hand it what they compute through memory. A value that is no reduction costs
more to write and to read again than to compute, so the nest computes it from what it is made of. A function that costs more than
a load is computed again only where a nest reads each value once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from opc.ir.affine import Affine
from opc.ir.expr import (
    Call,
    Expr,
    GroupAxis,
    GroupRef,
    Read,
    Reduce,
    children,
    free_indices,
    has_reduction,
    operands_read,
    rewrite,
    walk,
)
from opc.ir.op import Assign, Op
from opc.lower.nest_plans import VectorPlan
from opc.lower.rows.passes import EXPENSIVE
from opc.lower.statement import lower_statement
from opc.records import replace
from opc.transform.indices import substitute

_FEW_STEPS = 3
"""A value of so few operations may be computed again in several nests."""


def with_rematerialised_values(op: Op, regular: Iterable[str], nests: Iterable[str]) -> Op:
    """Return the op with such values in its loop nests: `regular` and `nests` are the targets of its regular statements, and of
    those that run as nests."""
    alone, regular = set(nests), set(regular)
    statements = {s.target: s for s in op.body}
    values = {s.target: s for s in op.body if s.target in regular and _is_value(op, s)}
    for name, value in values.items():
        readers = [s for s in statements.values() if name in operands_read(s.value)]
        inside = [s for s in readers if s.target in alone]
        rows = all(s.target in alone or s.target in regular for s in readers)
        if inside and rows and all(_may_rematerialise(op, value, s, len(inside)) for s in inside):
            for s in inside:
                statements[s.target] = replace(s, value=rewrite(s.value, partial(_rematerialised, value)))
    body = tuple(statements[s.target] for s in op.body)
    return replace(op, body=body) if body != op.body else op


def _is_value(op: Op, s: Assign) -> bool:
    """Whether a statement defines a temporary that is no reduction, in the type of its value."""
    return (
        any(t.name == s.target and t.type == s.value.type for t in op.temporaries)
        and not has_reduction(s.value)
        and len(set(s.indices)) == len(s.indices)
    )


def _may_rematerialise(op: Op, value: Assign, nest: Assign, nests: int) -> bool:
    """Whether computing a value in a nest costs no more than what it saves."""
    found = list(_reads_in_loops(nest.value, value.target, frozenset(nest.indices)))
    if any(r.pad is not None or r.checked or not _follows(value, r) or not loops <= _moves(r) for r, loops in found):
        return False
    calls = [e for e in walk(value.value) if isinstance(e, Call)]
    is_cheap = len(calls) <= _FEW_STEPS and not any(e.fn in EXPENSIVE for e in calls)
    once = nests == 1 and len(found) == 1 and all(_is_bare(r) and len(loops) == len(nest.indices) for r, loops in found)
    if not is_cheap and not once:
        return False
    plans = lower_statement(op, nest, "").plans
    return bool(plans) and all(isinstance(p, VectorPlan) for p in plans)


def _reads_in_loops(e: Expr, operand: str, loops: frozenset[str | GroupRef]) -> Iterator[tuple[Read, frozenset[str | GroupRef]]]:
    """Yield each read of an operand in an expression with the loops it is in."""
    if operand not in operands_read(e):
        return
    if isinstance(e, Reduce):
        loops |= set(e.extents)
        loops |= {GroupRef(a.name) for a in e.axes if isinstance(a, GroupAxis)}
    if isinstance(e, Read) and e.operand == operand:
        yield e, loops
    for c in children(e):
        yield from _reads_in_loops(c, operand, loops)


def _moves(r: Read) -> frozenset[str | GroupRef]:
    """Return the loops along which a read moves: one along fewer than it is in is of a value that is better kept."""
    return free_indices(r) | {i for i in r.indices if isinstance(i, GroupRef)}


def _is_bare(r: Read) -> bool:
    """Whether a read goes by indices alone, each in one axis."""
    entries = [i.index if isinstance(i, Affine) else i for i in r.indices]
    return None not in entries and len(set(entries)) == len(entries)


def _follows(value: Assign, r: Read) -> bool:
    """Whether a read of a value goes by affine indices, and by the groups that the value has."""
    pairs = zip(value.indices, r.indices, strict=True)
    return all(i == e if isinstance(i, GroupRef) else isinstance(e, Affine) for i, e in pairs)


def _rematerialised(value: Assign, e: Expr) -> Expr:
    """Return a read of a value as what it is made of."""
    if not isinstance(e, Read) or e.operand != value.target:
        return e
    pairs = zip(value.indices, e.indices, strict=True)
    return substitute(value.value, {str(i): v for i, v in pairs if isinstance(v, Affine)})
