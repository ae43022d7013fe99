"""Derived ops ask for no more than their source: the greatest of nothing is 0 where no element of the source asks for it."""

from __future__ import annotations

from collections.abc import Iterable

from opc.analysis.needs import outputs_that_need
from opc.ir.affine import Affine, GroupSize
from opc.ir.op import Assign, DimSpec, Op
from opc.records import replace
from opc.transform.domain import Domain
from opc.transform.inside import Inside


def asking_no_more(op: Op, source: Op) -> Op:
    """Return a derived op with 0 for the greatest or least of nothing, but where its source refuses that or nobody asks for it.

    Sums stood around it, which may have had no term: over a range that varies by point, or over a size of the source's outputs.
    """
    inside, needs = Inside(op), outputs_that_need(op)
    outputs = {o.name: o for o in op.outputs}
    of_source = _points(d for o in source.outputs for d in o.dims)

    def rewritten(s: Assign) -> Assign:
        domain = Domain.of(s, op.operand(s.target))
        ranges = {a.index: a.extent for a in domain.axes}
        users = [set(outputs[name].dims) for name in needs[s.target]]
        some = {**ranges, **_points(set.intersection(*users) if users else ())}

        def left(extent: Affine) -> bool:
            if inside.known().nonnegative(extent - 1, some):
                return True
            return not extent.indices() and not inside.known().nonnegative(extent - 1, of_source)

        return replace(s, value=inside.with_some(s.value, ranges, left=left))

    return replace(op, body=tuple(map(rewritten, op.body)))


def _points(dims: Iterable[DimSpec]) -> dict[str, Affine]:
    """Return the ranges of indices of a point, as there is one in what has elements and these sizes."""
    sizes = {d if isinstance(d, Affine) else Affine.of(GroupSize(d.name)) for d in dims}
    return {f"#{n}": size for n, size in enumerate(sorted(sizes, key=str))}


__all__ = ["asking_no_more"]
