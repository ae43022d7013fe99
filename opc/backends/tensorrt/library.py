"""The C++ source of a family's TensorRT plugins, over `runtime/include/opc/adapters/tensorrt.h`."""

from __future__ import annotations

import hashlib

from opc.backends.templates import Templates
from opc.backends.tensorrt.names import place_name, plugin_names, register_name
from opc.emit.abi import attributes_type
from opc.emit.abi_defaults import default_arrays, default_members
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import string_literal
from opc.emit.shapes.builder import CPP, builder_calls
from opc.ir.dtypes import Acc, ElementType, TypeVar, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand

templates = Templates("opc.backends.tensorrt")

KINDS = {
    AttributeKind.INT: "integer_kind",
    AttributeKind.AXIS: "integer_kind",
    AttributeKind.FLOAT: "real_kind",
    AttributeKind.BOOL: "flag_kind",
}
"""How the struct of the C ABI stores the values of an attribute."""


def library_source(family: Family) -> str:
    """Return the text of `tensorrt/<op>_tensorrt.cpp`."""
    op, names = family.forward, plugin_names(family)
    shapes = [f"{call};" for call in builder_calls(op, CPP)]
    uses = "attributes." in "".join(shapes)
    return templates.render(
        "library.cpp.j2",
        family,
        attributes_type=attributes_type(family),
        arrays=list(default_arrays(family)),
        defaults=default_members(family),
        choices=[(a.name, ", ".join(map(string_literal, a.values))) for a in op.attributes if a.values],
        visits=[_wrapped(_visit(a)) for a in op.attributes],
        binds=[_bind(op, a) for a in op.attributes if a.binds is not None],
        shapes=[_wrapped(line) for line in shapes],
        shapes_use_attributes=uses,
        operands=[_wrapped(_operand(op, o), 4) for o in (*op.inputs, *op.outputs)],
        names=names,
        signature=f"0x{signature(family):016x}u",
        inputs=len(op.inputs),
        outputs=len(op.outputs),
        register=register_name(family),
        place=place_name(family),
    )


def signature(family: Family) -> int:
    """Return a number of 64 bits that differs where another op, or other attributes or inputs, are serialised."""
    op = family.forward
    attributes = [(a.name, a.kind.value, a.length, a.values) for a in op.attributes]
    text = repr((op.name, attributes, [o.name for o in op.inputs]))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _wrapped(line: str, margin: int = 2) -> str:
    return "\n".join(wrap(" " * margin + line))


def _visit(a: Attribute) -> str:
    """Return the call that shows a visitor an attribute."""
    name, value, required = string_literal(a.name), f"attributes.{a.name}", "true" if a.required else "false"
    if a.kind is AttributeKind.DTYPE:
        return f"visitor.choice({name}, {value}, opc::trt::dtype_names(), opc::dtype_count, {required});"
    if a.kind is AttributeKind.STR:
        if a.values:
            return f"visitor.choice({name}, {value}, {a.name}_values, {len(a.values)}, {required});"
        return f"visitor.text({name}, {value}, {required});"
    kind = f"opc::trt::{KINDS[a.kind]}"
    if a.length is None:
        return f"visitor.values({name}, {kind}, &{value}, 1, {required});"
    if a.length >= 0:
        return f"visitor.values({name}, {kind}, {value}, {a.length}, {required});"
    return f"visitor.list_of({name}, {kind}, {value}, {value}_length, {required});"


def _bind(op: Op, a: Attribute) -> str:
    place = [t.name for t in op.types].index(a.binds or "")
    return f"variables[{place}] = static_cast<opc::dtype>(attributes.{a.name});"


def variable_of(op: Op, t: ElementType) -> int:
    """Return the position of the type variable that a type is or depends on, -1 where there is none."""
    variable = t.of if isinstance(t, Acc) else t
    return op.types.index(variable) if isinstance(variable, TypeVar) else -1


def _operand(op: Op, o: Operand) -> str:
    variable = variable_of(op, o.type)
    accumulated = isinstance(o.type, Acc) and variable >= 0
    dtypes = ", ".join(f"opc::dtype_{d}" for d in candidates(o.type))
    flags = ("true" if flag else "false" for flag in (o.optional, accumulated))
    optional, sums = flags
    return f"{{{string_literal(o.name)}, {optional}, {variable}, {sums}, opc::one_of({dtypes})}},"
