"""Where an axis attribute stands among an input's axes: at a dimension that the input has, or between two of its groups, where an
output has a new axis.

An op with `axis: {type: axis, dim: N}` places N in `x: T[*A, N, *B]`. Where only an output `y: T[*A, K, *B]` has the dimension
that an attribute places, an input `x: T[*A, *B]` is *split* there: the attribute counts the axes of y, so that as many axes of x
belong to `*A` as it says, once counted from the front. In a gradient, that of y is an input which has the dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opc.ir.affine import Affine, Dim
from opc.ir.node import remembered
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an axis attribute stands in an input: at entry `entry` of its shape, or where it `adds` an axis, in front of it."""

    operand: Operand
    entry: int
    adds: bool = False

    @property
    def before(self) -> tuple[DimSpec, ...]:
        """The entries of the shape in front of the axis."""
        return self.operand.dims[: self.entry]

    @property
    def after(self) -> tuple[DimSpec, ...]:
        """The entries of the shape behind the axis."""
        return self.operand.dims[self.entry + (not self.adds) :]


def placing(op: Op, axis: Attribute) -> tuple[Place, ...]:
    """Return the inputs that an axis attribute counts the axes of: of those with its dimension, the ones with most groups.

    An axis is one of `x[*A, N, *B]`, whatever of `w[N]` comes before it. Where no input that is always given has it between
    groups, they are the inputs that are split there.
    """
    return _placing(op)[axis.name]


@remembered("_places", often=True)
def _placing(op: Op) -> dict[str, tuple[Place, ...]]:
    between = [a for a in op.attributes if a.kind is AttributeKind.AXIS and a.among is None and a.dim is not None]
    return {a.name: _places(op, a.dim or "") for a in between}


def _places(op: Op, dim: str) -> tuple[Place, ...]:
    entry = Affine.of(Dim(dim))
    groups = {o: sum(isinstance(d, Group) for d in o.dims) for o in op.inputs if entry in o.dims}
    having = tuple(Place(o, o.dims.index(entry)) for o, count in groups.items() if count == max(groups.values()))
    if any(is_between(p.operand.dims, dim) and not p.operand.optional for p in having):
        return having
    split = split_inputs(dim, op.inputs, (*op.inputs, *op.outputs))
    return split if not having or any(not p.operand.optional for p in split) else having


@remembered("_splits", often=True)
def splits(op: Op) -> dict[Operand, tuple[Attribute, int]]:
    """Return the attribute that splits an input between two of its groups, and in front of which entry of its shape."""
    found: dict[Operand, tuple[Attribute, int]] = {}
    for a in op.attributes:
        if a.kind is AttributeKind.AXIS and a.among is None:
            found |= {p.operand: (a, p.entry) for p in placing(op, a) if p.adds}
    return found


def split_inputs(dim: str, inputs: Iterable[Operand], operands: Iterable[Operand]) -> tuple[Place, ...]:
    """Return where inputs have two groups beside each other of which some operand has a dimension in between.

    Such an input has the operand's axes without this one.
    """
    entry = Affine.of(Dim(dim))
    wholes = [o.dims for o in operands if is_between(o.dims, dim)]
    lacking = {dims[: dims.index(entry)] + dims[dims.index(entry) + 1 :]: dims.index(entry) for dims in wholes}
    return tuple(Place(o, lacking[o.dims], True) for o in inputs if o.dims in lacking)


def is_between(dims: Sequence[DimSpec], dim: str) -> bool:
    """Whether a shape has a dimension between two groups."""
    entry = Affine.of(Dim(dim))
    if entry not in dims:
        return False
    at = dims.index(entry)
    return all(any(isinstance(d, Group) for d in side) for side in (dims[:at], dims[at + 1 :]))
