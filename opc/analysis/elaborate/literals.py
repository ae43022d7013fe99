"""Numbers that are made of literals alone: what they come to, so that one that no type holds is refused where it is written."""

from __future__ import annotations

import math

from opc.analysis.shapes.scalar import function
from opc.ir.expr import Call, Const, Expr
from opc.ir.node import memoised

_OPERATORS = frozenset({"add", "sub", "mul", "div", "pow", "neg"})


@memoised
def number_of(e: Expr) -> float | None:
    """Return the number that literals and operators make up, as a double; None for anything else."""
    match e:
        case Const(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case Call(fn=fn) if fn in _OPERATORS:
            parts = [number_of(a) for a in e.args]
            return None if None in parts else float(function(fn)(*(p for p in parts if p is not None)))
        case _:
            return None


def is_beyond(e: Expr) -> bool:
    """Whether an operator on finite literals has a result that is none; infinity is what a division by 0 says."""
    if not isinstance(e, Call) or number_of(e) is None or math.isfinite(number_of(e) or 0.0):
        return False
    parts = [number_of(a) for a in e.args]
    return all(p is not None and math.isfinite(p) for p in parts) and not (e.fn == "div" and parts[-1] == 0)


__all__ = ["is_beyond", "number_of"]
