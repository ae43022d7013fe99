"""The files beside a family's PopART library: how it is built with an SDK, how it is called, and a script that runs it."""

from __future__ import annotations

from opc.backends.own import Own
from opc.backends.poplar.carried import carried
from opc.backends.poplar.classes import VERSION, op_classes
from opc.backends.poplar.files import has_codelets, headers
from opc.backends.poplar.python_side import node_attributes, onnx_numbers, option_rows, signature_api
from opc.backends.poplar.sample_call import sample_call
from opc.backends.python_api import documentation
from opc.backends.templates import Templates
from opc.emit.python.text import Bracket, docstring, quoted
from opc.ir.op import AttributeKind, Family

templates = Templates("opc.backends.popart")


def build_files(family: Family) -> dict[str, str]:
    """Return `popart/Makefile` and `popart/CMakeLists.txt`."""
    values = {"codelets": has_codelets(family), "headers": headers(family)}
    return {
        "popart/Makefile": templates.render("Makefile.j2", family, **values),
        "popart/CMakeLists.txt": templates.render("CMakeLists.txt.j2", family, **values),
    }


def run_source(family: Family) -> str:
    """Return the text of `popart/run_<op>.py`."""
    op = family.forward
    chosen = [a.name for a in op.attributes if a.kind is AttributeKind.DTYPE]
    call = sample_call(family)
    dtypes = dict.fromkeys(given[0] for given in call.shapes.values() if given is not None)
    return templates.render(
        "run.py.j2",
        family,
        call=call,
        types=Bracket(
            "TYPES = {", [f"{quoted(d.value)}: {quoted(d.row.popart[0])}" for d in dtypes if d.row.popart], "}"
        ).render(),
        dtypes=onnx_numbers() if chosen else [],
        dtype_names=repr(tuple(chosen)),
        op_type=quoted(op.class_name),
        domain=quoted(op.domain),
        version=VERSION,
        outputs=len(op.outputs),
        options=option_rows(family),
        names=Bracket("(", [quoted(x.name) for x in op.inputs], ")", single=True).render(),
        output_names=Bracket("(", [quoted(o.name) for o in op.outputs], ")", single=True).render(),
    )


def api_source(family: Family) -> str:
    """Return the text of `popart/__init__.py`."""
    op = carried(family.forward)
    required = [i for i, x in enumerate(op.inputs) if not x.optional]
    least = required[-1] + 1 if required else 0
    own = Own(op)
    parameters = [f"{own['builder']}: popart.Builder", *signature_api().parameters(op)]
    returned = "Tensor" if len(op.outputs) == 1 else f"tuple[{', '.join(['Tensor'] * len(op.outputs))}]"
    raised = ["popart.popart_exception: when an operand or attribute does not fit; the message says which."]
    doc = documentation(op, op.doc.strip(), raised, tells=False)
    doc = doc.replace("Args:\n", f"Args:\n    {own['builder']}: What makes the model; operands are names of its tensors.\n", 1)
    names = [quoted(n) for n in ("DOMAIN", "LIBRARY", "OP_TYPE", "VERSION", op.name, "load")]
    return templates.render(
        "init.py.j2",
        family,
        own=own,
        exported=Bracket("__all__ = [", names, "]").render(),
        imports=any(a.length is not None for a in op.attributes),
        dtypes=onnx_numbers() if any(a.kind is AttributeKind.DTYPE for a in op.attributes) else [],
        domain=quoted(op.domain),
        op_type=quoted(op.class_name),
        version=VERSION,
        signature=Bracket(f"def {op.name}(", parameters, f") -> {returned}:").render(),
        doc=docstring(doc, 4),
        last_required=least if any(x.optional for x in op.inputs) else None,
        least=least,
        gaps=op_classes(family)[0].gaps,
        inputs=[x.name for x in op.inputs],
        attributes=node_attributes(op).render(8, before=len("attributes=")),
        outputs=len(op.outputs),
    )  # fmt: skip
