"""How outputs' shapes are made of the inputs', as tables of `opc::Axes` (`runtime/include/opc/core/output_axes.h`).

Hosts that build graphs whose sizes are not known yet, or are only names, take output shapes from these.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Dim
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class _Range:
    """Where an input holds a dimension or group: `opc::Axes` without its kind."""

    input: int
    start: str
    end: str

    def entry(self, kind: str, more: bool = False) -> str:
        return f"{{Axes::{kind}, {self.input}, {self.start}, {self.end}, 0, {'true' if more else 'false'}}},"


class OutputAxes:
    """Finds for each entry of an output's shape the input axes that it copies, so that names of sizes survive."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.axis = next((a for a in op.attributes if a.kind is AttributeKind.AXIS), None)

    def output(self, operand: Operand) -> list[str]:
        """Return the entries of `opc::Axes` that make up the shape of one output, as C initialisers."""
        return [entry for dim in operand.dims for entry in self.entries(dim)]

    def entries(self, dim: DimSpec) -> list[str]:
        """Return the entries for one dimension or group."""
        if not isinstance(dim, Group):
            if dim.constant is not None:
                return [f"{{Axes::kSize, 0, {{}}, {{}}, {dim.constant}, false}},"]
            found = self.find(dim)
            return [found.entry("kCopy")] if found else [_computed(1)]
        found = self.find(dim)
        if found:
            return [found.entry("kCopy")]
        own = [self.find(Group(dim.name, o.name)) for o in self.op.inputs if Group(dim.name, o.name) in o.dims]
        ranges = [r for r in own if r is not None]
        last = len(ranges) - 1
        return [r.entry("kBroadcast", i < last) for i, r in enumerate(ranges)] or [_computed(-1)]

    def find(self, dim: DimSpec) -> _Range | None:
        """Return the first input that has the dimension or group, one that is always given before an optional one."""
        if not isinstance(dim, Group) and not isinstance(dim.single, Dim):
            return None
        for operand in sorted(self.op.inputs, key=lambda o: o.optional):
            if dim in operand.dims:
                position = operand.dims.index(dim)
                start, end = self.place(operand, position), self.place(operand, position + 1)
                if start and end:
                    return _Range(self.op.inputs.index(operand), start, end)
        return None

    def place(self, operand: Operand, position: int) -> str | None:
        """Return the place where an operand's entry starts: from the first axis, from the last, or from the axis attribute's."""
        dims = operand.dims
        if not any(isinstance(d, Group) for d in dims[:position]):
            return f"{{Place::kStart, {position}}}"
        if not any(isinstance(d, Group) for d in dims[position:]):
            return f"{{Place::kEnd, {position - len(dims)}}}"
        placed = [i for i, d in enumerate(dims) if self.axis and not isinstance(d, Group) and d == _dim(self.axis)]
        for i in placed:
            between = dims[min(i, position) : max(i, position)]
            if not any(isinstance(d, Group) for d in between):
                return f"{{Place::kAxis, {position - i}}}"
        return None


def _dim(axis: Attribute) -> DimSpec:
    return Affine.of(Dim(axis.dim or ""))


def _computed(count: int) -> str:
    """Return the entry for axes that only the kernel's own inference knows: one axis, or -1 for an unknown number."""
    return f"{{Axes::kComputed, 0, {{}}, {{}}, {count}, false}},"
