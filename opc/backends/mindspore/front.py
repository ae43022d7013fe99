"""The public face of a family for MindSpore: its function and what documents it."""

from __future__ import annotations

import textwrap

from opc.backends.mindspore.library import templates
from opc.emit.python_layout import bracketed
from opc.emit.python_text import WIDTH, Bracket, docstring, literal
from opc.ir.dtypes import DType, TypeVar
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand

_PYTHON = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
    AttributeKind.DTYPE: "mindspore.Type",
}


def front_source(family: Family) -> str:
    """Return the text of `mindspore/__init__.py`."""
    op = family.forward
    count = len(op.outputs)
    tensors = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    inputs = [x.name for x in op.inputs]
    ranks = Bracket("ranks = (", [f"_rank({name})" for name in inputs], ")", single=True)
    return (
        templates()
        .get_template("init.py.j2")
        .render(
            source=family.source_name,
            family=family.name,
            signature=bracketed(f"def {family.name}(", parameters(op), f") -> {tensors}:", 0),
            doc=docstring(_document(op), 4),
            ranks=f"    {ranks.render(4)}",
            primitive=bracketed("op = _primitive(", ["ranks", *(a.name for a in op.attributes)], ")", 4),
            call=bracketed("return op(", inputs, ")", 4),
            dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
        )
    )


def attribute_default(attribute: Attribute) -> str | None:
    """Return the Python expression of an attribute's default, None when it must be given."""
    if attribute.required:
        return None
    if attribute.kind is AttributeKind.DTYPE and isinstance(attribute.default, str | DType):
        return f"mindspore.{dtype_name(DType(attribute.default))}"
    return literal(attribute.default)


def dtype_name(dtype: DType) -> str:
    """Return MindSpore's name of a dtype."""
    return "bool_" if dtype is DType.BOOL else str(dtype)


def parameters(op: Op) -> list[str]:
    """Return the parameters of the op's function: inputs, then attributes.

    An attribute without default that follows a parameter with one is keyword-only, and so are all after it.
    """
    last_required = max((i for i, x in enumerate(op.inputs) if not x.optional), default=-1)
    found = []
    for i, x in enumerate(op.inputs):
        annotation = f"{x.name}: Tensor | None" if x.optional else f"{x.name}: Tensor"
        found.append(annotation + (" = None" if x.optional and i > last_required else ""))
    defaulted = any(x.optional for x in op.inputs[last_required + 1 :])
    for a in op.attributes:
        default = attribute_default(a)
        if default is None and defaulted and "*" not in found:
            found.append("*")
        defaulted = defaulted or default is not None
        element = _PYTHON[a.kind]
        annotation = element if a.length is None else f"tuple[{element}, ...]"
        found.append(f"{a.name}: {annotation}" + ("" if default is None else f" = {default}"))
    return found


def _document(op: Op) -> str:
    """Return the documentation of the op's function."""
    entries = [f"{x.name}: {_operand(x)}" for x in op.inputs]
    for a in op.attributes:
        parts = [a.doc.strip()] if a.doc else []
        parts += [f"One of {', '.join(map(literal, a.values))}."] if a.values else []
        parts += [f"Must satisfy `{a.check_text}`."] if a.check_text else []
        entries.append(f"{a.name}: {' '.join(parts) or 'An attribute.'}")
    raised = ["TypeError: when an operand is no tensor."]
    if op.attributes:
        raised[0] = "TypeError: when an operand is no tensor, or an attribute of another kind."
        raised.append("ValueError: when an attribute has no value that it may have.")
    raised.append("RuntimeError: when an operand does not fit, or a check fails; the message says which.")
    lines = [op.doc.strip(), "", "Args:", *_wrapped(entries)]
    lines += ["", "Returns:", *_wrapped([f"{o.name}: {_operand(o)}" for o in op.outputs])]
    return "\n".join([*lines, "", "Raises:", *_wrapped(raised)])


def _wrapped(entries: list[str]) -> list[str]:
    """Return the entries of a docstring's section, indented, continuation lines more."""
    return [
        line
        for entry in entries
        for line in textwrap.wrap(entry, WIDTH - 4, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False)
    ]


def _operand(operand: Operand) -> str:
    """Return what the documentation says of an operand: its shape, dtypes and purpose."""
    text = f"{operand.type}[{', '.join(str(d) for d in operand.dims)}]"
    if isinstance(operand.type, TypeVar):
        text += f", {operand.type} one of {', '.join(map(str, operand.type.dtypes))}"
    text += ", or None" if operand.optional else ""
    return f"{text}. {operand.doc.strip()}".rstrip()
