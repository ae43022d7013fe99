"""Indices that are affine in pieces, such as `abs(i - p)` or `i - p if i >= p else 0`.

A read at such an index is one read for each piece, under the piece's condition. So it is proved inside piece by piece, and its
gradient is a gather for each piece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Expr, IndexValue, Select
from opc.records import dataclass

MAX_PIECES = 16
"""How many pieces an index may have: each is a read of its own."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """`then` where the condition holds, else `other`."""

    cond: Expr
    then: Pieces
    other: Pieces


Pieces: TypeAlias = Affine | Piecewise


def size(p: Pieces) -> int:
    """Return the number of pieces."""
    return size(p.then) + size(p.other) if isinstance(p, Piecewise) else 1


def pieces(e: Expr) -> Pieces | None:
    """Return an integer expression as pieces, each affine in the index variables; None when it is not made of such."""
    plain = affine_of(e)
    if plain is not None:
        return plain
    match e:
        case Select():
            then, other = pieces(e.then), pieces(e.other)
            return None if then is None or other is None else Piecewise(e.cond, then, other)
        case Call(fn="neg" | "abs" as fn, args=(x,)):
            p = pieces(x)
            return None if p is None else _map(p, _UNARY[fn])
        case Call(fn=fn, args=(x, y)) if fn in _BINARY:
            p, q = pieces(x), pieces(y)
            if p is None or q is None or size(p) * size(q) > MAX_PIECES:
                return None
            return _map(p, lambda a: _map(q, lambda b: _BINARY[fn](a, b)))
        case _:
            return None


def _map(p: Pieces | None, change: Callable[[Affine], Pieces | None]) -> Pieces | None:
    if p is None or isinstance(p, Affine):
        return None if p is None else change(p)
    then, other = _map(p.then, change), _map(p.other, change)
    return None if then is None or other is None else Piecewise(p.cond, then, other)


def _not_less(a: Affine, b: Affine, then: Affine, other: Affine) -> Pieces:
    """Return `then if a >= b else other`."""
    return Piecewise(Call("ge", (IndexValue(a), IndexValue(b)), DType.BOOL), then, other)


def _multiplied(a: Affine, b: Affine) -> Pieces | None:
    return None if a.indices() and b.indices() else a * b


def _divided(a: Affine, b: Affine) -> Pieces | None:
    return None if b.indices() or b.constant == 0 else a // b


def _rest(a: Affine, b: Affine) -> Pieces | None:
    return None if b.indices() or b.constant == 0 else a % b


_UNARY: dict[str, Callable[[Affine], Pieces]] = {
    "neg": lambda a: -a,
    "abs": lambda a: _not_less(a, Affine.of(0), a, -a),
}
_BINARY: dict[str, Callable[[Affine, Affine], Pieces | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": _multiplied,
    "floordiv": _divided,
    "mod": _rest,
    "maximum": lambda a, b: _not_less(a, b, a, b),
    "minimum": lambda a, b: _not_less(b, a, a, b),
}
