"""The generated test of an op's torch function."""

from __future__ import annotations

import ast

from opc.backends import example_text
from opc.backends.torch.api import API
from opc.backends.torch.library import templates
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, quoted
from opc.ir.op import Attribute, AttributeKind, Family

_MODULES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg")
_NODES = (
    ast.Expression, ast.Load, ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.keyword, ast.Tuple, ast.Subscript, ast.Slice,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_REFUSED = ("load", "save", "from_file", "compile", "hub", "ops", "jit", "utils", "classes", "library")


def files(family: Family) -> dict[str, str]:
    """Return `tests/test_torch.py`; empty for an op without examples."""
    op = family.forward
    defaults = {a.name: API.default(a) for a in op.attributes}
    arguments = [*(x.name for x in op.inputs), *(n if d is None else f"{n}={d}" for n, d in defaults.items())]
    return example_text.test_file(
        family,
        templates,
        "torch",
        dtypes=[(x.name, example_text.precise(x).value) for x in op.inputs],
        examples=example_text.examples(family, module="torch", absent=True),
        reference=_reference(family),
        reference_head=bracketed("def reference(", arguments, "):", 0),
        attributes=example_text.names("ATTRIBUTES", [a.name for a in op.attributes]),
        defaults=Bracket("DEFAULTS = {", [f"{quoted(n)}: {d}" for n, d in defaults.items() if d is not None], "}").render(),
        surrogate=bool(family.surrogates),
        refused=[bad for a in op.attributes if (bad := _bad(a)) is not None],
    )


def _bad(a: Attribute) -> tuple[str, str] | None:
    """Return the attribute's name and a value that it refuses."""
    if a.length is None and a.values:
        return a.name, quoted("no such value")
    if a.length is None and a.kind in (AttributeKind.FLOAT, AttributeKind.INT, AttributeKind.AXIS):
        return a.name, quoted("text")
    return None


def _reference(family: Family) -> str | None:
    """Return the reference's expression if it only computes on the op's operands; the test runs it, so it is not trusted."""
    text = family.reference.torch
    if text is None:
        return None
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    op = family.forward
    names = {x.name for x in op.inputs} | {a.name for a in op.attributes}
    for node in ast.walk(tree):
        if not isinstance(node, _NODES) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            return None
        if isinstance(node, ast.Name) and node.id not in names | {"torch"}:
            return None
        if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _REFUSED):
            return None
    modules = {ast.unparse(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return ast.unparse(tree) if all(not m.startswith("torch") or m in (*_MODULES, "torch.nn") for m in modules) else None
