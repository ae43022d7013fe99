"""The loops an expression stands in."""

from __future__ import annotations

from opc.ir.expr import Axis, ReduceAxis
from opc.ir.op import Assign, Group, Operand
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Domain:
    """The loops an expression stands in: index variables with their extents, outermost first, and groups of axes.

    A group maps to the operand whose own group it is; None is the shape all operands broadcast to (and any group of an op without
    broadcast).
    """

    axes: tuple[Axis, ...]
    groups: tuple[tuple[str, str | None], ...]

    @staticmethod
    def of(statement: Assign, target: Operand) -> Domain:
        """Return the loops over the points of a statement's target."""
        axes, groups = [], []
        for i, d in zip(statement.indices, target.dims, strict=True):
            if isinstance(d, Group):
                groups.append((d.name, d.of))
            elif isinstance(i, str):
                axes.append(Axis(i, d))
        return Domain(tuple(axes), tuple(groups))

    def inside(self, loops: tuple[ReduceAxis, ...]) -> Domain:
        """Return the loops inside a reduction over `loops`."""
        axes = self.axes + tuple(a for a in loops if isinstance(a, Axis))
        groups = dict(self.groups)
        groups.update({a.name: None for a in loops if not isinstance(a, Axis)})
        return Domain(axes, tuple(groups.items()))
