"""The public face of a family for MindSpore: its function and what documents it."""

from __future__ import annotations

import textwrap

from opc.backends.mindspore.library import templates
from opc.backends.python_face import Face, described_inputs, described_outputs, tensors
from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, Bracket, docstring
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Family, Op


def dtype_name(dtype: DType) -> str:
    """Return MindSpore's name of a dtype."""
    return "bool_" if dtype is DType.BOOL else str(dtype)


_FACE = Face("mindspore.Type", lambda dtype: f"mindspore.{dtype_name(dtype)}", "tuple[{}, ...]")


def front_source(family: Family) -> str:
    """Return the text of `mindspore/__init__.py`."""
    op = family.forward
    inputs = [x.name for x in op.inputs]
    ranks = Bracket("ranks = (", [f"_rank({name})" for name in inputs], ")", single=True)
    return (
        templates()
        .get_template("init.py.j2")
        .render(
            source=family.source_name,
            family=family.name,
            signature=bracketed(f"def {family.name}(", _FACE.parameters(op), f") -> {tensors(op)}:", 0),
            doc=docstring(_document(op), 4),
            ranks=f"    {ranks.render(4)}",
            primitive=bracketed("op = _primitive(", ["ranks", *(a.name for a in op.attributes)], ")", 4),
            call=bracketed("return op(", inputs, ")", 4),
            dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
        )
    )


def _document(op: Op) -> str:
    """Return the documentation of the op's function."""
    raised = ["TypeError: when an operand is no tensor."]
    if op.attributes:
        raised[0] = "TypeError: when an operand is no tensor, or an attribute of another kind."
        raised.append("ValueError: when an attribute has no value that it may have.")
    raised.append("RuntimeError: when an operand does not fit, or a check fails; the message says which.")
    lines = [op.doc.strip(), "", "Args:", *_wrapped(described_inputs(op))]
    lines += ["", "Returns:", *_wrapped(described_outputs(op))]
    return "\n".join([*lines, "", "Raises:", *_wrapped(raised)])


def _wrapped(entries: list[str]) -> list[str]:
    """Return the entries of a docstring's section, indented, continuation lines more."""
    return [
        line
        for entry in entries
        for line in textwrap.wrap(entry, WIDTH - 4, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False)
    ]
