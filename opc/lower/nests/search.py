"""Positions that only a scatter asks for: found row by row where it uses them, not in a tensor of their own.

The gradient of max pooling adds each number at the index that an argmax over its window names. So the argmax is put into the
scatter, which computes it for a row of terms at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from opc.ir.affine import Affine, Index
from opc.ir.expr import SEARCHES, Axis, Expr, GroupRef, Read, Reduce, has_reduction, operands_read, reads, rewrite, walk
from opc.ir.op import Assign, Op
from opc.lower.nests.flat import choose_vector_axis, flat_statement
from opc.lower.nests.scatter import scatter_plan
from opc.records import replace
from opc.transform.indices import Namer, index_names, op_names, substitute


def inline_searches(op: Op) -> Op:
    """Return the op with searches that one scatter alone asks for put into its indices."""
    namer = Namer(op_names(op) | index_names(op))
    for s in op.body:
        if not _is_search(op, s) or not any(t.name == s.target for t in op.temporaries):
            continue
        users = [u for u in op.body if s.target in operands_read(u.value)]
        new = _put_in(op, s, users[0], namer) if len(users) == 1 else None
        if new is not None:
            body = tuple(new if u is users[0] else u for u in op.body if u is not s)
            op = replace(op, body=body, temporaries=tuple(t for t in op.temporaries if t.name != s.target))
    return op


def _is_search(op: Op, s: Assign) -> bool:
    """Whether a statement is a search of its own for each element, run in rows along its last index."""
    e = s.value
    if not isinstance(e, Reduce) or e.kind not in SEARCHES or has_reduction(e.body):
        return False
    flat = flat_statement(op, s)
    if flat is None or any(isinstance(i, GroupRef) for i in s.indices) or not s.indices:
        return False
    plain = all(isinstance(i, Affine) for r in reads(e.body) for i in r.indices) and not any(r.checked for r in reads(e.body))
    given = all(isinstance(a, Axis) and not a.extent.indices() for a in e.axes)
    return plain and given and choose_vector_axis(op, flat) == s.indices[-1]


def _put_in(op: Op, s: Assign, user: Assign, namer: Namer) -> Assign | None:
    """Return a scatter with the search in its indices, None when it uses the positions in another way."""
    plan = scatter_plan(op, user)
    if plan is None or plan.vector_axis is not None or any(isinstance(i, GroupRef) for i in user.indices):
        return None
    found = {r.indices for r in reads(user.value) if r.operand == s.target}
    in_places = {r.indices for _, p in plan.scatter_indices for r in reads(p) if r.operand == s.target}
    others = [*(g for g in plan.guards if not isinstance(g, Affine)), plan.body, *plan.given]
    if len(found) != 1 or found != in_places or any(r.operand == s.target for e in others for r in reads(e)):
        return None
    (indices,) = found
    names = [i.index if isinstance(i, Affine) else None for i in indices]
    last = plan.reduction.axes[-1]
    known = set(plan.statement.indices) - {index for index, _ in plan.scatter_indices}
    known |= set(plan.reduction.extents)
    if not isinstance(last, Axis) or names[-1] != last.index or len(set(names)) != len(names) or not set(names) <= known:
        return None
    value = _renamed(s, [str(n) for n in names], namer)
    return replace(user, value=rewrite(user.value, lambda e: value if isinstance(e, Read) and e.operand == s.target else e))


def _renamed(s: Assign, names: list[str], namer: Namer) -> Reduce:
    """Return the search with the indices of its statement under other names, and axes that nothing else has."""
    e = s.value
    assert isinstance(e, Reduce), "a search is a reduction"
    axes = {a.index: namer.fresh(f"{a.index}_found") for a in e.axes if isinstance(a, Axis)}
    new = {old: Affine.of(Index(name)) for old, name in (*zip((str(i) for i in s.indices), names), *axes.items())}
    body = substitute(e.body, new)
    return replace(e, axes=tuple(replace(a, index=axes[a.index]) for a in e.axes if isinstance(a, Axis)), body=body)


def searches(parts: Iterable[Expr]) -> list[Reduce]:
    """Return the searches in expressions, each once."""
    return list(dict.fromkeys(n for e in parts for n in walk(e) if isinstance(n, Reduce) and n.kind in SEARCHES))
