"""Recurrences: values along one index that are made from themselves at the indices before, or behind.

Statements stand in program order, and each reads what stands above it. A recurrence is the one exception: of statements that
read one another in a circle, each is computed at one index after the other, along one axis of equal size, and what they read of
one another lies at an index that was before: by its form, by the range of a loop, or by a condition around it. At the same index
they read what stands above, as elsewhere.

    h[t, d] = a[t, d]*(h[t - 1, d] if t > 0 else h0[d]) + b[t, d]

No node of the IR says so: the reads do. So a pass that changes statements changes recurrences, and the gradient of one is
another, which goes the other way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.diagnostics import Span
from opc.ir.access import Access, accesses, place
from opc.ir.affine import Affine, Index
from opc.ir.expr import Read, operands_read, reads
from opc.ir.node import remembered
from opc.ir.op import Assign, Op
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Statements whose values step together along one index: `targets` in program order.

    `axes` is the entry of each target's indices that they step along, of `extent` points; it `falls` from the last to the first.
    """

    targets: tuple[str, ...]
    axes: tuple[int, ...]
    extent: Affine
    falls: bool

    def axis_of(self, target: str) -> int:
        """Return the entry of a target's indices that it steps along."""
        return self.axes[self.targets.index(target)]

    def index_of(self, s: Assign) -> str:
        """Return the index that a statement steps along."""
        index = s.indices[self.axis_of(s.target)]
        assert isinstance(index, str), "a recurrence steps along a single index"
        return index


@dataclass(frozen=True, slots=True)
class NoRecurrence:
    """Why statements that read one another in a circle are none: what is read where it is not made yet."""

    read: Read
    reason: str
    span: Span


class NotSteppingError(ValueError):
    """Statements read one another in a circle that is no recurrence."""


@remembered("_circles")
def circles(op: Op) -> tuple[tuple[str, ...], ...]:
    """Return the targets of statements that read one another in a circle, or themselves, each circle in program order."""
    position = {s.target: n for n, s in enumerate(op.body)}
    edges = [sorted({position[name] for name in operands_read(s.value) if name in position}) for s in op.body]
    if all(m < n for n, below in enumerate(edges) for m in below):
        return ()
    found = (sorted(c) for c in components(edges) if len(c) > 1 or c[0] in edges[c[0]])
    return tuple(tuple(op.body[n].target for n in c) for c in sorted(found))


