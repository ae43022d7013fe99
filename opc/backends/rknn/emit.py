"""The files of the RKNN backend that depend on the op."""

from __future__ import annotations

from opc.backends import example_text
from opc.backends.rknn.names import rknn_name
from opc.backends.templates import Templates
from opc.emit.abi import attributes_type
from opc.emit.abi_defaults import default_arrays, default_members
from opc.emit.cpp.text import string_literal
from opc.emit.numpy.reference import numpy_module
from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, Bracket, docstring, literal, quoted
from opc.ir.op import Attribute, AttributeKind, Family
from opc.records import replace

_FUNCTIONS = {"infer_shapes": "shape.infer_shapes", "infer_types": "shape.infer_types", "evaluate": "reference.evaluate"}
"""What the generated class calls, by its own names: functions whose names end in the op's."""


templates = Templates("opc.backends.rknn")


def files(family: Family) -> dict[str, str]:
    """Return the modules for the toolkit, by path relative to the package directory."""
    op, name = family.forward, rknn_name(family)
    # Inference only: what is derived from the op stays out.
    alone = replace(family, backward=None, backward_backward=None, jvp=None, backward_jvp=None)
    floats = [f"{quoted(a.name)}: {literal(a.default)}" for a in op.attributes if isinstance(a.default, float)]
    flags = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.BOOL]
    dtypes = [f"{quoted(a.name)}: {literal(a.default)}" for a in op.attributes if a.kind is AttributeKind.DTYPE]
    class_name = _class_name(name.op_type)
    custom_op = templates.render(
        "custom_op.py.j2",
        family,
        class_name=class_name,
        domain=quoted(name.domain),
        op_type=quoted(name.op_type),
        onnx_name=f"({quoted(op.domain)}, {quoted(op.class_name)})",
        doc=docstring(op.doc.strip() or f"The op {op.name}.", 4),
        inputs=Bracket("INPUTS = (", [quoted(o.name) for o in op.inputs], ")", single=True).render(),
        flags=Bracket("FLAGS = (", flags, ")", single=True).render() if flags else "",
        dtypes=Bracket("DTYPES = {", dtypes, "}").render() if dtypes else "",
        floats=Bracket("FLOATS = {", floats, "}").render() if floats else "",
        functions=[bracketed(f"{key} = staticmethod(", [f"{function}_{op.name}"]) for key, function in _FUNCTIONS.items()],
        strings=any(a.kind is AttributeKind.STR for a in op.attributes),
    )  # fmt: skip
    names = ("DOMAIN", "OP_TYPE", class_name, "convert", "register")
    line = f"from .custom_op import {', '.join(names)}"
    imported = line if len(line) <= WIDTH else bracketed("from .custom_op import (", names, ")", 0)
    return {
        **board_files(family),
        **example_text.test_file(family, templates, "rknn", class_name=class_name),
        "rknn/__init__.py": templates.render("init.py.j2", family, class_name=class_name, imported=imported),
        "rknn/custom_op.py": custom_op,
        "rknn/reference.py": numpy_module(alone),
    }


def register_name(family: Family) -> str:
    """Return the name of the C function that registers the op with a context of RKNN's runtime."""
    return f"opc_{family.name}_register_rknn"


def board_files(family: Family) -> dict[str, str]:
    """Return the sources for boards, by path relative to the package directory."""
    op = family.forward
    library = templates.render(
        "library.cpp.j2",
        family,
        op_type=rknn_name(family).op_type,
        register=register_name(family),
        attributes_type=attributes_type(family),
        defaults=default_members(family),
        arrays=list(default_arrays(family)),
        choices=[{"name": a.name, "text": ", ".join(map(string_literal, a.values))} for a in op.attributes if a.values],
        reads=[_read(a) for a in op.attributes],
        inputs=len(op.inputs),
        outputs=len(op.outputs),
    )  # fmt: skip
    register = register_name(family)
    return {
        f"rknn/{family.name}_rknn.cpp": library,
        "rknn/emulated.cpp": templates.render("emulated.cpp.j2", family, register=register),
        "rknn/threads.c": templates.render("threads.c.j2", family, register=register),
    }


def _read(a: Attribute) -> str:
    """Return the C++ statement that reads an attribute of a node."""
    required = "true" if a.required else "false"
    if a.length is not None and a.length < 0:
        return f'reader.read("{a.name}", &out.{a.name}, &out.{a.name}_length, {required});'
    if a.length is not None:
        return f'reader.read("{a.name}", out.{a.name}, {a.length}, {required});'
    if a.kind is AttributeKind.DTYPE:
        return f'reader.read_dtype("{a.name}", &out.{a.name}, {required});'
    if a.values:
        return f'reader.read_choice("{a.name}", &out.{a.name}, {a.name}_values, {required});'
    return f'reader.read("{a.name}", &out.{a.name}, {required});'


def _class_name(op_type: str) -> str:
    """Return the name of the op's class: a letter in front in upper case."""
    return op_type[0].upper() + op_type[1:]
