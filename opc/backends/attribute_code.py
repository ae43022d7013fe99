"""C++ statements that read an op's attributes from a framework's arguments into the struct of the kernel."""

from __future__ import annotations

from opc.emit.abi import c_type
from opc.emit.cpp.text import string_literal
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
