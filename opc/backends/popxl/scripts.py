"""The Python files of a family for PopXL: the function that adds the op to a graph, and a script that runs it."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.own import Own
from opc.backends.poplar.carried import carried
from opc.backends.poplar.classes import op_classes
from opc.backends.poplar.python_side import node_value, onnx_numbers, option_rows, signature_api
from opc.backends.poplar.sample_call import sample_call
from opc.backends.popxl.library import templates
from opc.backends.python_api import documentation
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, docstring, quoted
from opc.ir.op import AttributeKind, Family, Op, camel_case
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the package, as the template sees it: what it is called with, and the op that it adds."""

    signature: str
    doc: str
    settings: str
    op: str
    outputs: str


def in_place_name(family: Family) -> str | None:
    """Return the name of the function that adds the op in place, as PopXL spells those; None where there is none."""
    return None if op_classes(family)[0].in_place is None else f"{family.name}_"


def api_source(family: Family) -> str:
    """Return the text of `popxl/__init__.py`."""
    return templates.render("init.py.j2", family, names=[n for n in (family.name, in_place_name(family)) if n is not None])


def op_source(family: Family) -> str:
    """Return the text of `popxl/<op>_op.py`."""
    op = carried(family.forward)
    own = Own(op)
    returned = [f"Tensor._from_pb_tensor({own['op']}.outTensor({i}))" for i in range(len(op.outputs))]
    params = [f"{a.name}={node_value(a)}" for a in op.attributes]
    head = f"_op_impl.{camel_case(op.name)}Params("
    return templates.render(
        "op.py.j2",
        family,
        own=own,
        imports=any(a.length is not None for a in op.attributes),
        dtypes=onnx_numbers() if any(a.kind is AttributeKind.DTYPE for a in op.attributes) else [],
        functions=[*_functions(family, op)],
        tensors=Bracket("{", [f"{i}: {x.name}" for i, x in enumerate(op.inputs)], "}").render(
            4, before=len(f"{own['tensors']} = ")
        ),
        optional=[x.name for x in op.inputs if x.optional],
        required=", ".join(f"{x.name}={x.name}" for x in op.inputs if not x.optional),
        params=bracketed(head, params, ")", 4).lstrip(),
        returned=returned[0] if len(returned) == 1 else bracketed("(", returned, ")", 4).lstrip(),
    )


def _functions(family: Family, op: Op) -> Iterator[Function]:
    """Yield the function of the op, and that of the op in place."""
    raised = ["RuntimeError: when an operand or attribute does not fit; the message says which."]

    def function(name: str, label: str, kind: str, doc: str) -> Function:
        outputs = [f'{i}: graph._create_tensor_id("{label}_{o.name}")' for i, o in enumerate(op.outputs)]
        return Function(
            signature_api().signature(op, name),
            docstring(documentation(op, doc, raised, tells=False), 4),
            label,
            kind,
            Bracket("{", outputs, "}").render(8, before=len("outputs=")),
        )

    yield function(op.name, op.name, op.python_class, op.doc.strip())
    name, position = in_place_name(family), op_classes(family)[0].in_place
    if name is not None and position is not None:
        said = f"{op.doc.strip()}\n\nIn place: the result is written over {op.inputs[position].name}. It has no gradient."
        yield function(name, f"{op.name}_inplace", f"{camel_case(op.name)}Inplace", said)


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
