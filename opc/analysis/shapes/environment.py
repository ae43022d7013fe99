"""What a call of an op binds: sizes, groups of axes, attributes, and the shapes that follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from opc.analysis.shapes.plan import group_key
from opc.analysis.shapes.scalar import Scalar, evaluate
from opc.analysis.shapes.steps import GroupKey
from opc.ir.affine import Affine, AttrInt, Dim, GroupSize, Symbol
from opc.ir.arrangement import arrangement, mixed
from opc.ir.expr import Expr
from opc.ir.op import AttributeValue, Group, Op, Operand
from opc.records import dataclass

Shape = tuple[int, ...]


@dataclass(slots=True)
class ShapeEnv:
    """What a call bound.

    `dims` has the named and the derived dimensions, `groups` the axis groups by name and (in a broadcast op) input, None for the
    group they broadcast to. `attributes` are complete, with axes counted from the front where inputs tell it. `outputs` has no
    entry for an optional output whose shape nothing given determines. A dimension or group that only absent operands have is
    empty: 0, or ().
    """

    op: Op
    attributes: dict[str, AttributeValue]
    present: frozenset[str]
    dims: dict[str, int] = field(default_factory=dict)
    groups: dict[GroupKey, Shape] = field(default_factory=dict)
    outputs: dict[str, Shape] = field(default_factory=dict)
    rank: int = 0
    """How many axes there are of which attributes list or place some."""

    def value(self, size: Affine) -> int:
        """Return the value of an expression over dimensions, group sizes and attributes.

        Raises:
            ZeroDivisionError: when it divides by zero.
        """
        return size.evaluate(self.symbol)

    def symbol(self, symbol: Symbol) -> int:
        """Return the value of one symbol; KeyError for an index variable, which has none."""
        match symbol:
            case Dim():
                return self.dims.get(symbol.name, 0)
            case GroupSize():
                return _product(self.groups.get((symbol.name, None), ()))
            case AttrInt():
                found = self.attribute(symbol.name, symbol.element)
                return int(found == symbol.text if symbol.text is not None else found)
            case _:
                raise KeyError(symbol.name)

    def attribute(self, name: str, element: int = -1) -> Scalar:
        """Return the value of an attribute, or of one element of a list attribute."""
        value = self.attributes[name]
        if isinstance(value, tuple):
            return value[element]
        if value is None:
            raise KeyError(name)
        return value

    def shape_of(self, operand: Operand | str) -> Shape:
        """Return the shape an input, output or temporary has in this call, its axes in the order of its declaration."""
        found = self.op.operand(operand) if isinstance(operand, str) else operand
        sizes: list[int] = []
        for dim in found.dims:
            if isinstance(dim, Group):
                sizes += self.groups.get(group_key(dim), ())
            else:
                sizes.append(self.value(dim))
        return tuple(sizes)

    def picked(self, rank: int) -> tuple[int, ...]:
        """Return the places of picked axes among so many, of an op with an attribute of axes: see `Arrangement.places`.

        Raises:
            ValueError: when one is out of range or stands twice.
        """
        how = arrangement(self.op)
        assert how is not None, "the op has an attribute of axes"
        return how.places(self.attributes, rank)

    def seen_shape_of(self, operand: Operand) -> Shape:
        """Return the shape that an input or output has for who calls the op: see `opc.ir.arrangement`."""
        how, shape = arrangement(self.op), self.shape_of(operand)
        if how is None or not (how.is_mixed(operand) or how.is_thinned(operand)):
            return shape
        rest, own = (self.groups.get((name, None), ()) for name in (how.rest, how.picked))
        if how.slots:
            own = tuple(self.dims.get(dim, 0) for dim in how.slot_dims(operand))
        if how.is_mixed(operand):
            return mixed(rest, own, self.picked(len(rest) + len(own)))
        if how.keeps is None or not self.attributes[how.keeps]:
            return shape
        listed = self.attributes[how.axes]
        count = len(listed) if isinstance(listed, tuple) and listed else len(own)
        return mixed(rest, (1,) * count, self.picked(len(rest) + count))

    def holds(self, condition: Expr) -> bool:
        """Whether a condition over attributes and sizes is true in this call."""
        try:
            return bool(evaluate(condition, self.symbol, self.attribute, self.present.__contains__))
        except ZeroDivisionError:
            return False


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
