"""Temporaries that only repeat an operand in another order of its axes, or a number: read where they come from instead.

Choosing a case of an attribute leaves such temporaries behind.
"""

from __future__ import annotations

from opc.ir.affine import Affine
from opc.ir.expr import Const, Expr, GroupRef, Read, operands_read, reads, rewrite
from opc.ir.op import Assign, Op
from opc.records import replace


def inline_copies(op: Op) -> Op:
    """Return the op without such temporaries."""
    temporaries = {t.name for t in op.temporaries}
    optional = {i.name for i in op.inputs if i.optional}
    # A number stands for what is read inside alone.
    outside = {r.operand for s in op.body for r in reads(s.value) if r.pad is not None or r.checked}
    copies: dict[str, Assign] = {}
    body: list[Assign] = []
    for s in op.body:
        if not copies.keys().isdisjoint(operands_read(s.value)):
            s = s.with_value(rewrite(s.value, lambda e: _original(e, copies)))
        number = isinstance(s.value, Const) and s.target not in outside
        if s.target in temporaries and (number or _is_copy(s, optional)) and _same(op, s):
            copies[s.target] = s
        else:
            body.append(s)
    if not copies:
        return op
    # A recurrence reads copies before they are assigned, and copies of copies.
    while any(not copies.keys().isdisjoint(operands_read(s.value)) for s in body):
        body = [s.with_value(rewrite(s.value, lambda e: _original(e, copies))) for s in body]
    return replace(op, body=tuple(body), temporaries=tuple(t for t in op.temporaries if t.name not in copies))


def _is_copy(s: Assign, optional: set[str]) -> bool:
    if not isinstance(s.value, Read) or s.value.pad is not None or s.value.checked or s.value.operand in optional:
        return False
    entries = [i.index if isinstance(i, Affine) else i if isinstance(i, GroupRef) else None for i in s.value.indices]
    return None not in entries and len(set(entries)) == len(entries) and set(entries) == set(s.indices)


def _same(op: Op, s: Assign) -> bool:
    """Whether a temporary has the type of what it repeats."""
    if isinstance(s.value, Const):
        return True
    assert isinstance(s.value, Read), "a copy is a number or a read"
    return op.operand(s.target).type == op.operand(s.value.operand).type


def _original(e: Expr, copies: dict[str, Assign]) -> Expr:
    """Return a read of a copy as what was copied."""
    if not isinstance(e, Read) or e.operand not in copies:
        return e
    s = copies[e.operand]
    if isinstance(s.value, Const):
        return replace(s.value, type=e.type)
    assert isinstance(s.value, Read), "a copy is a number or a read"
    given = dict(zip(s.indices, e.indices, strict=True))
    entries = [i.index if isinstance(i, Affine) else i for i in s.value.indices]
    indices = tuple(given[i] for i in entries)  # type: ignore[index]  # a copy's entries are its indices
    checked = tuple(sorted(entries.index(s.indices[n]) for n in e.checked))
    return replace(e, operand=s.value.operand, indices=indices, checked=checked)
