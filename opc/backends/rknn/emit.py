"""The files of the RKNN backend that depend on the op."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from opc.backends import example_text
from opc.backends.rknn.names import rknn_name
from opc.backends.templates import environment
from opc.emit.abi import attributes_type
from opc.emit.abi_defaults import default_arrays, default_members
from opc.emit.numpy.reference import numpy_module
from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, Bracket, docstring, literal, quoted
from opc.ir.op import Attribute, AttributeKind, Family

if TYPE_CHECKING:
    import jinja2


_FUNCTIONS = {"infer_shapes": "shape.infer_shapes", "infer_types": "shape.infer_types", "evaluate": "reference.evaluate"}
"""What the generated class calls, by its own names: functions whose names end in the op's."""


def templates() -> jinja2.Environment:
    """Return the environment of this backend's templates."""
    return environment("opc.backends.rknn")


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
        functions=[bracketed(f"{key} = staticmethod(", [f"{function}_{op.name}"]) for key, function in _FUNCTIONS.items()],
        strings=any(a.kind is AttributeKind.STR for a in op.attributes),
    )  # fmt: skip
    names = ("DOMAIN", "OP_TYPE", common["class_name"], "convert", "register")
    line = f"from .custom_op import {', '.join(names)}"
    imported = line if len(line) <= WIDTH else bracketed("from .custom_op import (", names, ")", 0)
    return {
        **board_files(family),
        **_test(family),
        "rknn/__init__.py": templates().get_template("init.py.j2").render(**common, imported=imported),
        "rknn/custom_op.py": custom_op,
        "rknn/reference.py": numpy_module(alone),
    }


def _test(family: Family) -> dict[str, str]:
    """Return the test of the toolkit's op, which needs no toolkit; none for a spec without examples."""
    if not family.examples:
        return {}
    examples, types = example_text.examples(family), example_text.types(family)
    text = templates().get_template("test_rknn.py.j2").render(
        spec=family.source_name,
        name=family.name,
        class_name=_class_name(rknn_name(family).op_type),
        examples=examples,
        types=types,
    )  # fmt: skip
    return {"tests/test_rknn.py": text}


def register_name(family: Family) -> str:
    """Return the name of the C function that registers the op with a context of RKNN's runtime."""
    return f"opc_{family.name}_register_rknn"


def board_files(family: Family) -> dict[str, str]:
    """Return the sources for boards, by path relative to the package directory."""
    op = family.forward
    library = templates().get_template("library.cpp.j2").render(
        source=family.source_name,
        family=family.name,
        op_type=rknn_name(family).op_type,
        register=register_name(family),
        attributes_type=attributes_type(family),
        defaults=default_members(family),
        arrays=list(default_arrays(family)),
        choices=[{"name": a.name, "text": ", ".join(map(json.dumps, a.values))} for a in op.attributes if a.values],
        reads=[_read(a) for a in op.attributes],
        inputs=len(op.inputs),
        outputs=len(op.outputs),
    )  # fmt: skip
    common = {"source": family.source_name, "register": register_name(family)}
    return {
        f"rknn/{family.name}_rknn.cpp": library,
        "rknn/emulated.cpp": templates().get_template("emulated.cpp.j2").render(**common),
        "rknn/threads.c": templates().get_template("threads.c.j2").render(**common),
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
