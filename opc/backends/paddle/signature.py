"""How a family's operators are called in Paddle: names, attributes as Paddle carries them, and which inputs a gradient reads."""

from __future__ import annotations

from opc.backends.derived import chooses_outputs, derivation
from opc.backends.paddle_names import operator_name
from opc.ir.op import Attribute, AttributeKind, Family, Op, Role

MAX_RANK = 9
"""The most axes of a Paddle tensor."""

MAX_OPERANDS = 32
"""`opc::pd::max_operands`."""

MASK = "output_mask"
"""The last attribute of an operator some of whose outputs may be left out: which of them are wanted."""

_TYPES = {
    AttributeKind.INT: "int64_t",
    AttributeKind.AXIS: "int64_t",
    AttributeKind.FLOAT: "std::string",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "std::string",
    AttributeKind.DTYPE: "std::string",
}
_LISTS = _TYPES | {AttributeKind.BOOL: "int64_t"}


def in_place_name(family: Family) -> str:
    """Return the name of the operator that writes to its inputs.

    Paddle takes a name that ends in an underscore for that without it.
    """
    return f"{operator_name(family, family.forward)}_in_place"


def attribute_type(attribute: Attribute) -> str:
    """Return the type Paddle carries an attribute as.

    Its graphs have no float64, which becomes a text with all digits; no lists of bool, which become integers; no dtypes, which
    become their names.
    """
    if attribute.length is None:
        return _TYPES[attribute.kind]
    return f"std::vector<{_LISTS[attribute.kind]}>"


def has_mask(op: Op) -> bool:
    """Whether the caller says which outputs of a derived op are wanted: there are several, and some may be left out."""
    return op.derivation is not None and chooses_outputs(op)


def likes(op: Op, gradient: Op) -> tuple[str | None, ...]:
    """Return for each input of a gradient the input of the same shape when it must not be missing, else None.

    By broadcasting, the shape of a result may come from a cotangent whose own value is zero.
    """
    names = {(role, of): x.name for x, (role, of) in zip(gradient.inputs, derivation(gradient).inputs, strict=True)}
    found: list[str | None] = []
    for x, (role, of) in zip(gradient.inputs, derivation(gradient).inputs, strict=True):
        if role is not Role.COTANGENT or (x.optional and not gradient.broadcast):
            found.append(None)
            continue
        output = op.output(of)
        having = (i.name for i in op.inputs if i.is_shaped_like(output) and not i.optional)
        same = next((name for name in having if (Role.INPUT, name) in names), None)
        found.append(names[(Role.INPUT, same)] if same else names.get((Role.OUTPUT, of)))
    return tuple(found)
