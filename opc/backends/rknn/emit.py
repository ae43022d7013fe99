"""The files of the RKNN backend that depend on the op."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from opc.backends.rknn.names import rknn_name
from opc.emit.numpy import numpy_module
from opc.emit.python_text import Bracket, docstring, literal, quoted
from opc.ir.op import AttributeKind, Family

if TYPE_CHECKING:
    import jinja2


@cache
def templates() -> jinja2.Environment:
    """Return the environment of this backend's templates."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("opc.backends.rknn"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def files(family: Family) -> dict[str, str]:
    """Return the modules for the toolkit, by path relative to the package directory."""
    op, name = family.forward, rknn_name(family)
    # Inference only: what is derived from the op stays out.
    alone = replace(family, backward=None, backward_backward=None, jvp=None, backward_jvp=None)
    floats = [f"{quoted(a.name)}: {literal(a.default)}" for a in op.attributes if isinstance(a.default, float)]
    flags = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.BOOL]
    dtypes = [f"{quoted(a.name)}: {literal(a.default)}" for a in op.attributes if a.kind is AttributeKind.DTYPE]
    common = {"spec": family.source_name, "name": family.name, "class_name": _class_name(name.op_type)}
    custom_op = templates().get_template("custom_op.py.j2").render(
        **common,
        domain=quoted(name.domain),
        op_type=quoted(name.op_type),
        onnx_name=f"({quoted(op.domain)}, {quoted(op.class_name)})",
        doc=docstring(op.doc.strip() or f"The op {op.name}.", 4),
        inputs=Bracket("INPUTS = (", [quoted(o.name) for o in op.inputs], ")", single=True).render(),
        flags=Bracket("FLAGS = (", flags, ")", single=True).render() if flags else "",
        dtypes=Bracket("DTYPES = {", dtypes, "}").render() if dtypes else "",
        floats=Bracket("FLOATS = {", floats, "}").render() if floats else "",
        strings=any(a.kind is AttributeKind.STR for a in op.attributes),
    )  # fmt: skip
    return {
        "rknn/__init__.py": templates().get_template("init.py.j2").render(**common),
        "rknn/custom_op.py": custom_op,
        "rknn/reference.py": numpy_module(alone),
    }


def _class_name(op_type: str) -> str:
    """Return the name of the op's class: a letter in front in upper case."""
    return op_type[0].upper() + op_type[1:]
