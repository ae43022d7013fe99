"""Which ops vmap vectorises by one more axis in an axis group, and which by calling the kernel for each point of a batch."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, GroupSize
from opc.ir.arrangement import Arrangement, arrangement
from opc.ir.expr import Expr, GroupAxis, GroupIndex, Reduce, own_affines, walk
from opc.ir.node import remembered
from opc.ir.op import AttributeKind, Family, Group, Op, Operand
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Batching:
    """How an op meets a batch axis.

    `grouped` says for each input whether it begins with the axis group that the batch axis could join. `joins_group`: every
    output begins with that group too, and no value depends on how many points it has, so that the batch axis may join it when
    all batched inputs are grouped. `equal_ranks`: the op broadcasts, so that the grouped inputs must also have equally many axes.
    `always`: those conditions hold in every call. `axes` are the positions of the attributes of axes among the op's attributes,
    and `ranked` is that of an input, given in every call, which has all the axes that a list of them may name; such a list
    `permutes` them where it is a permutation, and else `lists` some, or all where it is empty: where there are none beside the
    batch axis, no list names none, and that axis can't join the group.
    """

    grouped: tuple[bool, ...]
    joins_group: bool
    equal_ranks: bool
    axes: tuple[int, ...]
    ranked: int | None = None
    permutes: bool = False
    lists: bool = False

    @property
    def always(self) -> bool:
        """Whether the batch axis can join the group in every call."""
        alike = not self.equal_ranks or len(self.grouped) == 1
        return self.joins_group and all(self.grouped) and alike and not self.lists


def needs_batch_axes(family: Family) -> bool:
    """Whether some op of the family can't always put a batch axis into a group, so that its operators take `batch_axes`."""
    return not all(batching(op).always for op in family.ops)


@remembered("_batching")
def batching(op: Op) -> Batching:
    """Return how `op` meets a batch axis."""
    axes = tuple(i for i, a in enumerate(op.attributes) if a.kind is AttributeKind.AXIS or a.picks is not None or a.permutes)
    how = arrangement(op)
    permutes = how is not None and how.permutes
    lists = how is not None and not how.permutes and not how.slots
    ranked = next((i for i, x in enumerate(op.inputs) if how is not None and _has_all(x, how) and not x.optional), None)
    leading = {_leading(op, o) for o in op.outputs}
    name = leading.pop() if len(leading) == 1 else None
    if name is None or not _batchable(op, name) or (how is not None and ranked is None):
        return Batching((False,) * len(op.inputs), False, op.broadcast, axes)
    return Batching(tuple(_leading(op, x) == name for x in op.inputs), True, op.broadcast, axes, ranked, permutes, lists)


def _has_all(x: Operand, how: Arrangement) -> bool:
    """Whether an input has just the axes that an attribute may list."""
    return x.dims == (Group(how.picked),) if how.permutes else how.is_mixed(x)


def _leading(op: Op, operand: Operand) -> str | None:
    """Return the name of the group an operand begins with, None when it begins with none.

    In front of a mixed operand, an axis that is not listed is the first of the group of those.
    """
    how = arrangement(op)
    if how is not None and how.is_mixed(operand):
        return how.picked if how.permutes else how.rest
    first = operand.dims[0] if operand.dims else None
    return first.name if isinstance(first, Group) else None


def _batchable(op: Op, name: str) -> bool:
    """Whether the group stands only in front, and nothing is computed over its points together or from their number.

    Of native code without a body, nothing is known.
    """
    if op.opaque:
        return False
    how = arrangement(op)
    inner = (d for o in (*op.inputs, *op.outputs) if how is None or not how.is_mixed(o) for d in o.dims[1:])
    if any(isinstance(d, Group) and d.name == name for d in inner):
        return False
    return not any(s == GroupSize(name) for a in _sizes(op) for s in a.atoms()) and not any(
        (isinstance(e, Reduce) and GroupAxis(name) in e.axes) or (isinstance(e, GroupIndex) and e.group == name)
        for e in _nodes(op)
    )


def _nodes(op: Op) -> Iterator[Expr]:
    for root in (*(s.value for s in op.body), *(r.condition for r in op.require), *(a.check for a in op.attributes if a.check)):
        yield from walk(root)


def _sizes(op: Op) -> Iterator[Affine]:
    """Yield every integer expression of the op: shapes, derived dimensions, indices, extents."""
    yield from (size for _, size in op.dims)
    yield from (d for o in op.operands for d in o.dims if isinstance(d, Affine))
    for node in _nodes(op):
        yield from own_affines(node)
