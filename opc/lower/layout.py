"""How temporaries lie in memory: where the last axes have a few points each, the one before them is last instead.

The last axis of a statement's target is the one that is vectorised. An op keeps a value for each of the taps of an interpolation,
along each axis of an image, at each point of a grid: as rows of points, one for each tap, these fill vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from opc.ir.affine import Affine
from opc.ir.expr import Expr, Read, rewrite
from opc.ir.op import Assign, Group, Op, Operand
from opc.records import replace

_FEW = 4
"""An axis of no more points is not worth being a row."""

_Entry = TypeVar("_Entry")


def with_long_rows(op: Op) -> Op:
    """Return the op with the long axis of such temporaries behind their short ones."""
    turned = {t.name: row for t in op.temporaries if (row := _row(t)) is not None}
    if not turned:
        return op

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.operand not in turned:
            return e
        order = _with_last(range(len(e.indices)), turned[e.operand])
        checked = tuple(n for n, old in enumerate(order) if old in e.checked)
        return replace(e, indices=_with_last(e.indices, turned[e.operand]), checked=checked)

    def written(s: Assign) -> Assign:
        indices = _with_last(s.indices, turned[s.target]) if s.target in turned else s.indices
        return replace(s, indices=indices, value=rewrite(s.value, rule))

    temporaries = tuple(replace(t, dims=_with_last(t.dims, turned[t.name])) if t.name in turned else t for t in op.temporaries)
    return replace(op, body=tuple(map(written, op.body)), temporaries=temporaries)


def _with_last(entries: Sequence[_Entry], row: int) -> tuple[_Entry, ...]:
    return (*entries[:row], *entries[row + 1 :], entries[row])


def _row(t: Operand) -> int | None:
    """Return the axis that is to be the last one: the only long one among it and those behind it; None where it is that."""
    row = len(t.dims) - 1
    while row >= 0 and _is_short(t.dims[row]):
        row -= 1
    long = row >= 0 and isinstance(t.dims[row], Affine)
    return row if long and row < len(t.dims) - 1 else None


def _is_short(dim: Affine | Group) -> bool:
    return isinstance(dim, Affine) and dim.constant is not None and 1 < dim.constant <= _FEW
