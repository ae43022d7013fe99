"""Numbers of rows in an op that runs on blocks of them: a block counts from its first row, and has fewer than there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.expr import Axis, Expr, IndexValue, Read, Reduce, reads, rewrite, walk
from opc.ir.op import Assign, Op
from opc.lower.loop_ir import FusedRows
from opc.records import replace


def from_first(op: Op, rows: FusedRows) -> Op:
    """Return an op that counts rows from the first one of a block, and asks for the number of rows of all blocks.

    An operand that has not the axis of rows is whole, so that what it is read at counts rows, too.
    """
    body: list[Assign] = []
    for s in op.body:
        row = s.indices[rows.at] if rows.has(s.target) else _summed_row(s, rows)
        assert isinstance(row, str), "a row has one index"
        new: Mapping[Symbol, Affine] = {Index(row): Affine.of(Index(row)) + Dim(rows.first)}
        body.append(_with_places(op, _with_numbers(s, new), row, rows, new))
    changed = any(a is not b for a, b in zip(op.body, body, strict=True))
    return whole(op.with_body(tuple(body)) if changed else op, rows, rows.dim)


def _with_places(op: Op, s: Assign, row: str, rows: FusedRows, new: Mapping[Symbol, Affine]) -> Assign:
    """Return a statement with rows counted in the places of operands that are whole."""

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Read):
            return e
        counted = list(counting_rows(op, e, row, rows))
        if not counted:
            return e
        places = (i.substitute(new.get) if n in counted and isinstance(i, Affine) else i for n, i in enumerate(e.indices))
        return replace(e, indices=tuple(places))

    counts = any(list(counting_rows(op, e, row, rows)) for e in reads(s.value))
    return s.with_value(rewrite(s.value, rule)) if counts else s


def counting_rows(op: Op, e: Read, row: str, rows: FusedRows) -> Iterator[int]:
    """Yield the axes along which a read counts rows, in an operand that has all of what is there."""
    for n, (index, dim) in enumerate(zip(e.indices, op.operand(e.operand).dims, strict=True)):
        if isinstance(index, Affine) and row in index.indices() and dim != Affine.of(Dim(rows.dim)):
            yield n


def _summed_row(s: Assign, rows: FusedRows) -> str:
    """Return the index of the rows that a statement is the sum over."""
    assert isinstance(s.value, Reduce), "what has no rows is a sum over them"
    return next(a.index for a in s.value.axes if isinstance(a, Axis) and a.extent == Affine.of(Dim(rows.dim)))


def whole(op: Op, rows: FusedRows, dim: str | None) -> Op:
    """Return an op that asks for the whole size of an axis where it counts its points: a block has fewer of them."""
    name = next((n for n, d in rows.whole if d == dim), None)
    if dim is None or name is None:
        return op
    body = tuple(_with_numbers(s, {Dim(dim): Affine.of(Dim(name))}) for s in op.body)
    return op.with_body(body) if any(a is not b for a, b in zip(op.body, body, strict=True)) else op


def _with_numbers(s: Assign, new: Mapping[Symbol, Affine]) -> Assign:
    """Return a statement with symbols replaced where it uses them in numbers."""
    if not any(isinstance(e, IndexValue) and e.value.atoms() & new.keys() for e in walk(s.value)):
        return s

    def rule(e: Expr) -> Expr:
        return replace(e, value=e.value.substitute(new.get)) if isinstance(e, IndexValue) else e

    return s.with_value(rewrite(s.value, rule))
