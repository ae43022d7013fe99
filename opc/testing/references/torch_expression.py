"""Evaluates the `reference.torch` text of a spec without trusting it.

The text is parsed with `ast` and interpreted here node by node: numbers, the op's names, arithmetic, comparisons, conditionals,
functions of torch that compute on tensors, and methods of tensors of the same names. A string is only compared, or names a mode.
Everything else - imports, underscored names, other strings, files, lambdas - has no meaning in it and is a `ReferenceTextError`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from opc.diagnostics import did_you_mean


class ReferenceTextError(ValueError):
    """The text of a reference uses something that references may not use."""


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_PROPERTIES = frozenset({"shape", "ndim", "dtype", "T", "mT"})
_METHODS = frozenset(
    {"size", "dim", "to", "float", "double", "long", "expand", "expand_as", "view", "view_as", "contiguous", "repeat"}
)
_TEXTS = frozenset({"mode", "padding_mode", "reduction", "rounding_mode", "compute_mode"})
"""Keywords of torch's functions that are given as strings."""
_REFUSED = frozenset({"from_file", "set_printoptions"})


@lru_cache(maxsize=100)
def parse(text: str) -> ast.expr:
    """Return the expression of a reference.

    Raises:
        ReferenceTextError: when it is no Python expression.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ReferenceTextError(f"'{text}' is not an expression: {error}") from None


def function_path(node: ast.expr) -> str | None:
    """Return the path of a torch function named by `node`, without the `torch.`: `nn.functional.gelu`; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed(parts)) if isinstance(node, ast.Name) and node.id == "torch" and parts else None


def resolve_function(path: str) -> Callable[..., Any]:
    """Return the torch function at a path.

    Raises:
        ReferenceTextError: when it is none of those that only compute on tensors.
    """
    import torch

    owner, _, name = path.rpartition(".")
    if not name.startswith("_") and name not in _REFUSED:
        if owner == "" and hasattr(torch._C._VariableFunctions, name):
            return getattr(torch, name)  # type: ignore[no-any-return]  # torch is untyped here
        module = {"nn.functional": torch.nn.functional, "special": torch.special, "linalg": torch.linalg}.get(owner)
        found = getattr(module, name, None)
        # What a module merely imports has another home, and could be anything.
        homes = (f"torch.{owner}", "torch._C", "torch._jit_internal")
        at_home = str(getattr(found, "__module__", "")).startswith(homes)
        # Some are torch's own functions under a second name, which know no module: torch.nn.functional.cosine_similarity.
        second_name = found is not None and found == getattr(torch._C._VariableFunctions, name, None)
        if callable(found) and not isinstance(found, type) and (at_home or second_name):
            return found  # type: ignore[no-any-return]  # torch is untyped here
    home = {
        "": torch._C._VariableFunctions,
        "nn.functional": torch.nn.functional,
        "special": torch.special,
        "linalg": torch.linalg,
    }
    near = did_you_mean(name, [n for n in dir(home[owner]) if not n.startswith("_")]) if owner in home else None
    raise ReferenceTextError(f"torch.{path} is not a function references may call{f'; {near}' if near else ''}")


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of a reference's expression; `names` are the op's inputs (None where absent) and attributes.

    Raises:
        ReferenceTextError: when the expression uses something references may not use.
    """
    match node:
        case ast.Constant(value=bool() | int() | float() | None):
            return node.value
        case ast.Name(id=name):
            if name in names:
                return names[name]
            raise ReferenceTextError(f"'{name}' is neither an input nor an attribute")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](evaluate(left, names), evaluate(right, names))
        case ast.UnaryOp(op=unary, operand=operand):
            return _UNARY[type(unary)](evaluate(operand, names))
        case ast.BoolOp(op=boolean, values=values):
            result: Any = None
            for value in values:
                result = evaluate(value, names)
                if bool(result) == isinstance(boolean, ast.Or):
                    return result
            return result
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compare(evaluate(left, names), ops, others, names)
        case ast.IfExp(test=test, body=body, orelse=other):
            return evaluate(body if evaluate(test, names) else other, names)
        case ast.Tuple(elts=items):
            return tuple(evaluate(item, names) for item in items)
        case ast.List(elts=items):
            return [evaluate(item, names) for item in items]
        case ast.Subscript(value=value, slice=index):
            return evaluate(value, names)[_index(index, names)]
        case ast.Attribute():
            return _attribute(node, names)
        case ast.Call():
            return _call(node, names)
        case _:
            raise ReferenceTextError(f"'{ast.unparse(node)}' is not allowed in a reference")


def _compare(left: Any, ops: list[ast.cmpop], others: list[ast.expr], names: Mapping[str, Any]) -> Any:
    result: Any = True
    for op, other in zip(ops, others, strict=True):
        if type(op) not in _COMPARE:
            raise ReferenceTextError("'in' is not allowed in a reference")
        # A string is only compared with an attribute that is one.
        text = other.value if isinstance(other, ast.Constant) and isinstance(other.value, str) else None
        right = text if text is not None and isinstance(left, str) else evaluate(other, names)
        result = _COMPARE[type(op)](left, right)
        if len(ops) > 1 and not result:
            return result
        left = right
    return result


def _index(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else evaluate(part, names) for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Tuple):
        return tuple(_index(item, names) for item in node.elts)
    return ... if isinstance(node, ast.Constant) and node.value is ... else evaluate(node, names)


def _attribute(node: ast.Attribute, names: Mapping[str, Any]) -> Any:
    path = function_path(node)
    if path is None and isinstance(array := evaluate(node.value, names), np.ndarray) and node.attr in ("shape", "ndim"):
        return getattr(array, node.attr)
    import torch

    if path is not None:
        found = getattr(torch, path, None)
        if isinstance(found, torch.dtype):
            return found
        raise ReferenceTextError(f"torch.{path} is not allowed as a value")
    value = evaluate(node.value, names)
    if isinstance(value, torch.Tensor) and node.attr in _PROPERTIES:
        return getattr(value, node.attr)
    raise ReferenceTextError(f"'.{node.attr}' is not allowed in a reference")


def _call(node: ast.Call, names: Mapping[str, Any]) -> Any:
    import torch

    path = function_path(node.func)
    if path is not None:
        function = resolve_function(path)
    elif isinstance(node.func, ast.Attribute):
        owner, name = evaluate(node.func.value, names), node.func.attr
        computes = hasattr(torch._C._VariableFunctions, name) and not name.startswith("_") and name not in _REFUSED
        allowed = name in _METHODS or computes
        if not isinstance(owner, torch.Tensor) or not allowed:
            raise ReferenceTextError(f"'.{name}()' is not allowed in a reference")
        function = getattr(owner, name)
    else:
        raise ReferenceTextError(f"'{ast.unparse(node.func)}' is not a function references may call")
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        raise ReferenceTextError("'*' is not allowed in a reference")
    arguments = [evaluate(a, names) for a in node.args]
    keywords = {str(k.arg): _keyword(str(k.arg), k.value, names) for k in node.keywords}
    return function(*arguments, **keywords)


def _keyword(name: str, node: ast.expr, names: Mapping[str, Any]) -> Any:
    if name in _TEXTS and isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return evaluate(node, names)
