"""Whether an op computes each element of its results from the elements of its operands at the same place."""

from __future__ import annotations

from opc.ir.expr import BroadcastAxis, reads, reductions
from opc.ir.op import Group, Op, own_indices


def is_pointwise(op: Op) -> bool:
    """Return whether all operands have the same axes, and an element depends on those at its own place alone.

    Operands that are broadcast count as spread over the place they are read at.
    """
    axes = {tuple(d.name if isinstance(d, Group) else d for d in o.dims) for o in (*op.inputs, *op.outputs)}
    orders = {o.permuted for o in (*op.inputs, *op.outputs) if o.dims}
    if op.opaque or len(axes) > 1 or len(orders) > 1:
        return False
    return all(
        all(r.pad is None and r.indices == own_indices(s) for r in reads(s.value))
        and all(isinstance(a, BroadcastAxis) for r in reductions(s.value) for a in r.axes)
        for s in op.body
    )
