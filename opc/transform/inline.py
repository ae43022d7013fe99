"""Puts temporaries into their uses, and keeps one of several that hold the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from opc.ir.affine import Affine
from opc.ir.expr import Call, Expr, GroupRef, Read, Reduce, Select, children, has_reduction, operands_read, reads, size
from opc.ir.op import Assign, Op
from opc.records import replace
from opc.transform import scalar
from opc.transform.alike import canonical, form
from opc.transform.domain import Domain
from opc.transform.indices import with_operands
from opc.transform.normalize import placed, put, runs


def merge(op: Op) -> Op:
    """Return the op with every temporary that holds the same as an operand assigned before it read from there."""
    temporaries = {o.name for o in op.temporaries}
    known: dict[tuple[object, ...], list[Assign]] = {}
    gone: dict[str, str] = {}
    body: list[Assign] = []

    for s in op.body:
        s = s.with_value(with_operands(s.value, gone))
        operand = op.operand(s.target)
        layout = tuple(i if isinstance(i, GroupRef) else None for i in s.indices)
        if s.target in temporaries:
            alike = known.setdefault((form(s.value), layout, operand.dims, operand.type), [])
            same = next((t for t in alike if canonical(t.value, t.indices) == canonical(s.value, s.indices)), None)
            if same is not None:
                gone[s.target] = same.target
                continue
            alike.append(s)
        body.append(s)
    if not gone:
        return op
    # A recurrence reads what is assigned below, too.
    body = [s.with_value(with_operands(s.value, gone)) for s in body]
    return replace(op, body=tuple(body), temporaries=tuple(o for o in op.temporaries if o.name not in gone))


def inline(op: Op, keep: Collection[str] = (), limit: int = 48) -> Op:
    """Return the op with temporaries that are copies, or are used once at as many points as they have, put into their uses.

    Those in `keep` stay. `limit` bounds the number of nodes of a statement that grows by this.
    """
    candidates = {o.name for o in op.temporaries} - set(keep)
    body = list(op.body)
    readers: defaultdict[str, set[int]] = defaultdict(set)
    for n, s in enumerate(body):
        for name in operands_read(s.value):
            readers[name].add(n)
    gone: set[int] = set()
    changed = True
    while changed:
        changed = False
        for n, s in enumerate(body):
            if n in gone or s.target not in candidates:
                continue
            users = sorted(readers[s.target] - gone)
            if users and users[0] <= n and (n in users or not scalar.is_leaf(s.value)):
                continue  # a recurrence reads it before it is assigned
            if not _inlines(s, [body[k] for k in users], op, limit):
                continue
            for k in users:
                before, body[k] = operands_read(body[k].value), _inlined(body[k], s)
                for name in before ^ operands_read(body[k].value):
                    readers[name] ^= {k}
            gone.add(n)
            changed = True
    if not gone:
        return op
    left = {body[n].target for n in gone}
    return replace(
        op,
        body=tuple(s for n, s in enumerate(body) if n not in gone),
        temporaries=tuple(o for o in op.temporaries if o.name not in left),
    )


def _inlines(s: Assign, users: list[Assign], op: Op, limit: int) -> bool:
    uses = [r for u in users for r in reads(u.value) if r.operand == s.target]
    if any(r.pad is not None or not placed(r) for r in uses):
        return False
    if scalar.is_leaf(s.value) or (isinstance(s.value, Call) and s.value.fn == "neg" and scalar.is_leaf(s.value.args[0])):
        return True
    if len(users) != 1 or _uses(users[0].value, s.target) != 1:
        return False
    if runs(s.value) or (has_reduction(s.value) and _indexes(users[0].value, s.target)):
        return False
    user = users[0]
    grown = size(user.value) + size(s.value) * len(uses)
    if grown > limit:
        return False
    own = Domain.of(user, op.operand(user.target)) if has_reduction(s.value) else None
    return all(_covers(r, d) and own in (None, d) for r, d in _places(user, s.target, op))


def _indexes(e: Expr, name: str) -> bool:
    """Whether an operand is read inside the index of another."""
    return any(r.operand == name for outer in reads(e) for i in children(outer) for r in reads(i))


def _uses(e: Expr, name: str) -> int:
    """Return how often a point of `e` reads an operand, the two sides of a conditional being exclusive."""
    if name not in operands_read(e):
        return 0
    if isinstance(e, Select):
        return _uses(e.cond, name) + max(_uses(e.then, name), _uses(e.other, name))
    own = 1 if isinstance(e, Read) and e.operand == name else 0
    return own + sum(_uses(c, name) for c in children(e))


def _places(s: Assign, name: str, op: Op) -> Iterator[tuple[Read, Domain]]:
    """Yield every read of an operand in a statement, with the loops around it."""

    def visit(e: Expr, domain: Domain) -> Iterator[tuple[Read, Domain]]:
        if name not in operands_read(e):
            return
        if isinstance(e, Read) and e.operand == name:
            yield e, domain
        inner = domain.inside(e.axes) if isinstance(e, Reduce) else domain
        for c in children(e):
            yield from visit(c, inner)

    return visit(s.value, Domain.of(s, op.operand(s.target)))


def _covers(r: Read, domain: Domain) -> bool:
    """Whether a read uses every loop around it as a bare index, so that its value is needed once at each point."""
    used = {i.index for i in r.indices if isinstance(i, Affine)}
    groups = {i.name for i in r.indices if isinstance(i, GroupRef)}
    return {a.index for a in domain.axes} <= used and {name for name, _ in domain.groups} <= groups


def _inlined(user: Assign, definition: Assign) -> Assign:
    def rule(e: Expr) -> Expr:
        return put(definition, e) if isinstance(e, Read) and e.operand == definition.target else e

    return replace(user, value=scalar.rewritten(user.value, rule))
