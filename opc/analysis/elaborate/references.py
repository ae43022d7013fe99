"""The references of a spec: ONNX operators and torch expressions that name only what they may.

A reference is text that tests evaluate node by node, so it must be a plain call or formula over the op's own names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from opc.diagnostics import Diagnostics, Span, did_you_mean
from opc.ir.op import Op, Reference
from opc.spec.loader import Spec

_ONNX_OPERATOR = re.compile(r"[A-Z][A-Za-z0-9]*")
_OPERATOR_IN_CALL = re.compile(r"(?:[^=(]*=)?\s*([A-Z][A-Za-z0-9]*)\s*(?:\(|$)")
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_REFUSED = _COMPREHENSIONS | ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.JoinedStr | ast.Starred
"""Expressions that are no plain formula."""


def reference_for(spec: Spec, op: Op, found: Diagnostics) -> Reference:
    """Return the references of a spec; a mistake in one is recorded."""
    model = spec.model.reference
    if model is None:
        return Reference()
    for path, text in _onnx(spec):
        _Checked(spec, path, text, op, found).onnx()
    if model.torch is not None:
        _Checked(spec, ("reference", "torch"), model.torch, op, found).torch()
    return Reference(tuple(model.onnx), model.torch)


def onnx_operators(spec: Spec) -> list[tuple[str, Span]]:
    """Return the operators that a spec's ONNX references name, and where."""
    named = []
    for path, text in _onnx(spec):
        match = _OPERATOR_IN_CALL.match(text)
        if match is not None:
            named.append((match[1], spec.text(*path).span(*match.span(1))))
    return named


def _onnx(spec: Spec) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the paths and texts of a spec's ONNX references."""
    model = spec.model.reference
    listed = ("reference", "onnx", 0) in spec.values
    paths = ("reference", "onnx")
    return [((*paths, n) if listed else paths, text) for n, text in enumerate(model.onnx if model is not None else ())]


class _Checked:
    """One reference and where it stands."""

    def __init__(self, spec: Spec, path: tuple[str | int, ...], text: str, op: Op, found: Diagnostics) -> None:
        self.text, self.op, self.found = text, op, found
        self.place = spec.text(*path)
        self.whole = self.place.span(0, len(text))

    def torch(self) -> None:
        """Check a torch expression. It ends up in generated tests, so it must name only torch and the op's operands."""
        try:
            tree = ast.parse(self.text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.found.error("the reference is not one Python expression", self.whole, "such as torch.nn.functional.relu(x)")
            return
        self.names(tree, ["torch", *self.own()])

    def onnx(self) -> None:
        """Check `Operator`, `Operator(inputs, attribute=...)` or `outputs = Operator(...)`."""
        hint = "such as LeakyRelu, or LeakyRelu(x, alpha=slope)"
        try:
            statement = ast.parse(self.text.strip()).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            statement = []
        value = statement[0].value if len(statement) == 1 and isinstance(statement[0], ast.Expr | ast.Assign) else None
        operator = value.func if isinstance(value, ast.Call) else value
        if value is None or not isinstance(operator, ast.Name) or not _ONNX_OPERATOR.fullmatch(operator.id):
            self.found.error(f"'{self.text}' can't be an ONNX operator", self.whole, hint)
            return
        if isinstance(statement[0], ast.Assign):
            outputs = [o.name for o in self.op.outputs]
            for target in statement[0].targets:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if not isinstance(name, ast.Name) or name.id not in (*outputs, "_"):
                        wrong = f"'{ast.unparse(name)}' is no output"
                        self.found.error(wrong, self.span(name), f"the outputs are {', '.join(outputs)}; _ leaves one out")
        if isinstance(value, ast.Call):
            for argument in (*value.args, *(k.value for k in value.keywords)):
                # An attribute that is _ may have any value.
                if argument in value.args or not isinstance(argument, ast.Name) or argument.id != "_":
                    self.names(argument, self.own())

    def own(self) -> list[str]:
        """Return the names of the op's inputs and attributes."""
        return [*(o.name for o in self.op.inputs), *(a.name for a in self.op.attributes)]

    def names(self, tree: ast.AST, names: Sequence[str]) -> None:
        """Record names other than these, private members, and what is no plain formula."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in names:
                hint = did_you_mean(node.id, names) or f"it may name {', '.join(names)}"
                self.found.error(f"unknown name '{node.id}'", self.span(node), hint)
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                self.found.error(f"'{node.attr}' is private", self.span(node), "call public functions alone")
            elif isinstance(node, _REFUSED):
                self.found.error(
                    "the reference is a plain call or formula",
                    self.span(node),
                    "such as torch.nn.functional.relu(x) or (x * x).sum(-1)",
                )

    def span(self, node: ast.expr) -> Span:
        """Return the place of a part of the text."""
        text = self.text
        lines = text.strip().split("\n")
        lead = len(text) - len(text.lstrip())

        def at(line: int, byte: int) -> int:
            before = sum(len(part) + 1 for part in lines[: line - 1])
            return lead + before + len(lines[line - 1].encode()[:byte].decode("utf-8", "ignore"))

        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.place.span(at(node.lineno, node.col_offset), at(end_line, end))
