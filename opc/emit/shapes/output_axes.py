"""How outputs' shapes are made of the inputs', as tables of `opc::Axes` (`runtime/include/opc/core/output_axes.h`).

Hosts that build graphs whose sizes are not known yet, or are only names, take output shapes from these.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Dim
from opc.ir.arrangement import Arrangement, arrangement
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand
from opc.ir.placing import splits
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
        self.axis = next((a for a in op.attributes if a.kind is AttributeKind.AXIS and a.among is None), None)

    def output(self, operand: Operand) -> list[str]:
        """Return the entries of `opc::Axes` that make up the shape of one output, as C initialisers."""
        how = arrangement(self.op)
        if how is not None:
            return list(self._arranged(how, operand))
        return [entry for dim in operand.dims for entry in self.entries(dim)]

    def _arranged(self, how: Arrangement, operand: Operand) -> Iterator[str]:
        """Yield the entries of an output of an op with an attribute that lists axes."""
        having = sorted((o for o in self.op.inputs if how.is_mixed(o)), key=lambda o: o.optional)
        alone = [n for n, o in enumerate(self.op.inputs) if how.permutes and o.dims == (Group(how.picked),) and not o.optional]
        if not having and operand.permuted and alone:
            yield _permuted(alone[0], 1)
            return
        if not having:
            yield from [_computed(-1)] if self.is_arranged(operand) else [e for d in operand.dims for e in self.entries(d)]
            return
        whole = self.op.inputs.index(having[0])
        if how.slots and how.is_mixed(operand):
            held = how.slot_dims(having[0])
            places = [held.index(d) for d in how.slot_dims(operand)]
            yield f"{{Axes::kAmong, {whole}, {{}}, {{}}, 0, true}},"
            yield from (
                f"{{Axes::kPlaced, {whole}, {{Place::kStart, {to}}}, {{Place::kStart, {source}}}, 0, false}},"
                for to, source in enumerate(places)
            )
            return
        if how.is_mixed(operand):
            yield _Range(whole, "{Place::kStart, 0}", "{Place::kEnd, 0}").entry("kCopy")
            return
        for dim in operand.dims:
            if how.permutes and dim == Group(how.picked):
                yield _permuted(whole, -1)
            elif isinstance(dim, Group) and dim.name in (how.picked, how.rest):
                kept = "true" if how.is_thinned(operand) else "false"
                yield f"{{Axes::kAmong, {whole}, {{}}, {{}}, {int(dim.name == how.picked)}, {kept}}},"
            else:
                yield from self.entries(dim)

    def is_arranged(self, operand: Operand) -> bool:
        """Whether only a call tells where an operand's axes stand."""
        how = arrangement(self.op)
        return how is not None and (how.is_mixed(operand) or how.is_thinned(operand))

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
            if dim in operand.dims and not self.is_arranged(operand):
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
        placed = [(i, "kAxis") for i, d in enumerate(dims) if self.axis and not isinstance(d, Group) and d == _dim(self.axis)]
        split = splits(self.op).get(operand)
        placed += [(split[1], "kBeside")] if split is not None and split[0] is self.axis else []
        for i, base in placed:
            between = dims[min(i, position) : max(i, position)]
            if not any(isinstance(d, Group) for d in between):
                return f"{{Place::{base}, {position - i}}}"
        return None


def _permuted(number: int, turn: int) -> str:
    """Return the entry for the axes of an input in the order of a permutation, where `turn` is -1, else in the order before."""
    return f"{{Axes::kPermuted, {number}, {{}}, {{}}, {turn}, false}},"


def _dim(axis: Attribute) -> DimSpec:
    return Affine.of(Dim(axis.dim or ""))


def _computed(count: int) -> str:
    """Return the entry for axes that only the kernel's own inference knows: one axis, or -1 for an unknown number."""
    return f"{{Axes::kComputed, 0, {{}}, {{}}, {count}, false}},"
