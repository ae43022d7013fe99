"""How temporaries lie in memory: where the last axis has a few points, the one before it is last instead.

The last axis of a statement's target is the one that is vectorised. A derived op keeps a value for each of the taps of an
interpolation, at each point of a grid: as rows of points, one for each tap, these fill vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from opc.ir.affine import Affine
from opc.ir.expr import Expr, Read, rewrite
from opc.ir.op import Assign, Op, Operand
from opc.records import replace

_FEW = 4
"""An axis of no more points is not worth being a row."""

_Entry = TypeVar("_Entry")


def with_long_rows(op: Op) -> Op:
    """Return the op with the last two axes of such temporaries in the other order."""
    turned = {t.name for t in op.temporaries if _is_turned(t)}
    if not turned:
        return op

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.operand not in turned:
            return e
        last = len(e.indices) - 1
        checked = tuple(sorted({last: last - 1, last - 1: last}.get(n, n) for n in e.checked))
        return replace(e, indices=_swapped(e.indices), checked=checked)

    def written(s: Assign) -> Assign:
        indices = _swapped(s.indices) if s.target in turned else s.indices
        return replace(s, indices=indices, value=rewrite(s.value, rule))

    temporaries = tuple(replace(t, dims=_swapped(t.dims)) if t.name in turned else t for t in op.temporaries)
    return replace(op, body=tuple(map(written, op.body)), temporaries=temporaries)


def _swapped(entries: Sequence[_Entry]) -> tuple[_Entry, ...]:
    return (*entries[:-2], entries[-1], entries[-2])


def _is_turned(t: Operand) -> bool:
    if len(t.dims) < 2:
        return False
    row, taps = t.dims[-2:]
    long = isinstance(row, Affine) and row.constant is None
    return long and isinstance(taps, Affine) and taps.constant is not None and 1 < taps.constant <= _FEW
