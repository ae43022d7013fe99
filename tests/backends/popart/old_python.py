"""What a Python file has that Python 3.8 lacks, the version that Graphcore's SDKs and PopRT are for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

VERSION = (3, 8)
MODULES = {"graphlib", "tomllib", "zoneinfo"}
NAMES = {
    "contextlib": {"aclosing", "chdir"},
    "functools": {"cache"},
    "itertools": {"batched", "pairwise"},
    "math": {"cbrt", "exp2", "lcm", "nextafter", "sumprod", "ulp"},
    "typing": {"Annotated", "Concatenate", "Never", "ParamSpec", "Self", "TypeAlias", "TypeGuard", "assert_never", "override"},
}
METHODS = {"removeprefix", "removesuffix"}
GENERIC = {"dict", "frozenset", "list", "set", "tuple", "type"}


def beyond(text: str) -> Iterator[str]:
    """Yield what Python 3.8 would fail on: syntax, modules, names, and types that only later versions evaluate."""
    try:
        tree = ast.parse(text, feature_version=VERSION)
    except SyntaxError as error:
        yield f"syntax: {error.msg}"
        return
    generic = set(GENERIC)
    lazy = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            lazy |= node.module == "__future__" and any(a.name == "annotations" for a in node.names)
            generic |= {a.name for a in node.names} if node.module in ("collections", "collections.abc") else set()
    left = [*_checked_only(tree), *(_annotations(tree) if lazy else ())]
    not_evaluated = {id(inner) for node in left for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in not_evaluated:
            yield from _newer(node, generic)


def _checked_only(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield what type checkers alone read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from node.body


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


def _newer(node: ast.AST, generic: set[str]) -> Iterator[str]:
    match node:
        case ast.Match():
            yield "match"
        case ast.Import(names):
            yield from (a.name for a in names if a.name in MODULES)
        case ast.ImportFrom(module, names):
            yield from (f"{module}.{a.name}" for a in names if module in MODULES or a.name in NAMES.get(module or "", ()))
        case ast.Attribute(ast.Name(module), name) if name in NAMES.get(module, ()):
            yield f"{module}.{name}"
        case ast.Attribute(_, name) if name in METHODS:
            yield name
        case ast.Call(ast.Name("zip"), _, keywords) if keywords:
            yield "zip(strict=)"
        case ast.Subscript(ast.Name(name)) if name in generic:
            yield f"{name}[]"
        case ast.BinOp(left, ast.BitOr(), right) if any(_is_type(side) for side in (left, right)):
            yield "types joined by |"


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.Constant(None) | ast.Name("int" | "float" | "str" | "bool" | "bytes"):
            return True
    return False
