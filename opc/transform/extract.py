"""Gives expressions statements of their own."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import field

from opc.analysis.bounds.inside import ReadsInside
from opc.analysis.bounds.largest import largest
from opc.ir.affine import Affine, Index, maximum
from opc.ir.dtypes import ElementType, Weak
from opc.ir.expr import (
    Axis,
    Expr,
    GroupAxis,
    GroupRef,
    Present,
    Read,
    Reduce,
    Select,
    free_groups,
    free_indices,
    operands_read,
    reads,
    rewrite,
)
from opc.ir.narrow import declared
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.ir.rules import converted
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.alike import canonical
from opc.transform.domain import Domain
from opc.transform.guard import padded
from opc.transform.indices import Namer, bare
from opc.transform.inside import Inside


@dataclass(slots=True)
class Extractor:
    """Collects new statements for expressions of one op; equal expressions get one temporary.

    Its caller takes `temporaries` and, before the statement they serve, `statements`.
    """

    op: Op
    namer: Namer
    exact: bool = False
    """Whether a call that the op refuses must still be refused: nobody asks what is derived for more than its source has."""
    inside: Inside = field(init=False)
    known: dict[tuple[Expr, tuple[DimSpec, ...]], str] = field(default_factory=dict)
    temporaries: list[Operand] = field(default_factory=list)
    statements: list[Assign] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inside = Inside(self.op)

    @property
    def optional(self) -> set[str]:
        """The operands that may be absent."""
        return {o.name for o in self.op.inputs if o.optional}

    def extract(self, e: Expr, domain: Domain, name: str, guards: tuple[Expr, ...] = (), asked: bool = True) -> Expr | None:
        """Return a read of a temporary holding `e` at every point of the loops it uses, or None when it can't be one.

        `guards` are the conditions `e` stands under. Where it may read outside an operand without them, the temporary keeps
        them, and is 0 where they don't hold. So are the greatest or least of nothing and a checked read, or, if `exact`, it is
        None; a loop around whose range depends on an index is a condition too. If not `asked`, a call may need
        none of it, and the greatest or least of nothing is 0.
        """
        kind = e.type
        if isinstance(kind, Weak):
            return None
        if guards:
            # What is there for others, who ask for it under no condition, is there for this one.
            indices, dims = signature(e, domain)
            found = self.known.get((canonical(e, indices), dims))
            if found is not None:
                return converted(Read(found, bare(indices), declared(self.op, kind), span=e.span), kind)
        if guards and not self.inside(e, domain, self.temporaries):
            known = free_indices(e)
            needed = [g for g in guards if not scalar.any_reads(g) and free_indices(g) and free_indices(g) <= known]
            if needed:
                e = Select(functools.reduce(lambda a, b: scalar.raw("and", a, b), needed), e, scalar.nothing(kind), kind)
            if not self.inside(e, domain, self.temporaries):
                return None
        if guards or any(a.extent.indices() for a in domain.axes):
            free = free_indices(e)
            ranges = {a.index: a.extent for a in domain.axes if a.index in free}
            some = self.inside.with_some(e, ranges, left=lambda extent: not guards and not extent.indices())
            some = rewrite(some, _unchecked)
            if self.exact and some != e:
                return None
            e = some
        elif not asked:
            e = self.inside.with_some(e, {a.index: a.extent for a in domain.axes})
        indices, dims = signature(e, domain)
        if any(not isinstance(d, Group) and d.indices() for d in dims):
            return None
        return self._stored(e, kind, indices, dims, name)

    def _stored(
        self, e: Expr, kind: ElementType, indices: tuple[str | GroupRef, ...], dims: tuple[DimSpec, ...], name: str
    ) -> Expr:
        """Return a read of a temporary of this shape that holds `e`, and has the type that the op declares."""
        key, whole = (canonical(e, indices), dims), declared(self.op, kind)
        if key not in self.known:
            self.known[key] = self.namer.fresh(name)
            self.temporaries.append(Operand(self.known[key], whole, dims))
            self.statements.append(Assign(self.known[key], indices, converted(e, whole), e.span))
        return converted(Read(self.known[key], bare(indices), whole, span=e.span), kind)

    def set_apart(self, e: Reduce, domain: Domain, name: str, guards: tuple[Expr, ...]) -> Expr | None:
        """Return a read of a temporary that holds `e`, which `extract` can't move out of its loops as it is.

        A range that depends on other indices becomes the largest it gets. Where that is more, the temporary is 0; so it is for an
        operand that is absent. A read that may then be outside is padded, and so is one that is checked: the loops left behind
        may ask for it nowhere. None where no largest range is known.
        """
        boxed = self._boxed(e, domain)
        if boxed is None or isinstance(e.type, Weak):
            return None
        whole, more = boxed
        used, groups = free_indices(e), free_groups(e)
        asked = [g for g in guards if not reads(g) and free_indices(g) <= used and free_groups(g) <= groups]
        value = self.inside.with_some(e, {a.index: a.extent for a in whole.axes})
        for optional in sorted(scalar.unguarded(value) & self.optional):
            value = scalar.select(Present(optional), value, scalar.nothing(e.type))
        for g in reversed(list(dict.fromkeys((*asked, *more)))):
            value = scalar.select(g, value, scalar.nothing(e.type))
        value = rewrite(value, _unchecked)
        indices, dims = signature(value, whole)
        read = self._stored(value, e.type, indices, dims, name)
        if self.statements and self.statements[-1].target in operands_read(read):
            known = replace(
                self.op, temporaries=(*self.op.temporaries, *self.temporaries), body=(*self.op.body, *self.statements)
            )
            self.statements[-1] = padded(ReadsInside(known), self.statements[-1])
        return read

    def _boxed(self, e: Expr, domain: Domain) -> tuple[Domain, list[Expr]] | None:
        """Return a domain with the largest ranges for those that depend on other indices, and conditions: where `e` is."""
        ranges: dict[str, Affine] = {}
        conditions: list[Expr] = []
        used = free_indices(e)
        for axis in domain.axes:
            ranges[axis.index] = axis.extent
            if not axis.extent.indices():
                continue
            bound = largest(self.inside.known(), axis.extent, ranges)
            if bound is None:
                if axis.index in used:
                    return None
                continue
            ranges[axis.index] = self._size(bound)
            if axis.index not in used:
                continue
            limits = [axis.extent] if axis.extent.indices() <= used else [bound] if bound != ranges[axis.index] else []
            here = scalar.index_value(Affine.of(Index(axis.index)))
            conditions += [scalar.raw("lt", here, scalar.index_value(limit)) for limit in limits]
        return replace(domain, axes=tuple(Axis(i, x) for i, x in ranges.items())), conditions

    def _size(self, bound: Affine) -> Affine:
        """Return the size of an axis for indices less than a bound, which may be negative."""
        known = self.inside.known()
        sizes = dict.fromkeys(d for o in (*self.op.inputs, *self.op.outputs) for d in o.dims if isinstance(d, Affine))
        if bound in sizes or known.nonnegative(bound, {}):
            return bound
        return next((d for d in sizes if known.at_most(bound, d)), maximum(bound, Affine.of(0)))


def _unchecked(e: Expr) -> Expr:
    if not isinstance(e, Read) or not e.checked:
        return e
    return replace(e, pad=scalar.nothing(e.type), checked=())


def is_shadowing(e: Expr, domain: Domain) -> bool:
    """Whether `e` is a reduction over a group of axes that stands inside a loop over the same group."""
    around = {name for name, _ in domain.groups}
    return isinstance(e, Reduce) and any(isinstance(a, GroupAxis) and a.name in around for a in e.axes)


def signature(e: Expr, domain: Domain) -> tuple[tuple[str | GroupRef, ...], tuple[DimSpec, ...]]:
    """Return the indices and the shape of a temporary that holds `e`, which stands inside `domain`.

    They are ordered as in the first read in `e` that uses them all, each alone in an axis or in a window along it; else groups
    first.
    """
    free, groups = free_indices(e), free_groups(e)
    sizes: dict[str | GroupRef, DimSpec] = {GroupRef(name): Group(name, of) for name, of in domain.groups if name in groups}
    sizes.update({a.index: a.extent for a in domain.axes if a.index in free})
    for r in reads(e):
        order = [_placed(i, sizes.keys()) for i in r.indices if isinstance(i, Affine | GroupRef)]
        if set(order) >= sizes.keys():
            kept = dict.fromkeys(i for i in order if i is not None and i in sizes)
            return tuple(kept), tuple(sizes[i] for i in kept)
    return tuple(sizes), tuple(sizes.values())


def _placed(index: Affine | GroupRef, wanted: Collection[str | GroupRef]) -> str | GroupRef | None:
    """Return which of the wanted indices an axis of a read goes along, None where it is none or several."""
    if isinstance(index, GroupRef):
        return index
    found = index.indices() & {i for i in wanted if isinstance(i, str)}
    return next(iter(found)) if len(found) == 1 else None
