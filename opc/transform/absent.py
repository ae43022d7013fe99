"""Absent tangents and cotangents contribute nothing: presence is asked outside products, not within their factors.

The rules of `opc.transform.algebra` write derivatives so. But a temporary that is put into its use is a factor as it stands, and
`inf * (t if present(t) else 0)` is NaN where there is no t. Conditions are moved here, and nothing is copied.
"""

from __future__ import annotations

from opc.ir.expr import Call, Cast, Expr, Present, Reduce, Select, asked_for, children, conjuncts
from opc.ir.op import Op, Role
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.scalar import ZERO

NONE = frozenset[str]()


def seeds_of(op: Op) -> frozenset[str]:
    """Return the tangents and cotangents that an op takes and that may be absent."""
    roles = () if op.derivation is None else op.derivation.inputs
    named = zip((o for o in op.inputs if roles), roles, strict=True)
    return frozenset(o.name for o, (role, _) in named if o.optional and role in (Role.COTANGENT, Role.TANGENT))


def presence_outside(op: Op, seeds: frozenset[str]) -> Op:
    """Return the op with every product that has a factor `x if present(seed) else 0` as `product if present(seed) else 0`.

    So are a sum of such products and their negative, where it is zero without the seed.
    """
    return replace(op, body=tuple(replace(s, value=_outside(s.value, seeds).value) for s in op.body))


@dataclass(frozen=True, slots=True)
class _Found:
    """An expression with presence outside its products."""

    value: Expr
    needed: frozenset[str] = NONE
    """The seeds without any of which it is zero."""
    moved: frozenset[str] = NONE
    """The seeds whose presence has been put outside a product in it."""


def _outside(e: Expr, seeds: frozenset[str]) -> _Found:
    kept = children(e)
    if not asked_for(e) & seeds:
        return _Found(e, seeds if scalar.is_zero(e) else NONE)
    parts = [_outside(c, seeds) for c in kept]
    new = tuple(part.value for part in parts)
    e = e if new == kept else scalar.rebuilt(e, new)
    moved = NONE.union(*(part.moved for part in parts))
    match e:
        case Select():
            asked = seeds & {c.operand for c in conjuncts(e.cond) if isinstance(c, Present)}
            return _Found(e, (asked | parts[1].needed) & parts[2].needed, moved)
        case Call(fn="mul"):
            needed = parts[0].needed | parts[1].needed
            moved |= needed
        case Call(fn="div"):
            needed = parts[0].needed
            moved |= needed
        case Call(fn="add" | "sub"):
            needed = parts[0].needed & parts[1].needed
        case Call(fn="neg") | Cast() | Reduce(kind="sum"):
            needed = parts[0].needed
        case _:
            return _Found(e, NONE, moved)
    for seed in sorted(needed & moved):
        e = scalar.select(Present(seed), e, ZERO)
    return _Found(e, needed, moved)
