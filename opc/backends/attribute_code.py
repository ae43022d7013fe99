"""Code for an op's attributes: C++ that reads them from a framework's arguments into the struct of the kernel, and the Python
that packs them into integers where a framework has no such arguments."""

from __future__ import annotations

from opc.emit.abi import c_type
from opc.emit.cpp.text import string_literal
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.op import Attribute, AttributeKind

_READERS = {
    AttributeKind.FLOAT: "number",
    AttributeKind.BOOL: "boolean",
    AttributeKind.STR: "text",
    AttributeKind.DTYPE: "dtype",
}


def read_attribute(attribute: Attribute, *, named: bool) -> str:
    """Return the statement that reads an attribute with the methods of `arguments` into `attributes`.

    Every method takes the attribute's name where the framework's arguments are `named`; in order, only those that can refuse
    what the framework itself has let pass.
    """
    field, name = f"attributes.{attribute.name}", string_literal(attribute.name)
    if attribute.length is not None:
        element = c_type(attribute)
        if attribute.length < 0:
            return f"{field} = arguments.list<{element}>({f'{name}, ' if named else ''}&{field}_length);"
        return f"arguments.list<{element}>({name}, {field}, {attribute.length});"
    if attribute.values:
        admitted = string_literal(", ".join(f"'{v}'" for v in attribute.values))
        return f"{field} = arguments.choice({name}, {attribute.name}_values, {len(attribute.values)}, {admitted});"
    takes_name = named or attribute.kind is AttributeKind.DTYPE
    return f"{field} = arguments.{_READERS.get(attribute.kind, 'integer')}({name if takes_name else ''});"


def read_packed(attribute: Attribute) -> str:
    """Return the statement that reads an attribute with the methods of `from`, `opc::Packed`, into `attributes`."""
    field = f"attributes.{attribute.name}"
    if attribute.length is not None:
        if attribute.length < 0:
            return f"{field} = from.list<{c_type(attribute)}>(&{field}_length);"
        return f"from.list({field}, {attribute.length});"
    match attribute.kind:
        case AttributeKind.FLOAT:
            return f"{field} = from.number();"
        case AttributeKind.BOOL:
            return f"{field} = from.boolean();"
        case AttributeKind.STR if not attribute.values:
            return f"{field} = from.text();"
        case _:
            return f"{field} = from.integer();"


def python_attribute(a: Attribute) -> Bracket:
    """Return the call that makes an `Attribute` of a package's Python, which packs the values of one."""
    items = [quoted(a.name), quoted(a.python_kind)]
    items += [f"length={a.length}"] if a.length is not None else []
    items += [f"values={literal(a.values)}"] if a.values else []
    return Bracket("Attribute(", items, ")")
