"""The public face of a family for torch: its function and what documents it."""

from __future__ import annotations

from opc.backends.torch.library import templates
from opc.backends.torch.schema import out_names, shared_type
from opc.emit.python_layout import bracketed
from opc.emit.python_text import docstring, literal, quoted
from opc.ir.dtypes import DType, TypeVar
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand

_PYTHON = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
    AttributeKind.DTYPE: "torch.dtype",
}


def front_source(family: Family) -> str:
    """Return the text of `torch/__init__.py`."""
    op = family.forward
    count = len(op.outputs)
    tensors = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    names = parameters(op)
    signature = [*names, *([] if "*" in names else ["*"]), f"out: {tensors} | None = None"]
    passed = [*(x.name for x in op.inputs), *(a.name for a in op.attributes)]
    given = ["out=out"] if count == 1 else [f"{name}=out[{i}]" for i, name in enumerate(out_names(op))]
    return (
        templates()
        .get_template("init.py.j2")
        .render(
            source=family.source_name,
            family=family.name,
            exported=sorted(map(quoted, ("custom_translation_table", family.name, "register_onnx_symbolic"))),
            signature=bracketed(f"def {family.name}(", signature, f") -> {tensors}:", 0),
            doc=docstring(_document(op), 4),
            write=bracketed("_out(", [*passed, *given], ")", 8),
            inputs=", ".join(x.name for x in op.inputs),
            single=op.inputs[0].name if len(op.inputs) == 1 else None,
            tracked=bracketed("return _op(", passed, ")", 8),
            raw=bracketed("return _raw(", passed, ")", 4),
            lists=any(a.length is not None for a in op.attributes),
            dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
            autocast=bool(shared_type(op)),
        )
    )


def attribute_python(attribute: Attribute) -> str:
    """Return the annotation of an attribute: `float`, `Sequence[int]`."""
    element = _PYTHON[attribute.kind]
    return element if attribute.length is None else f"Sequence[{element}]"


def attribute_default(attribute: Attribute) -> str | None:
    """Return the Python expression of an attribute's default, None when it must be given."""
    if attribute.required:
        return None
    if attribute.kind is AttributeKind.DTYPE and isinstance(attribute.default, str | DType):
        return f"torch.{DType(attribute.default)}"
    return literal(attribute.default)


def parameters(op: Op) -> list[str]:
    """Return the parameters of the op's function: inputs, then attributes.

    An attribute without default that follows a parameter with one is keyword-only, and so are all after it.
    """
    found = [f"{x.name}: Tensor | None = None" if x.optional else f"{x.name}: Tensor" for x in op.inputs]
    defaulted = any(x.optional for x in op.inputs)
    for a in op.attributes:
        default = attribute_default(a)
        if default is None and defaulted and "*" not in found:
            found.append("*")
        defaulted = defaulted or default is not None
        found.append(f"{a.name}: {attribute_python(a)}" + ("" if default is None else f" = {default}"))
    return found


def _document(op: Op) -> str:
    """Return the documentation of the op's function."""
    several = len(op.outputs) > 1
    lines = [op.doc.strip(), "", "Args:", *(f"    {x.name}: {_operand(x)}" for x in op.inputs)]
    for a in op.attributes:
        parts = [a.doc.strip()] if a.doc else []
        parts += [f"One of {', '.join(map(literal, a.values))}."] if a.values else []
        parts += [f"Must satisfy `{a.check_text}`."] if a.check_text else []
        lines.append(f"    {a.name}: {' '.join(parts) or 'An attribute.'}")
    lines.append(f"    out: Contiguous tensor{'s' if several else ''} to write to, where no gradient is recorded.")
    lines += ["", "Returns:", *(f"    {o.name}: {_operand(o)}" for o in op.outputs)]
    lines += ["", "Raises:", "    RuntimeError: when an operand or attribute does not fit; the message says which."]
    return "\n".join(lines)


def _operand(operand: Operand) -> str:
    """Return what the documentation says of an operand: its shape, dtypes and purpose."""
    text = f"{operand.type}[{', '.join(str(d) for d in operand.dims)}]"
    if isinstance(operand.type, TypeVar):
        text += f", {operand.type} one of {', '.join(map(str, operand.type.dtypes))}"
    text += ", or None" if operand.optional else ""
    return f"{text}. {operand.doc.strip()}".rstrip()
