"""The C++ source of a family's ONNX Runtime library: tables over `runtime/include/opc/adapters/onnxruntime.h`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opc.backends.derived import title
from opc.backends.onnxruntime.values import has
from opc.backends.templates import Templates, environment
from opc.emit.abi import attributes_type
from opc.emit.abi_defaults import default_arrays, default_members
from opc.emit.cpp.text import string_literal
from opc.emit.onnx.types import bindings
from opc.emit.shapes.output_axes import OutputAxes
from opc.ir.dtypes import resolve
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand
from opc.records import dataclass

MAX_OPERANDS = 32
"""`opc::ort::kMaxOperands`."""

_KIND = {
    AttributeKind.INT: "kInt",
    AttributeKind.AXIS: "kInt",
    AttributeKind.FLOAT: "kFloat",
    AttributeKind.BOOL: "kBoolean",
    AttributeKind.DTYPE: "kDtype",
}


templates = Templates("opc.backends.onnxruntime")


def library_source(family: Family) -> str:
    """Return the text of `onnxruntime/<op>_ort.cpp`."""
    attributes = family.forward.attributes
    # One that calls another stands behind it.
    ordered = sorted(family.ops, key=lambda op: op is not family.forward.sizes)
    ops = [_op(family, op) for op in ordered]
    return templates.render(
        "library.cpp.j2",
        family,
        domain=family.forward.domain,
        source_hash=family.source_hash,
        types=[op.class_name for op in family.ops],
        attributes_type=attributes_type(family),
        enumerations=[{"name": a.name, "text": ", ".join(map(string_literal, a.values))} for a in attributes if a.values],
        attributes=[_attribute(a, a.name in family.forward.told) for a in attributes],
        arrays=list(default_arrays(family)),
        defaults=[f"{text}," for text in default_members(family)],
        ops=ops,
        overloads=[{"op": op["name"], "maker": op["maker"], "types": t["name"]} for op in ops for t in op["types"]],
    )  # fmt: skip


def _attribute(a: Attribute, told: bool) -> str:
    kind = _KIND.get(a.kind) or ("kEnumeration" if a.values else "kString")
    variable = a.length is not None and a.length < 0
    length = -1 if a.length is None else max(a.length, 0)
    parts = [
        f'"{a.name}"',
        kind,
        f"offsetof(Attributes, {a.name})",
        _bool(a.required and not told),
        str(length),
        f"offsetof(Attributes, {a.name}_length)" if variable else "0",
        f"{a.name}_values" if a.values else "nullptr",
    ]
    return f"{{{', '.join(parts)}}},"


@dataclass(frozen=True, slots=True)
class _AxesArray:
    """The array that describes one output's shape."""

    name: str
    entries: list[str]


def _op(family: Family, op: Op) -> dict[str, Any]:
    shapes = OutputAxes(op)
    axes = [_AxesArray(f"{op.name}_{o.name}_axes", shapes.output(o)) for o in op.outputs]
    axis = shapes.axis
    return {
        "name": op.name,
        "type": op.class_name,
        "title": title(family, op),
        "version": op.version,
        "maker": _maker(op),
        "inputs": [_operand(o) for o in op.inputs],
        "outputs": [_operand(o) for o in op.outputs],
        "axes": [a for a in axes if a.entries],
        "shapes": [f"{{{len(a.entries)}, {a.name if a.entries else 'nullptr'}}}," for a in axes],
        "axis_offset": f"offsetof(Attributes, {axis.name})" if axis else "-1",
        "types": list(_types(op)),
        "told": [f"offsetof(Attributes, {name})" for name in op.told],
        "sizes": f"&{op.sizes.name}_op" if op.sizes is not None else "",
    }


def _maker(op: Op) -> str:
    """Return the call that makes an op's `CustomOp`."""
    inputs, outputs = [o.name for o in op.inputs], [o.name for o in op.outputs]
    pairs = "".join(f", {inputs.index(i)}, {outputs.index(o)}" for o, i in op.inplace)
    return f"inplace_op<Attributes{pairs}>()" if pairs else "custom_op<Attributes>()"


def _operand(o: Operand) -> str:
    return f'{{"{o.name}", {_bool(o.optional)}, {_bool(not o.dims)}}},'


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _types(op: Op) -> Iterator[dict[str, str]]:
    """Yield the element types of the op's operands for each choice of its type variables."""
    for binding in bindings(op):
        if not all(map(has, binding.values())):
            continue
        suffix = "_".join(str(d) for d in binding.values())
        elements = [f"k{resolve(o.type, binding).value.capitalize()}" for o in (*op.inputs, *op.outputs)]
        yield {"name": f"{op.name}_{suffix}" if suffix else f"{op.name}_types", "text": ", ".join(elements)}


def package_source(family: Family) -> str:
    """Return the text of `onnxruntime/__init__.py`."""
    return templates.render("init.py.j2", family)


def joint_source(libraries: Sequence[str]) -> str:
    """Return C of a library whose `RegisterCustomOps` calls that of each of `libraries`, paths beside its own file."""
    return environment(templates.package).get_template("joint.c.j2").render(libraries=libraries)
