"""The C++ source of a family's PopXL module, over `runtime/include/opc/adapters/popxl.h`."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.own import Own
from opc.backends.poplar.attributes import cpp_type
from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.files import (
    definitions_source,
    has_codelets,
    headers,
    in_place_regions,
    methods_source,
    opx_source,
    params_source,
    wrapped,
)
from opc.backends.templates import Templates
from opc.emit.cpp.text import message_literal, string_literal
from opc.ir.op import Attribute, AttributeKind, Family, camel_case

templates = Templates("opc.backends.popxl")

BLOCK = "// clang-format off\n"
"""The line in front of what cppimport reads."""


def module_name(family: Family) -> str:
    """Return the name of the module that cppimport builds, which is that of its source."""
    return f"{family.name}_op_impl"


def library_source(family: Family) -> str:
    """Return the text of `popxl/<op>_op_impl.cpp`."""
    op = family.forward
    own = Own(op)
    classes = op_classes(family)
    text = templates.render(
        "op_impl.cpp.j2",
        family,
        own=own,
        prefix=camel_case(op.name),
        classes=classes,
        forward=classes[0],
        params=params_source(family),
        methods=methods_source(family),
        opx=opx_source(family),
        in_place_regions=in_place_regions(family),
        definitions=definitions_source(family, parameterized=True),
        codelets=has_codelets(family),
        headers=headers(family),
        attributes=bool(op.attributes),
        arguments=[_argument(a) for a in op.attributes],
        assigned=[line for a in op.attributes for line in _assigned(family, a, own)],
        defaults=[_default(a, own) for a in op.attributes],
        fields=[line for a in op.attributes for line in _field(a, own)],
    )
    source, mark, block = text.partition(BLOCK)
    # What tells cppimport how to build is Python, whose lines are not broken as those of C++.
    return wrapped(source) + mark + block


def _argument(a: Attribute) -> str:
    """Return an attribute as a parameter of the constructor: dtypes are ONNX's numbers, as in models."""
    kind = cpp_type(a).replace("poplar::Type", "int64_t")
    return f"{kind} {a.name}" if kind in ("int64_t", "float") else f"const {kind} &{a.name}"


def _assigned(family: Family, a: Attribute, own: Own) -> Iterator[str]:
    params, number = own["params"], own["number"]
    shown = f"{message_literal(family.name)}, {message_literal(a.name)}"
    if a.kind is AttributeKind.BOOL:
        values = a.name if a.length is None else number
        loop = "" if a.length is None else f"for (const int64_t {number} : {a.name}) "
        yield f"{loop}opc::ipu::flag({shown}, {values});"
    if a.kind is not AttributeKind.DTYPE:
        yield f"{params}.{a.name} = {a.name};"
    elif a.length is None:
        yield f"{params}.{a.name} = opc::ipu::type_of({shown}, {a.name});"
    else:
        yield f"{params}.{a.name}.clear();"
        yield f"for (const int64_t {number} : {a.name}) {params}.{a.name}.push_back(opc::ipu::type_of({shown}, {number}));"


def _default(a: Attribute, own: Own) -> str:
    """Return the Python name of a parameter, with its default where it has one; a dtype's is given by the Python function."""
    name = f"pybind11::arg({string_literal(a.name)})"
    return name if a.required or a.kind is AttributeKind.DTYPE else f"{name} = {own['Params']}().{a.name}"


def _field(a: Attribute, own: Own) -> Iterator[str]:
    if a.kind is not AttributeKind.DTYPE:
        yield f".def_readwrite({string_literal(a.name)}, &{own['Params']}::{a.name})"
