"""The dtypes of an op's outputs from those of its inputs alone, in C++: for hosts that infer types apart from shapes.

The steps and their messages are those of the kernel's own prologue (`opc.emit.shapes.cpp`).
"""

from __future__ import annotations

from opc.analysis.shapes.plan import plan
from opc.analysis.shapes.steps import BindType, MatchType
from opc.emit.abi import attributes_type
from opc.emit.cpp.layout import wrapped
from opc.emit.cpp.text import message_literal
from opc.emit.dtypes import type_variable
from opc.emit.shapes.cpp import type_sets
from opc.emit.shapes.cpp_steps import StepText, type_declaration, type_member
from opc.ir.op import Family, Op


def types_name(op: Op) -> str:
    """Return the name of the function that infers the outputs' dtypes: `types_softmax`."""
    return f"types_{op.name}"


def types_definition(family: Family, op: Op) -> str:
    """Return the definition of `types_<op>`, which takes what `opc_<op>_infer` takes and fills in `dtype` alone.

    The text needs "opc/core/shape.h" and the family's header.
    """
    steps = [s for s in plan(op).steps if isinstance(s, BindType | MatchType)]
    writer = StepText(op)
    body = [line for step in steps for line in writer.step(step)]
    for i, o in enumerate(op.outputs):
        variable = type_variable(o.type)
        guard = "" if variable is None else f"if (call.{type_member(variable.name)}.element != opc::dtype_unknown) "
        body.append(f"  {guard}opc::set_type(types[{i}], {writer.element(o.type)});")
    text = "\n".join(body)
    lines = [
        f"static int32_t {types_name(op)}(",
        f"    const DLTensor *const *inputs, const {attributes_type(family)} *attributes,",
        "    opc_tensor_type *types, const opc_context *context) {",
        *type_sets(plan(op)),
    ]
    if "call." in text:
        members = " ".join(map(type_declaration, op.types))
        lines.append(f"  struct {{ {members} }} call;")
    lines.append(f"  opc::matcher match({message_literal(op.name)}, context);")
    unused = {"inputs": "inputs[" in text, "attributes": "attributes" in text, "match": "match." in text}
    lines += [f"  static_cast<void>({name});" for name, used in unused.items() if not used]
    lines += [*body, "  return OPC_OK;", "}"]
    return "\n".join(wrapped(lines))
