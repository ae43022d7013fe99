"""The Python function of a family for MindSpore, and its documentation."""

from __future__ import annotations

from opc.backends.mindspore.library import templates
from opc.backends.own import Own
from opc.backends.python_api import PythonApi, documentation
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, docstring
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Family, Op


def dtype_name(dtype: DType) -> str:
    """Return MindSpore's name of a dtype."""
    return "bool_" if dtype is DType.BOOL else str(dtype)


_API = PythonApi("mindspore.Type", lambda dtype: f"mindspore.{dtype_name(dtype)}", "tuple[{}, ...]", tells=False)


def api_source(family: Family) -> str:
    """Return the text of `mindspore/__init__.py`."""
    op = family.forward
    inputs = [x.name for x in op.inputs]
    own = Own(op)
    ranks = Bracket(f"{own['ranks']} = (", [f"_rank({name})" for name in inputs], ")", single=True)
    return templates.render(
        "init.py.j2",
        family,
        signature=_API.signature(op, family.name),
        doc=docstring(documentation(op, op.doc.strip(), _raised(op), wrap=True, tells=False), 4),
        ranks=f"    {ranks.render(4)}",
        primitive=bracketed(f"{own['op']} = _primitive(", [own["ranks"], *(a.name for a in op.attributes)], ")", 4),
        call=bracketed(f"return {own['op']}(", inputs, ")", 4),
        dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
    )


def _raised(op: Op) -> list[str]:
    raised = ["TypeError: when an operand is no tensor."]
    if op.attributes:
        raised[0] = "TypeError: when an operand is no tensor, or an attribute of another kind."
        raised.append("ValueError: when an attribute has no value that it may have.")
    return [*raised, "RuntimeError: when an operand does not fit, or a check fails; the message says which."]
