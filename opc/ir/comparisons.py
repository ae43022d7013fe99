"""What a comparison of whole numbers says: which sums are not negative where it holds."""

from __future__ import annotations

from opc.ir.affine import Affine

OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
"""The comparison that holds where another one does not."""


def excess(fn: str, a: Affine, b: Affine) -> Affine:
    """Return what is not negative just where `a < b`, `a <= b`, `a > b` or `a >= b` holds."""
    more = a - b if fn in ("gt", "ge") else b - a
    return more if fn in ("le", "ge") else more - 1


def told(fn: str, a: Affine, b: Affine) -> tuple[Affine, ...]:
    """Return what is not negative where any comparison holds; that of `ne` says nothing of what is greater."""
    if fn == "ne":
        return ()
    return (a - b, b - a) if fn == "eq" else (excess(fn, a, b),)
