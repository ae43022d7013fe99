"""Reads by position: those whose indices are the digits of one position, of an operand whose elements lie densely.

`x[p // (B*C), p // C % B, p % C]` of an `x: T[A, B, C]` without gaps between its elements is the one at offset p. A reshape reads
so: where a call's operand is dense it is a copy, and no index is divided.
"""

from __future__ import annotations

from opc.analysis.bounds.checker import ranges_of
from opc.analysis.bounds.knowledge import knowledge_of
from opc.ir.affine import Affine, Mod
from opc.ir.expr import Read, reads
from opc.ir.op import Assign, Op


def position_of(op: Op, statement: Assign, e: Read) -> Affine | None:
    """Return the position that a read's indices are the digits of, where a statement reads that operand at such positions alone,
    none of them behind the last; else None. In `e`, loops may have other names than in the statement."""
    position = _position(op, e)
    if position is None:
        return None
    ranges, knowledge = ranges_of(statement, op.operand(statement.target)), knowledge_of(op)
    for read in reads(statement.value):
        if read.operand == e.operand:
            at = _position(op, read)
            if at is None or not at.indices() <= ranges.keys():
                return None
            if not (knowledge.nonnegative(at, ranges) and knowledge.nonnegative(_size(op, read) - 1 - at, ranges)):
                return None
    return position


def _size(op: Op, e: Read) -> Affine:
    """Return how many elements the operand of a read by position has."""
    total = Affine.of(1)
    for d in op.operand(e.operand).dims:
        assert isinstance(d, Affine), "no operand with a group is read by position"
        total = total * d
    return total


def _position(op: Op, e: Read) -> Affine | None:
    dims = op.operand(e.operand).dims
    sizes = [d for d in dims if isinstance(d, Affine)]
    indices = [i for i in e.indices if isinstance(i, Affine)]
    last = indices[-1].single if dims and len(indices) == len(sizes) == len(dims) else None
    if e.pad is not None or e.checked or not isinstance(last, Mod) or last.denominator != sizes[-1]:
        return None
    position, behind = last.numerator, sizes[-1]
    quotients = {position // behind}
    for n in reversed(range(len(dims) - 1)):
        if not any(indices[n] in (q % sizes[n], q if n == 0 else None) for q in quotients):
            return None
        behind = behind * sizes[n]
        quotients = {position // behind, *(q // sizes[n] for q in quotients)}
    return position


__all__ = ["position_of"]
