"""The function table's ONNX texts, as calls of the builder of a generated package and as methods of it.

A text that uses each argument once is written where it is called. Any other is a method of the package's class `Functions`, so
that an argument, which may be a long nest of calls, is written once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import cache

from opc.emit.python.layout import laid_out
from opc.emit.python.text import literal
from opc.ir.functions import FUNCTIONS

_OF_SIZES = "Div(Sub(x, Mod(x, y)), y)"
"""A quotient of sizes and indices, rounded to minus infinity: what is left of x without its remainder is a number of the type."""


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text.strip())


@cache
def is_single(text: str) -> bool:
    """Whether a text is one nest of calls with each argument in it once at most."""
    tree = _parsed(text)
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return len(tree.body) == 1 and names.count("x") <= 1 and names.count("y") <= 1


@cache
def texts_of(function: str) -> Mapping[str, str]:
    """Return the ONNX texts of a function of the table by their names."""
    return FUNCTIONS[function].onnx_texts()


def nested(text: str, arguments: Mapping[str, str], builder: str, number: Callable[[str], str]) -> str:
    """Return a nest of calls of a builder's methods; `number` gives the text of a literal in the arguments' type."""
    (statement,) = _parsed(text).body
    if not isinstance(statement, ast.Expr):
        raise TypeError(f"no nest of calls: {text}")
    return _call(statement.value, arguments, builder, number)


def methods(called: Collection[str]) -> list[str]:
    """Return the sources of the methods of these names that the table's texts are."""
    texts = {"floordiv": (2, _OF_SIZES)}
    texts |= {name: (row.arity, of) for row in FUNCTIONS.values() for name, of in row.onnx_texts().items()}
    return [_method(name, *texts[name]) for name in texts if name in called]


@cache
def _method(name: str, arity: int, text: str) -> str:
    """Return the source of a method that adds the nodes of a text of several lines."""
    arguments = ["x", "y"][:arity]
    head = f"    def {name}(self, {', '.join(f'{a}: str' for a in arguments)}) -> str:"
    lines = [head, f'        """Add the nodes of {name}."""']
    names = {a: a for a in arguments}
    for statement in _parsed(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                names[target] = target
                head = f"{target} ="
            case ast.Expr(value=value):
                head = "return"
            case _:
                raise TypeError(f"neither an assignment nor a result: {ast.unparse(statement)}")
        call = _call(value, names, "self", lambda number: f"self.number({number}, x)")
        lines.append(laid_out(f"        {head} {call}"))
    return "\n".join(lines)


def _call(node: ast.expr, names: Mapping[str, str], builder: str, number: Callable[[str], str]) -> str:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant() | ast.UnaryOp():
            return number(ast.unparse(node))
        case ast.Call(func=ast.Name(id="Polynomial"), args=[x, *coefficients]):
            literals = ", ".join(ast.unparse(c) for c in coefficients)
            return f"{builder}.polynomial({_call(x, names, builder, number)}, {literals})"
        case ast.Call(func=ast.Name(id=operator), args=args, keywords=attributes):
            parts = [
                *(_call(a, names, builder, number) for a in args),
                *(f"{a.arg}={literal(ast.literal_eval(a.value))}" for a in attributes),
            ]
            return f"{builder}.{operator}({', '.join(parts)})"
        case _:
            raise TypeError(f"no call of an operator: {ast.unparse(node)}")
