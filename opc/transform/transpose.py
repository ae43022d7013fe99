"""Transposition of reads: where in an operand's gradient an adjoint goes.

A read `x[f(i)]` at every point i of some loops, with adjoint A(i), adds to the gradient of x

    d_x[j] = sum over i of (A(i) if f(i) == j else 0)

The equations f(i) == j are solved for loop variables (see `equations`), so that the sum over a solved loop vanishes and the
gradient gathers instead of scattering: a bare index is renamed, a shift moves the range, a stride asks for divisibility, digits
of a mixed radix number are told apart, an unused loop stays as a sum, and what cannot be solved (a data-dependent index, a
constant, a diagonal) stays as an equality condition. Conditions go outermost.

See Li et al., "Differentiable programming for image processing and deep learning in Halide" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence

from opc.analysis.bounds.knowledge import Knowledge
from opc.ir.expr import BroadcastAxis, Expr, GroupAxis, GroupRef, Read, ReduceAxis
from opc.ir.op import DimSpec, Group
from opc.transform.domain import Domain
from opc.transform.equations import System
from opc.transform.indices import Namer, bound_indices


def transpose(
    read: Read,
    domain: Domain,
    value: Expr,
    target: Sequence[str | GroupRef],
    dims: Sequence[DimSpec],
    knowledge: Knowledge | None = None,
) -> Expr:
    """Return what the adjoint `value` of `read`, at every point of `domain`, adds to the gradient of the operand read.

    Args:
        read: the access; its indices use the domain's index variables and groups.
        domain: every loop around the access.
        value: the adjoint, an expression over the domain.
        target: the index names and groups of the gradient's statement, one for each entry of the operand's shape.
        dims: the shape of the operand.
        knowledge: what is known of sizes and attributes.
    """
    names = {a.index for a in domain.axes} | bound_indices(value) | {t for t in target if isinstance(t, str)}
    system = System(Namer(names), list(domain.axes), value, knowledge or Knowledge())
    groups: list[ReduceAxis] = []
    used = {}
    for entry, name, dim in zip(read.indices, target, dims, strict=True):
        if isinstance(dim, Group):
            used[dim.name] = dim.of
        elif isinstance(name, str) and not isinstance(entry, GroupRef):
            system.equate(name, dim, entry)
    for group, own in domain.groups:
        if group not in used:
            groups.append(GroupAxis(group))
        elif own is None and used[group] is not None:
            groups.append(BroadcastAxis(group, str(used[group])))
    return system.solve(tuple(groups))