def components(edges: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph (Tarjan, 1972), without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    for root in range(len(edges)):
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        held.add(root)
        waiting = [(root, iter(edges[root]))]
        while waiting:
            node, left = waiting[-1]
            other = next(left, None)
            if other is None:
                waiting.pop()
                if waiting:
                    low[waiting[-1][0]] = min(low[waiting[-1][0]], low[node])
                if low[node] == order[node]:
                    at = stack.index(node)
                    found, stack[at:] = stack[at:], []
                    held -= set(found)
                    yield found
            elif other not in order:
                order[other] = low[other] = len(order)
                stack.append(other)
                held.add(other)
                waiting.append((other, iter(edges[other])))
            elif other in held:
                low[node] = min(low[node], order[other])


@remembered("_recurrences")
def recurrences(op: Op) -> tuple[Recurrence, ...]:
    """Return the recurrences of an op, in program order of their first statements.

    Raises:
        NotSteppingError: where statements read one another in a circle that is none; the verifier and the front end tell these.
    """
    found = [stepping(op, targets) for targets in circles(op)]
    for f in found:
        if isinstance(f, NoRecurrence):
            raise NotSteppingError(f"{op.name}: {f.reason}")
    return tuple(f for f in found if isinstance(f, Recurrence))


def recurrent(op: Op) -> frozenset[str]:
    """Return the targets of all statements that take part in recurrences."""
    return frozenset(name for circle in circles(op) for name in circle)


def kept_on(op: Op) -> frozenset[str]:
    """Return the targets in recurrences that these read at other steps than their own: their states, without what
    one step makes of them on the way."""
    found: set[str] = set()
    for own in recurrences(op):
        for s in (op.assignments[name] for name in own.targets):
            now = Affine.of(Index(own.index_of(s)))
            found |= {r.operand for r in _inner(s, own.targets) if place(r.indices[own.axis_of(r.operand)]) != now}
    return frozenset(found)


def stepping(op: Op, targets: tuple[str, ...]) -> Recurrence | NoRecurrence:
    """Return how the statements of a circle step, or why they don't."""
    statements = [op.assignments[name] for name in targets]
    first = statements[0]
    failed: list[NoRecurrence] = []
    for axis, index in enumerate(first.indices):
        if isinstance(index, str):
            for falls in (False, True):
                found = _along(op, statements, axis, falls)
                if isinstance(found, Recurrence):
                    return found
                failed.append(found)
    if failed:
        # The way in which most of the reads go tells best what is wrong with the others.
        return max(failed, key=lambda f: [r for s in statements for r in _inner(s, targets)].index(f.read))
    read = next(r for s in statements for r in _inner(s, targets))
    return NoRecurrence(read, f"'{first.target}' is made from itself, and has no index that it could step along", read.span)


def _inner(s: Assign, targets: Sequence[str]) -> Iterator[Read]:
    return (r for r in reads(s.value) if r.operand in targets)


def _along(op: Op, statements: Sequence[Assign], axis: int, falls: bool) -> Recurrence | NoRecurrence:
    """Return the recurrence of statements, the first of which steps along an entry of its indices, or the first read that is
    against it."""
    targets = tuple(s.target for s in statements)
    order = {name: n for n, name in enumerate(targets)}
    axes = {targets[0]: axis}
    waiting = [statements[0]]
    while waiting:
        s = waiting.pop()
        own = s.indices[axes[s.target]]
        for access in accesses(op, s.value):
            read = access.read
            if read.operand not in order:
                continue
            above = order[read.operand] < order[s.target]
            if read.operand not in axes:
                entry = _entry(access, str(own), falls, above)
                if entry is None:
                    at = next((str(i) for i in read.indices if isinstance(i, Affine)), "an index that is data")
                    reason = f"'{read.operand}' is read at {at}, which is not known to lie behind {own}"
                    return NoRecurrence(read, reason, read.span)
                axes[read.operand] = entry
                waiting.append(op.assignments[read.operand])
            against = _against(access, axes[read.operand], str(own), falls, above)
            if against is not None:
                return NoRecurrence(read, against, read.span)
    extents = {name: op.operand(name).dims[n] for name, n in axes.items()}
    extent = extents[targets[0]]
    for s in statements:
        for read in _inner(s, targets):
            if extents[read.operand] != extent or not isinstance(op.assignments[read.operand].indices[axes[read.operand]], str):
                reason = (
                    f"'{read.operand}' and '{targets[0]}' step together, and have {extents[read.operand]} and {extent} points"
                )
                return NoRecurrence(read, reason, read.span)
    assert isinstance(extent, Affine), "an index stands on a single axis"
    return Recurrence(targets, tuple(axes[name] for name in targets), extent, falls)


def _entry(access: Access, index: str, falls: bool, above: bool) -> int | None:
    """Return the entry of a read's indices that its operand steps along: one that lies behind, else one that holds `index`."""
    entries = {n: at for n, i in enumerate(access.read.indices) if (at := place(i)) is not None}
    held = [n for n, at in entries.items() if index in at.indices()]
    return next((n for n in (*held, *entries) if _against(access, n, index, falls, above) is None), held[0] if held else None)


def _against(access: Access, axis: int, index: str, falls: bool, above: bool) -> str | None:
    """Return why a read of a statement that steps along `index` lies where nothing is made yet; None where it does not.

    `above` tells that what is read stands above the statement.
    """
    read = access.read
    at = place(read.indices[axis])
    step = None if at is None else at - Index(index) if not falls else Affine.of(Index(index)) - at
    # What is at the same index is no earlier step's, also where conditions that can't hold together stand around it.
    if step is not None and ((step != Affine.of(0) and access.is_most(step, -1)) or (above and access.is_most(step, 0))):
        return None
    if step is None or not isinstance(read.indices[axis], Affine):
        return f"'{read.operand}' is read at an index that is data, which is not known to lie behind {index}"
    if access.is_most(step, 0):
        return f"'{read.operand}' is read at {at}, where it is being made"
    if index in step.indices():
        return f"'{read.operand}' is read at {at}, which is not known to lie behind {index}"
    return f"'{read.operand}' is read at {at}, where it is not made yet"


def in_order(op: Op) -> Op:
    """Return the op with its statements in such an order that each reads those before it, or its own recurrence.

    Where values that step together ask for one another in conditions alone, their adjoints no longer step together, and may stand
    the other way round.
    """
    targets = [s.target for s in op.body]
    position = {name: n for n, name in enumerate(targets)}
    edges = [sorted({position[name] for name in operands_read(s.value) if name in position}) for s in op.body]
    if all(m <= n for n, read in enumerate(edges) for m in read):
        return op
    found = [sorted(c) for c in components(edges)]
    of = {n: k for k, members in enumerate(found) for n in members}
    if all(m <= n or of[m] == of[n] for n, read in enumerate(edges) for m in read):
        return op
    left = {k: {of[m] for n in members for m in edges[n]} - {k} for k, members in enumerate(found)}
    order: list[int] = []
    while left:
        k = min((k for k, above in left.items() if not above), key=lambda k: found[k])
        order += found[k]
        del left[k]
        for above in left.values():
            above.discard(k)
    return op.with_body(tuple(op.body[n] for n in order))


@remembered("_segments")
def segments(op: Op) -> tuple[tuple[Recurrence | None, tuple[Assign, ...]], ...]:
    """Return the statements of an op in an order of computing: those of a recurrence together, the others as far as possible.

    Each segment reads what is in the segments before it; one with a recurrence holds its statements alone.
    """
    groups = recurrences(op)
    member = {name: g for g in groups for name in g.targets}
    if not groups:
        return ((None, op.body),)
    done: set[str] = set()
    pending = list(op.body)
    own = {s.target for s in op.body}
    found: list[tuple[Recurrence | None, tuple[Assign, ...]]] = []

    def is_ready(s: Assign, inside: frozenset[str] = frozenset()) -> bool:
        return all(name in done or name in inside for name in operands_read(s.value) & own)

    while pending:
        plain: list[Assign] = []
        for s in pending:
            if s.target not in member and is_ready(s):
                plain.append(s)
                done.add(s.target)
        if plain:
            found.append((None, tuple(plain)))
        else:
            group = next(
                g
                for g in groups
                if g.targets[0] not in done and all(is_ready(op.assignments[n], frozenset(g.targets)) for n in g.targets)
            )
            found.append((group, tuple(op.assignments[n] for n in group.targets)))
            done.update(group.targets)
        pending = [s for s in pending if s.target not in done]
    return tuple(found)


__all__ = [
    "NoRecurrence",
    "NotSteppingError",
    "Recurrence",
    "circles",
    "components",
    "in_order",
    "recurrences",
    "recurrent",
    "segments",
    "stepping",
]
