"""The C ABI of a family: names, attribute struct, prototypes and DLPack codes, as `runtime/include/opc/abi.h` describes them.

Every backend that calls a kernel, from C or through a foreign-function interface, takes its declarations from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opc.emit.cpp.text import WIDTH
from opc.ir.dtypes import DTYPES, DType
from opc.ir.op import Attribute, AttributeKind, AttributeValue, Family, Op
from opc.records import dataclass

_SCALAR: Mapping[AttributeKind, str] = {
    AttributeKind.INT: "int64_t",
    AttributeKind.AXIS: "int64_t",
    AttributeKind.FLOAT: "double",
    AttributeKind.BOOL: "int32_t",
    AttributeKind.DTYPE: "int64_t",
}


def function_name(op: Op) -> str:
    """Return the name of the kernel function of `op`: `opc_leaky_relu`."""
    return f"opc_{op.name}"


def infer_name(op: Op) -> str:
    """Return the name of the function that infers the outputs of `op`: `opc_leaky_relu_infer`."""
    return f"opc_{op.name}_infer"


def attributes_type(family: Family) -> str:
    """Return the name of the attribute struct that all ops of the family take: `opc_leaky_relu_attributes`."""
    return f"opc_{family.name}_attributes"


def header_path(family: Family) -> str:
    """Return the path of the family's kernel header, relative to the package: `kernel/leaky_relu.h`."""
    return f"kernel/{family.name}.h"


def c_type(attribute: Attribute) -> str:
    """Return the C type of an attribute, or of one element of a list attribute.

    An enumeration (`values`) is the position of its value; any other string is a `const char *`; a dtype is its position in
    `opc.ir.dtypes.DTYPES`.
    """
    if attribute.kind is AttributeKind.STR:
        return "int64_t" if attribute.values else "const char *"
    return _SCALAR[attribute.kind]


@dataclass(frozen=True, slots=True)
class Field:
    """One member of the attribute struct.

    `attribute` is the attribute it belongs to. `count` is None for a scalar, n for a fixed array, and -1 for the pointer of a
    variable list; the member that holds such a list's length has `is_length`.
    """

    name: str
    c_type: str
    attribute: str
    count: int | None = None
    is_length: bool = False

    @property
    def declaration(self) -> str:
        """The member's declaration without the semicolon."""
        space = "" if self.c_type.endswith("*") else " "
        if self.count is None:
            return f"{self.c_type}{space}{self.name}"
        if self.count < 0:
            return f"const {self.c_type} *{self.name}"
        return f"{self.c_type}{space}{self.name}[{self.count}]"


def attribute_fields(family: Family) -> tuple[Field, ...]:
    """Return the members of the attribute struct in order; empty for an op without attributes."""
    return tuple(_fields(family.forward))


def field_values(family: Family, given: Mapping[str, Any]) -> Iterator[tuple[Field, Any]]:
    """Yield each member of the attribute struct with what a call holds in it; an attribute that is not given has its default.

    A string that is not among an attribute's values is a position that it does not have, so that the kernel refuses it.
    """
    for f in attribute_fields(family):
        a = family.forward.attribute(f.attribute)
        value = given.get(a.name, 0 if a.name in family.forward.told else a.default)
        if a.kind is AttributeKind.STR and a.values:
            value = a.values.index(value) if value in a.values else len(a.values)
        elif a.kind is AttributeKind.DTYPE:
            value = encode(a, value)
        yield f, len(value) if f.is_length else value


def _fields(op: Op) -> Iterator[Field]:
    for a in op.attributes:
        if a.length is not None and a.length < 0:
            yield Field(f"{a.name}_length", "int64_t", a.name, is_length=True)
        yield Field(a.name, c_type(a), a.name, a.length)


def kernel_prototype(family: Family, op: Op) -> str:
    """Return the prototype of `op`'s kernel without the semicolon."""
    attributes = f"const {attributes_type(family)} *attributes"
    return _prototype(
        function_name(op),
        ("const DLTensor *const *inputs", "DLTensor *const *outputs"),
        (attributes, "const opc_context *context"),
    )


def infer_prototype(family: Family, op: Op) -> str:
    """Return the prototype of `op`'s inference function without the semicolon."""
    attributes = f"const {attributes_type(family)} *attributes"
    return _prototype(
        infer_name(op), ("const DLTensor *const *inputs", attributes), ("opc_tensor_type *outputs", "const opc_context *context")
    )


def _prototype(name: str, first: tuple[str, ...], second: tuple[str, ...]) -> str:
    """Return a prototype in two lines, aligned after the bracket or, where that is too wide, indented."""
    head = f"int32_t {name}("
    for opening, indent in ((head, " " * len(head)), (f"{head}\n    ", "    ")):
        text = f"{opening}{', '.join(first)},\n{indent}{', '.join(second)})"
        if all(len(line) <= WIDTH for line in text.split("\n")):
            break
    return text


def encode(attribute: Attribute, value: AttributeValue | DType) -> int | float | str | tuple[int | float, ...] | None:
    """Return an attribute's value as the struct holds it: enumerations and dtypes as positions, bools as 0 or 1.

    Raises:
        ValueError: when a string is not among the attribute's values, or a dtype's name is unknown.
    """
    match attribute.kind:
        case AttributeKind.STR if attribute.values:
            return attribute.values.index(str(value))
        case AttributeKind.DTYPE:
            return DTYPES.index(DType(value))
        case AttributeKind.BOOL if isinstance(value, tuple):
            return tuple(int(v) for v in value)
        case AttributeKind.BOOL:
            return int(bool(value))
        case _:
            return value if not isinstance(value, DType) else DTYPES.index(value)
