"""Scatters of the same terms to the same places as one: of a gradient by what is used in two ways.

`sum[i](a[n, i] if e == ids[n, i] else 0) + sum[j](b[n, j] if e == ids[n, j] else 0)` goes through the terms once. What a term
reads at the index of the target, of a value that is computed at all indices, is what another statement has computed at the
places alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from opc.ir.affine import Affine, Index
from opc.ir.expr import (
    Axis,
    Call,
    Expr,
    Read,
    Reduce,
    free_indices,
    has_reduction,
    may_refuse,
    operands_read,
    reads,
    rewrite,
    walk,
)
from opc.ir.op import Assign, Op
from opc.lower.alone import literals
from opc.lower.nests.scatter import equalities, is_scatter, place
from opc.lower.nests.terms import conditions_of
from opc.records import replace
from opc.transform.indices import substitute
from opc.transform.normalize import prune


def with_joined_scatters(op: Op) -> Op:
    """Return the op with sums of such scatters as one, and without the values that no term needs then."""
    body = tuple(_with_known_values(op, n, _joined(op, s)) for n, s in enumerate(op.body))
    if all(new is s for new, s in zip(body, op.body, strict=True)):
        return op
    return prune(op.with_body(body), (o.name for o in op.outputs))


def _joined(op: Op, s: Assign) -> Assign:
    def rule(e: Expr) -> Expr:
        if not isinstance(e, Call) or e.fn != "add":
            return e
        a, b = e.args
        if not isinstance(a, Reduce) or not isinstance(b, Reduce) or not a.type == b.type == e.type:
            return e
        term = _renamed(b, a)
        if term is None or not is_scatter(op, s, a) or not is_scatter(op, s, b):
            return e
        conditions, own = conditions_of(a.body)
        others, other = conditions_of(term)
        alike = conditions == others and list(map(literals, conditions)) == list(map(literals, others))
        if not alike or own.type != other.type:
            return e
        return replace(a, body=_with_term(a.body, own, Call("add", (own, other), own.type, e.span)))

    if not any(isinstance(n, Call) and n.fn == "add" and all(isinstance(x, Reduce) for x in n.args) for n in walk(s.value)):
        return s
    value = rewrite(s.value, rule)
    return s if value == s.value else replace(s, value=value)


def _renamed(e: Reduce, to: Reduce) -> Expr | None:
    """Return the body of a sum with the indices of another one over the same points."""
    if e.kind != "sum" or to.kind != "sum" or len(e.axes) != len(to.axes):
        return None
    names: dict[str, Affine] = {}
    for a, b in zip(e.axes, to.axes, strict=True):
        if not isinstance(a, Axis) or not isinstance(b, Axis) or a.extent != b.extent or a.extent.indices():
            return None
        names[a.index] = Affine.of(Index(b.index))
    if any(b.index in free_indices(e) for b in to.axes if isinstance(b, Axis)):
        return None
    return substitute(e.body, names)


def _with_term(body: Expr, term: Expr, new: Expr) -> Expr:
    return rewrite(body, lambda e: new if e is term else e)


def _with_known_values(op: Op, n: int, s: Assign) -> Assign:
    """Return a scatter whose terms read what is computed at their places, where a statement before it does that."""
    if not isinstance(s.value, Reduce) or not is_scatter(op, s, s.value):
        return s
    conditions, term = conditions_of(s.value.body, s.value.kind)
    targets = {i for i in s.indices if isinstance(i, str)}
    named = {i: p for c in conditions for i, p in equalities(c) if i in targets}
    statements = {t.target: t for t in op.body[:n]}
    temporaries = {t.name for t in op.temporaries}

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Read) or e.operand not in temporaries or e.operand not in statements:
            return e
        at = [i.index for i in e.indices if isinstance(i, Affine) and i.index in named]
        if len(at) != 1 or at[0] is None or not all(isinstance(i, Affine) and i.index is not None for i in e.indices):
            return e
        there = _value_at(statements[e.operand], e, at[0], named[at[0]])
        return e if there is None else next(_computed(op, statements.values(), there, operands_read(s.value)), e)

    new = rewrite(term, rule)
    return s if new == term else replace(s, value=replace(s.value, body=_with_term(s.value.body, term, new)))


def _value_at(definition: Assign, e: Read, index: str, position: Expr) -> Expr | None:
    """Return what a read of a statement's target is, with an expression for an index."""
    if has_reduction(definition.value) or not all(isinstance(i, str) for i in definition.indices):
        return None
    values = {str(name): i for name, i in zip(definition.indices, e.indices, strict=True) if isinstance(i, Affine)}
    return place(substitute(definition.value, values), index, position)


def _computed(op: Op, statements: Iterable[Assign], value: Expr, at_hand: Collection[str]) -> Iterator[Read]:
    """Yield reads of temporaries that hold a value at the points where it is asked for, without asking more of a call than those
    `at_hand` do."""
    looked_up = {r.operand: r for r in reads(value)}
    wanted, temporaries = _plain(value), {t.name for t in op.temporaries}
    for s in statements:
        if s.target not in temporaries or has_reduction(s.value) or not all(isinstance(i, str) for i in s.indices):
            continue
        if may_refuse(s.value) and s.target not in at_hand:
            continue
        names: dict[str, Affine] = {}
        for r in reads(s.value):
            other = looked_up.get(r.operand)
            if other is None or len(other.indices) != len(r.indices):
                break
            names |= {
                i.index: j
                for i, j in zip(r.indices, other.indices, strict=True)
                if isinstance(i, Affine) and i.index is not None and isinstance(j, Affine)
            }
        else:
            if not set(s.indices) <= names.keys():
                continue
            if _plain(substitute(s.value, names)) == wanted and literals(s.value) == literals(value):
                indices = tuple(names[str(i)] for i in s.indices)
                yield Read(s.target, indices, op.operand(s.target).type, span=value.span)


def _plain(e: Expr) -> Expr:
    """Return a value without what is asked of its indices: the statement that computes it has asked that."""
    return rewrite(e, lambda r: replace(r, checked=()) if isinstance(r, Read) and r.checked else r)
