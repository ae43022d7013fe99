"""The generated test of an op's torch function."""

from __future__ import annotations

import ast
import math
from typing import Any

from opc.backends.example_text import precise
from opc.backends.torch.derivatives import differentiable
from opc.backends.torch.front import FACE
from opc.backends.torch.library import templates
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.op import Attribute, AttributeKind, Example, Family

_MODULES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg")
_NODES = (
    ast.Expression, ast.Load, ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.keyword, ast.Tuple, ast.Subscript, ast.Slice,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_REFUSED = ("load", "save", "from_file", "compile", "hub", "ops", "jit", "utils", "classes", "library")


def test_source(family: Family) -> str:
    """Return the text of `tests/test_torch.py`."""
    op = family.forward
    names = [x.name for x in op.inputs]
    moving = [x.name for x in op.inputs if differentiable(x)]
    reference = _reference(family)
    defaults = {a.name: FACE.default(a) for a in op.attributes}
    arguments = [*names, *(n if d is None else f"{n}={d}" for n, d in defaults.items())]
    return (
        templates()
        .get_template("test_torch.py.j2")
        .render(
            source=family.source_name,
            family=family.name,
            dtypes=[(x.name, precise(x).value) for x in op.inputs],
            examples=Bracket("EXAMPLES = [", [_example(family, e) for e in family.examples], "]").render(),
            names=Bracket("OUTPUTS = [", [quoted(o.name) for o in op.outputs], "]").render(),
            outputs=len(op.outputs),
            gradient=family.backward is not None,
            moving=Bracket("MOVING = [", list(map(quoted, moving)), "]").render(),
            reference=reference,
            reference_head=bracketed("def reference(", arguments, "):", 0),
            attributes=Bracket("ATTRIBUTES = [", [quoted(a.name) for a in op.attributes], "]").render(),
            defaults=Bracket("DEFAULTS = {", [f"{quoted(n)}: {d}" for n, d in defaults.items() if d is not None], "}").render(),
            refused=[bad for a in op.attributes if (bad := _bad(a)) is not None],
        )
    )


def _example(family: Family, example: Example) -> Bracket:
    given, op = dict(example.values), family.forward
    inputs = [_entry(x.name, given.get(x.name)) for x in op.inputs]
    attributes = [_entry(a.name, given[a.name]) for a in op.attributes if a.name in given]
    outputs = [_entry(o.name, given[o.name]) for o in op.outputs if o.name in given]
    return Bracket("(", [Bracket("{", inputs, "}"), Bracket("{", attributes, "}"), Bracket("{", outputs, "}")], ")")


def _entry(name: str, value: object) -> str | Bracket:
    number = _number(value)
    if isinstance(number, Bracket):
        return Bracket(f"{quoted(name)}: {number.head}", number.items, number.tail)
    return f"{quoted(name)}: {number}"


def _number(value: Any) -> str | Bracket:
    if isinstance(value, list | tuple):
        return Bracket("[", [_number(v) for v in value], "]")
    if isinstance(value, float) and not math.isfinite(value):
        return "torch.nan" if math.isnan(value) else "torch.inf" if value > 0 else "-torch.inf"
    return literal(value)


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
