"""Statements as a slice runs them, which is at one point of the leading axes of an op.

ONNX's Attention reads a mask at `minimum(b, MB - 1)`, so that an axis of size 1 is for all batches. Such an index is affine in
pieces, each under a condition on `b`; at one point of `b` it is one place, which is computed once for a slice. And what has an
element for each point of leading axes alone, such as the length of each batch, is a number there, which stands where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from opc.ir.affine import Affine, Dim
from opc.ir.expr import Const, Expr, IndexValue, Read, Select, has_reduction, operands_read, reads, rewrite, walk
from opc.ir.op import Assign, Group, Op
from opc.lower.columns import gap
from opc.lower.places import Clamps
from opc.records import replace
from opc.transform.normalize import placed, put

MOST_OPERANDS = 32
"""How many operands, and how many temporaries, an op may have that must go by slices: some more temporaries come later, and
`most_sliced` of `opc/core/slices.h` is 64."""


def without_points(op: Op, leading: Sequence[str]) -> Op:
    """Return the op with temporaries that have leading axes alone, and are made of inputs without a reduction, in their uses."""
    temporaries, inputs = {t.name for t in op.temporaries}, {o.name for o in op.inputs}
    points: dict[str, Assign] = {}
    for s in op.body:
        dims = op.operand(s.target).dims
        few = 0 < len(dims) <= len(leading) and dims == tuple(Affine.of(Dim(d)) for d in leading[: len(dims)])
        if s.target in temporaries and few and not has_reduction(s.value) and operands_read(s.value) <= inputs:
            points[s.target] = s
    uses = [r for s in op.body for r in reads(s.value) if r.operand in points]
    for r in uses:
        if r.pad is not None or r.checked or not placed(r):
            points.pop(r.operand, None)
    if not points:
        return op

    def rule(e: Expr) -> Expr:
        return put(points[e.operand], e) if isinstance(e, Read) and e.operand in points else e

    body = tuple(s.with_value(rewrite(s.value, rule)) for s in op.body if s.target not in points)
    return replace(op, body=body, temporaries=tuple(t for t in op.temporaries if t.name not in points))


def with_clamps(ops: Sequence[Op], leading: Sequence[str]) -> tuple[list[Op], Clamps] | None:
    """Return the ops with one read in place of several that a condition on leading indices chooses from, and where these are.

    A read at `b` stands there for one at `minimum(b, MB - 1)`, which is right in a slice alone. None where an operand is read at
    other places too.
    """
    temporaries = {t.name for op in ops for t in op.temporaries}
    if max(len(ops[0].inputs) + len(ops[0].outputs), len(temporaries)) > MOST_OPERANDS:
        return None
    found: dict[str, frozenset[int]] = {}
    made: list[Op] = []
    for op in ops:
        body = []
        for s in op.body:
            value = s.value
            for last, at in _asked(op, s, leading):
                axes = {(r.operand, n) for r in reads(value) for n in _axes(op, r, last)}
                merged = rewrite(value, partial(_merged, op, last, at, False))
                if merged is value:
                    continue
                left = rewrite(value, partial(_merged, op, last, at, True))
                if operands_read(left) & {name for name, _ in axes}:
                    return None
                for name, n in axes:
                    found[name] = found.get(name, frozenset()) | {n}
                value = merged
            body.append(s.with_value(value) if value is not s.value else s)
        made.append(op.with_body(tuple(body)))
    for old, new in zip(ops, made, strict=True):
        for a, b in zip(old.body, new.body, strict=True):
            if a is b and operands_read(a.value) & found.keys():
                return None
    return made, found


def _asked(op: Op, s: Assign, leading: Sequence[str]) -> Iterator[tuple[Dim, Affine]]:
    """Yield the size and the place of each condition on leading indices that says a place is inside of an axis."""
    dims = op.operand(s.target).dims
    own = {i for i, d, size in zip(s.indices, dims, leading, strict=False) if isinstance(i, str) and d == Affine.of(Dim(size))}
    seen: dict[tuple[Dim, Affine], None] = {}
    for e in walk(s.value):
        f = gap(e.cond) if isinstance(e, Select) else None
        if f is None or not f.indices() or not f.indices() <= own:
            continue
        for size in sorted((a for a in f.atoms() if isinstance(a, Dim)), key=str):
            place = Affine.of(size) - 1 - f  # one that may be negative is padding there
            if place.index is not None:
                seen[size, place] = None
    yield from seen


def _axes(op: Op, r: Read, size: Dim) -> list[int]:
    return [n for n, d in enumerate(op.operand(r.operand).dims) if not isinstance(d, Group) and d == Affine.of(size)]


def _merged(op: Op, size: Dim, at: Affine, leave_out: bool, e: Expr) -> Expr:
    """Return the side for places inside of an axis where the other one is the same at the last place; 0 to `leave_out` both."""
    if not isinstance(e, Select) or gap(e.cond) != Affine.of(size) - 1 - at:
        return e
    last = Affine.of(size) - 1
    clamped = 0

    def rule(x: Expr) -> Expr:
        nonlocal clamped
        if not isinstance(x, Read):
            return x
        places = [n for n in _axes(op, x, size) if x.indices[n] == at]
        if not places or x.pad is None:
            return x
        clamped += 1
        return replace(x, indices=tuple(last if n in places else i for n, i in enumerate(x.indices)))

    if rewrite(e.then, rule) != e.other or not clamped:
        return e
    if any(isinstance(x, IndexValue) and size in x.value.atoms() for x in walk(e.then)):
        return e
    return Const(0, e.type) if leave_out else e.then
