"""Shapes of calls that fit an op's signature, for tests and measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc.analysis.shapes.environment import Shape
from opc.analysis.shapes.inference import broadcast_shapes
from opc.analysis.shapes.plan import group_key
from opc.analysis.shapes.steps import GroupKey
from opc.ir.affine import AttrInt, Dim, GroupSize, Symbol
from opc.ir.arrangement import arrangement, mixed
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Group, Op, Operand
from opc.ir.placing import placing


def sample(
    op: Op,
    axes: Shape,
    dims: Sequence[int],
    optional: bool = True,
    attributes: Mapping[str, AttributeValue] | None = None,
    known: Mapping[str, int] | None = None,
) -> tuple[dict[str, Shape | None], dict[str, AttributeValue]]:
    """Return input shapes and attributes of a call that fits the op's signature; an op may still refuse it for its other rules.

    Every group has the axes `axes`, but the own groups of a broadcast op lose one more leading axis each; the dimensions that
    inputs bind have the size that `known` names, else `dims` in turn. Optional operands are given unless `optional` is False.
    Required attributes that are not in `attributes` get some value, axis attributes the position the groups leave; an attribute
    that lists axes the places they have in the declaration.
    """
    groups: dict[GroupKey, Shape] = {}
    sizes: dict[str, int] = {}
    given = dict(attributes or {})
    operands = (*op.inputs, *op.outputs)
    for entry in (d for o in operands for d in o.dims):
        if isinstance(entry, Group) and group_key(entry) not in groups:
            # Own groups of a broadcast op differ in rank; groups around a placed axis differ in size.
            own = sum(k[1] is not None for k in groups)
            groups[group_key(entry)] = axes if entry.of is None else axes[min(own, len(axes)) :]
    if op.broadcast:
        for key in [k for k in groups if k[1] is None]:
            whole: Shape = ()
            for own_key in (k for k in groups if k[0] == key[0] and k[1] is not None):
                whole = broadcast_shapes(whole, groups[own_key]) or ()
            groups[key] = whole
    how = arrangement(op)
    if how is not None and how.slots:
        first = 0 if any(how.picked_first(o) for o in operands if how.is_mixed(o)) else len(groups[how.rest, None])
        given |= {name: first + k for k, name in enumerate(how.attributes) if name not in given}
    elif how is not None and how.permutes:
        given.setdefault(how.axes, tuple(range(len(groups[how.picked, None]))))
    elif how is not None and how.axes not in given:
        declared = next((o for o in operands if how.is_mixed(o)), None)
        first = 0 if declared is None or how.picked_first(declared) else len(groups[how.rest, None])
        given[how.axes] = tuple(range(first, first + len(groups[how.picked, None])))
    for a in op.attributes:
        if a.required and a.name not in given:
            given[a.name] = _value(a.kind, a.length, a.values)
        if a.kind is AttributeKind.AXIS and a.among is None:
            given[a.name] = _position(op, a, groups)

    def value(symbol: Symbol) -> int:
        match symbol:
            case Dim():
                fresh = dims[len(sizes) % len(dims)]
                return sizes.setdefault(symbol.name, (known or {}).get(symbol.name, fresh))
            case GroupSize():
                return _product(groups.get((symbol.name, None), ()))
            case AttrInt():
                found = given.get(symbol.name, op.attribute(symbol.name).default)
                number = found[symbol.element] if isinstance(found, tuple) else found
                if symbol.text is not None:
                    return int(number == symbol.text)
                return int(number) if isinstance(number, int) else 1
            case _:
                raise KeyError(symbol)

    for operand in op.inputs:
        for dim in operand.dims:
            if not isinstance(dim, Group) and isinstance(dim.single, Dim) and dim.single.name not in dict(op.dims):
                value(dim.single)
    for name, size in op.dims:
        sizes[name] = size.evaluate(value)

    def shape(operand: Operand) -> Shape:
        if how is not None and (how.is_mixed(operand) or how.is_thinned(operand)):
            keeps = None if how.keeps is None else given.get(how.keeps, op.attribute(how.keeps).default)
            if how.is_mixed(operand) or keeps is True:
                rest, picked = groups.get((how.rest, None), ()), groups.get((how.picked, None), ())
                own = picked if how.is_mixed(operand) else (1,) * len(picked)
                if how.slots:
                    own = tuple(d.evaluate(value) for d in operand.dims if not isinstance(d, Group))
                return mixed(rest, own, how.places(given, len(rest) + len(own)))
        found: list[int] = []
        for dim in operand.dims:
            found += groups[group_key(dim)] if isinstance(dim, Group) else [dim.evaluate(value)]
        return tuple(found)

    return {o.name: shape(o) if optional or not o.optional else None for o in op.inputs}, given


def _position(op: Op, attribute: Attribute, groups: Mapping[GroupKey, Shape]) -> int:
    """Return where the dimension that an axis attribute places stands."""
    before = next((place.before for place in placing(op, attribute)), ())
    return sum(len(groups[group_key(dim)]) if isinstance(dim, Group) else 1 for dim in before)


def _value(kind: AttributeKind, length: int | None, values: tuple[str, ...]) -> AttributeValue:
    one: dict[AttributeKind, AttributeValue] = {
        AttributeKind.INT: 1,
        AttributeKind.AXIS: 0,
        AttributeKind.FLOAT: 1.0,
        AttributeKind.BOOL: True,
        AttributeKind.STR: values[0] if values else "a",
        AttributeKind.DTYPE: "float32",
    }
    element = one[kind]
    return element if length is None else (element,) * max(length, 1)  # type: ignore[return-value]  # all elements are of one kind


def _product(sizes: Shape) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
