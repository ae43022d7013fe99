"""The Python files of a family for PopXL: the function that adds the op to a graph, and a script that runs it."""

from __future__ import annotations

from opc.backends.poplar.carried import carried
from opc.backends.poplar.python_side import node_value, onnx_numbers, option_rows, signature_api
from opc.backends.poplar.sample_call import sample_call
from opc.backends.popxl.library import module_name, templates
from opc.backends.python_api import documentation
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, docstring, quoted
from opc.ir.op import AttributeKind, Family, camel_case


def api_source(family: Family) -> str:
    """Return the text of `popxl/__init__.py`."""
    return templates.render("init.py.j2", family)


def op_source(family: Family) -> str:
    """Return the text of `popxl/<op>_op.py`."""
    op = carried(family.forward)
    raised = ["RuntimeError: when an operand or attribute does not fit; the message says which."]
    outputs = [f'{i}: graph._create_tensor_id("{op.name}_{o.name}")' for i, o in enumerate(op.outputs)]
    returned = [f"Tensor._from_pb_tensor(op.outTensor({i}))" for i in range(len(op.outputs))]
    params = [f"{a.name}={node_value(a)}" for a in op.attributes]
    head = f"{module_name(family)}.{camel_case(op.name)}Params("
    return templates.render(
        "op.py.j2",
        family,
        python_class=op.python_class,
        imports=any(a.length is not None for a in op.attributes),
        dtypes=onnx_numbers() if any(a.kind is AttributeKind.DTYPE for a in op.attributes) else [],
        signature=signature_api().signature(op, op.name),
        doc=docstring(documentation(op, op.doc.strip(), raised), 4),
        tensors=Bracket("{", [f"{i}: {x.name}" for i, x in enumerate(op.inputs)], "}").render(4, before=len("tensors = ")),
        optional=[x.name for x in op.inputs if x.optional],
        required=", ".join(f"{x.name}={x.name}" for x in op.inputs if not x.optional),
        params=bracketed(head, params, ")", 4).lstrip(),
        outputs=Bracket("{", outputs, "}").render(8, before=len("outputs=")),
        returned=returned[0] if len(returned) == 1 else bracketed("(", returned, ")", 4).lstrip(),
    )


def run_source(family: Family) -> str:
    """Return the text of `popxl/run_<op>.py`."""
    op = family.forward
    chosen = tuple(a.name for a in op.attributes if a.kind is AttributeKind.DTYPE)
    return templates.render(
        "run.py.j2",
        family,
        call=sample_call(family),
        options=option_rows(family),
        dtype_names=repr(chosen) if chosen else "",
        names=Bracket("(", [quoted(x.name) for x in op.inputs], ")", single=True).render(),
        output_names=Bracket("(", [quoted(o.name) for o in op.outputs], ")", single=True).render(),
    )
