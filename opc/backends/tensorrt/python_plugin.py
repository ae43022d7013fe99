"""The plugin class in Python: TensorRT's `IPluginV3` over the library of plugins."""

from __future__ import annotations

from opc.backends.tensorrt.library import templates
from opc.backends.tensorrt.names import plugin_names
from opc.emit.python.text import Bracket, literal, quoted
from opc.emit.shapes.builder import PYTHON, builder_calls
from opc.ir.op import Attribute, AttributeKind, Family

_TYPES = {
    AttributeKind.INT: "INT64",
    AttributeKind.AXIS: "INT64",
    AttributeKind.FLOAT: "FLOAT64",
    AttributeKind.BOOL: "INT32",
    AttributeKind.STR: "CHAR",
    AttributeKind.DTYPE: "CHAR",
}


def python_files(family: Family) -> dict[str, str]:
    """Return `tensorrt/<op>_plugin.py` and what it imports, by path relative to the package directory."""
    op, names = family.forward, plugin_names(family)
    fields = [f"{quoted(a.name)}: trt.PluginFieldType.{_TYPES[a.kind]}" for a in op.attributes]
    defaults = [f"{quoted(a.name)}: {_default(a)}" for a in op.attributes]
    lists = [quoted(a.name) for a in op.attributes if a.length is not None]
    constants = [
        Bracket("DEFAULTS = {", defaults, "}").render(),
        "",
        "# Attributes that are lists.",
        Bracket("LISTS = (", lists, ")", single=True).render(),
    ]
    text = templates.render(
        "plugin.py.j2",
        family,
        class_name=op.python_class,
        name=names.third,
        namespace=names.namespace,
        fields=Bracket("FIELDS = {", fields, "}").render(),
        defaults="\n".join(constants),
        inputs=len(op.inputs),
        outputs=len(op.outputs),
        calls=builder_calls(op, PYTHON),
    )
    return {f"tensorrt/{family.name}_plugin.py": text, "tensorrt/support.py": templates.render("support.py.j2", family)}


def _default(a: Attribute) -> str:
    return literal(a.default)
