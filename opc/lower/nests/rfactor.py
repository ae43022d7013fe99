"""rfactor: a sum into a single number that runs as a loop nest becomes partial sums, on which all threads work.

A nest is split over the points of its target, and a single number has one. So each row of such a sum becomes a sum of its own
or, where its terms don't lie in rows because they are looked up at computed places, each term a value of its own. Adding those
up is regular: a row stage does it, cut in a way that depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import Weak
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Expr,
    GroupRef,
    Read,
    Reduce,
    ReduceAxis,
    children,
    free_groups,
    free_indices,
    has_reduction,
    reads,
    with_children,
)
from opc.ir.op import Assign, Group, Op, Operand
from opc.lower.contractions.contraction import contraction_stage
from opc.lower.nests.flat import best_axis, flat_statement, is_short, jumps
from opc.lower.rows.flatten import IrregularError, flatten
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names

Entries: TypeAlias = tuple[str | GroupRef, ...]
"""The indices of a statement's target."""

KINDS = ("sum", "prod", "any", "all")
"""These have a value where there are no terms; the report that a maximum has none names all axes."""


def rfactor(op: Op) -> Op:
    """Return the op with the parts of such sums, and of other reductions, as statements ahead of them."""
    return _SingleNumbers(op, "partial").changed(s.target for s in op.body if not s.indices)


class Rfactor:
    """Takes reductions apart, whose parts are statements of their own; which ones, and how, a subclass says by `parts`."""

    def __init__(self, op: Op, word: str) -> None:
        self.op, self.word = op, word
        self.namer = Namer(op_names(op) | index_names(op))
        self.made: list[Assign] = []
        self.temporaries: list[Operand] = []

    def changed(self, targets: Iterable[str]) -> Op:
        """Return the op with the reductions in the statements of some targets taken apart."""
        some, body = frozenset(targets), list[Assign]()
        for s in self.op.body:
            after = replace(s, value=self._split(s, s.value)) if s.target in some else s
            body += [*self.made, after]
            self.made = []
        if not self.temporaries:
            return self.op
        return replace(self.op, body=tuple(body), temporaries=(*self.op.temporaries, *self.temporaries))

    def parts(self, s: Assign, e: Reduce) -> tuple[Entries, tuple[ReduceAxis, ...]] | None:
        """Return the indices of the parts of a reduction in a statement, and the axes that one part goes over; None: it stays."""
        raise NotImplementedError(f"{type(self).__name__} says what it takes apart")

    def goes_into(self, e: Expr) -> bool:
        """Whether reductions in an expression are taken apart: what is computed on a condition only stays as it is."""
        return isinstance(e, Call | Cast)

    def _split(self, s: Assign, e: Expr) -> Expr:
        found = self.parts(s, e) if isinstance(e, Reduce) and not _varies(self.op, e) else None
        if isinstance(e, Reduce) and found is not None:
            return self._rfactored(s, e, *found)
        return with_children(e, tuple(self._split(s, c) for c in children(e))) if self.goes_into(e) else e

    def _rfactored(self, s: Assign, e: Reduce, indices: Entries, inner: tuple[ReduceAxis, ...]) -> Expr:
        """Append the statement of the parts of a reduction, and return the reduction of them."""
        outer = tuple(a for a in e.axes if a not in inner)
        value: Expr = replace(e, axes=inner) if inner else e.body
        assert not isinstance(value.type, Weak), "what has a weak type is not split"
        target = self.op.operand(s.target)
        dims: dict[str | GroupRef, Affine | Group] = dict(zip(s.indices, target.dims, strict=True))
        dims |= {entry(a): a.extent if isinstance(a, Axis) else Group(a.name) for a in outer}
        name = self.namer.fresh(f"{s.target}_{self.word}")
        own = tuple(dims[i] for i in indices)
        self.temporaries.append(replace(target, name=name, type=value.type, dims=own, optional=False, doc=""))
        self.made.append(Assign(name, indices, value, s.span))
        return replace(e, axes=outer, body=Read(name, bare(indices), value.type, span=e.span))


def entry(a: ReduceAxis) -> str | GroupRef:
    """Return the index that goes along an axis of a reduction."""
    return a.index if isinstance(a, Axis) else GroupRef(a.name)


def _varies(op: Op, e: Reduce) -> bool:
    """Whether the step that a recurrence is at tells an extent of a reduction: its parts have no memory ahead of the steps."""
    operands = op.operands
    told = {Dim(name) for name, _ in op.dims} | {a for o in operands for d in o.dims if isinstance(d, Affine) for a in d.atoms()}
    extents = e.extents.values()
    return any(isinstance(atom, Dim) and atom not in told for extent in extents for atom in extent.atoms())


class _SingleNumbers(Rfactor):
    def parts(self, s: Assign, e: Reduce) -> tuple[Entries, tuple[ReduceAxis, ...]] | None:
        """As `Rfactor` says."""
        if not _is_single(self.op, s, e):
            return None
        inner = _row(self.op, s, e)
        if not inner and not _is_looked_up(self.op, e):
            return None
        return tuple(entry(a) for a in e.axes if a not in inner), inner


def _is_single(op: Op, s: Assign, e: Reduce) -> bool:
    """Whether a sum in a statement with a single number as its target is a loop nest, over axes of which each has an extent of
    its own."""
    if e.kind not in KINDS or isinstance(e.type, Weak) or isinstance(e.body.type, Weak) or has_reduction(e.body):
        return False
    if any(isinstance(a, BroadcastAxis) or (isinstance(a, Axis) and a.extent.indices()) for a in e.axes):
        return False
    alone = replace(s, value=e)
    if contraction_stage(op, alone, s.target) is not None:
        return False
    try:
        flatten(replace(op, body=(alone,)))
    except IrregularError:
        return True
    return False


def _row(op: Op, s: Assign, e: Reduce) -> tuple[ReduceAxis, ...]:
    """Return the axis along which the terms lie in rows, if there is one: a group may turn out to have one point."""
    flat = flat_statement(op, replace(s, value=e))
    if flat is None or len(e.axes) < 2:
        return ()
    assert isinstance(flat.value, Reduce), "a flat statement has the same value"
    best = best_axis(op, flat.value)
    if best is None or is_short(op, best.extent) or any(jumps(r, best.index) for r in reads(flat.value.body)):
        return ()
    return tuple(a for a in e.axes if isinstance(a, Axis) and a.index == best.index)


def _is_looked_up(op: Op, e: Reduce) -> bool:
    """Whether terms are found at computed places, one for each element of an operand or fewer."""
    if all(isinstance(a, Axis) and is_short(op, a.extent) for a in e.axes):
        return False
    computed = any(not isinstance(i, Affine | GroupRef) for r in reads(e.body) for i in r.indices)
    names = {a.index if isinstance(a, Axis) else a.name for a in e.axes}
    return computed and any(names <= free_indices(r) | free_groups(r) for r in reads(e.body))
