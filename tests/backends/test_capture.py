"""No name of a spec captures one that generated Python means otherwise: a builtin, an import, or a variable of the function.

An op is written twice: with names that nothing else has, and with those that its functions use beside these. Both texts are of
the same form then, and each name is bound in the same scope in both.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from opc.analysis.elaborate.scope import WORDS
from opc.backends import registry
from opc.emit.numpy.reference import HELPERS
from opc.emit.shapes.python import emit as shape_source
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.spec.text import name_problem

PROBE = """
op: capture_probe
domain: probe
version: 1
doc: An op with the names it is given, of attributes or of inputs.
types: {{T: [float32, float64]}}
inputs:
  x_own: 'T[*A, N, *B]'
  o_own?: T[N]
  i_own: int64[M]
{inputs}
attributes:
  axis_own: {{type: axis, dim: N, default: -1}}
  int_own: {{type: int, default: 2, check: int_own > 0}}
  bool_own: {{type: bool, default: false}}
  str_own: {{type: str, values: [sum, mean], default: sum}}
  list_own: {{type: 'int[2]', default: [1, 2]}}
{attributes}
shape: {{K: 'minimum(N // int_own, int_own) + 1'}}
require: [N > 1]
outputs: {{y_own: 'T[*A, N, *B]', z_own: 'T[K]', w_own: 'int64[M]'}}
kernel: |
  m_own[*A, *B] = mean[n_own](x_own[*A, n_own, *B])
  s_own[*A, n_own, *B] = (x_own[*A, n_own, *B] - m_own[*A, *B]) * 2 + (o_own[n_own] if present(o_own) else 0)
  y_own[*A, n_own, *B] = s_own[*A, n_own, *B] if bool_own else x_own[*A, n_own, *B] * list_own[0] if str_own == 'sum' else 0
  z_own[k_own] = k_own * {value}
  w_own[m_own_index] = i_own[i_own[m_own_index] % M]
"""

KINDS = ("attributes", "inputs")


@cache
def probe(kind: str, names: tuple[str, ...]) -> Family:
    """Return an op whose attributes or inputs have these names."""
    attributes, inputs = "", ""
    if kind == "attributes":
        attributes = "\n".join(f"  {n}: {{type: float, default: 1.0, check: {n} > 0}}" for n in names)
        value = " * ".join(names)
    else:
        inputs = "\n".join(f"  {n}: T[]" for n in names)
        value = "(" + " + ".join(f"{n}[]" for n in names) + ")"
    return compile_text(PROBE.format(attributes=attributes, inputs=inputs, value=value), "probe.yaml")


def modules(backend: str, family: Family) -> dict[str, ast.Module]:
    files = {"shape.py": shape_source(family)} if backend == "shapes" else registry.load(backend).emit(family)
    trees = {path: ast.parse(text) for path, text in files.items() if path.endswith(".py")}
    for function in (n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        # What tells of names that are spelled otherwise in Python stands where there are such names alone.
        function.decorator_list = [d for d in function.decorator_list if "spelled" not in ast.unparse(d)]
    return trees


Scoped = ast.FunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def parameters(node: ast.FunctionDef | ast.Lambda) -> Iterator[ast.arg]:
    a = node.args
    yield from (*a.posonlyargs, *a.args, *a.kwonlyargs)
    yield from (x for x in (a.vararg, a.kwarg) if x is not None)


def bound(scope: Scoped) -> Iterator[str]:
    """Yield the names that a scope binds."""
    if isinstance(scope, ast.FunctionDef | ast.Lambda):
        yield from (p.arg for p in parameters(scope))
        waiting: list[ast.AST] = [*scope.body] if isinstance(scope.body, list) else [scope.body]
    else:
        waiting = [g.target for g in scope.generators]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif not isinstance(node, Scoped):
            waiting += ast.iter_child_nodes(node)


@dataclass(frozen=True)
class Scope:
    """What a function, lambda or comprehension binds."""

    depth: int
    parameters: frozenset[str]
    names: frozenset[str]


def places(tree: ast.AST, around: tuple[Scope, ...] = ()) -> Iterator[tuple[str, int, bool]]:
    """Yield each name in order, with how many scopes stand around where it is bound, 0 for a name of the module or a builtin, and
    whether it is a parameter there."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Name):
            scope = next((s for s in reversed(around) if node.id in s.names), None)
            yield (node.id, 0, False) if scope is None else (node.id, scope.depth, node.id in scope.parameters)
        if isinstance(node, ast.FunctionDef | ast.Lambda):  # what its head is made of stands outside
            body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
            head = [n for n in ast.iter_child_nodes(node) if n not in body]
            yield from places(within(*head), around)
            yield from places(within(*body), (*around, scope_of(node, len(around) + 1)))
        elif isinstance(node, Scoped):
            yield from places(node, (*around, scope_of(node, len(around) + 1)))
        else:
            yield from places(node, around)


class Nodes(ast.AST):
    """Some nodes."""

    _fields = ("nodes",)


def within(*nodes: ast.AST) -> ast.AST:
    """Return a node with these below it."""
    return Nodes(nodes=[*nodes])


def scope_of(node: Scoped, depth: int) -> Scope:
    own = isinstance(node, ast.FunctionDef | ast.Lambda)
    return Scope(depth, frozenset(p.arg for p in parameters(node)) if own else frozenset(), frozenset(bound(node)))


def heads(tree: ast.Module) -> list[ast.stmt]:
    """Return the functions and classes of a module; beside them a name of its own may be given to what they use."""
    return [s for s in tree.body if isinstance(s, ast.FunctionDef | ast.ClassDef)]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.Lambda]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda))


SINGLE = "EFGHIJLOQRSUVWXYZ"
"""Letters that nothing else in the probe is called."""


def alike(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that nothing else has, each as long as one of these: how code is laid out, and named apart, hangs on that."""
    found = []
    for place, name in enumerate(names):
        count = sum(len(n) == len(name) for n in names[:place])
        digits = [chr(97 + count // 26**k % 26) for k in range(len(name) - 1)]
        found.append("Q" + "".join(digits) if digits else SINGLE[count])
    assert len({*found}) == len(names)
    return tuple(found)


def meant(trees: Sequence[ast.Module]) -> list[str]:
    """Return the names that functions with parameters of a spec use beside them, and that a spec may use too."""
    found = set(dir(builtins))
    for tree in trees:
        for function in functions(tree):
            if any("_own" in p.arg for p in parameters(function)):
                found.update(n.id for n in ast.walk(function) if isinstance(n, ast.Name))
                found.update(p.arg for p in parameters(function))
    problem = re.compile(r"[a-z][A-Za-z0-9_]*")
    return sorted(n for n in found if problem.fullmatch(n) and "_own" not in n and not n.endswith("_") and allowed(n))


@cache
def allowed(name: str) -> bool:
    """Whether a spec may declare such a name.

    Of a temporary or helper of a reference one is longer where a spec has its name too, which changes how lines are broken and
    parts named: those are left out.
    """
    if re.fullmatch(r"t\d+|dtype", name) or name in HELPERS or name in WORDS or re.match(r"[dt]_", name):
        return False
    return name_problem(name) is None


@pytest.mark.rotating
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["shapes", *registry.names()])
def test_no_name_of_a_spec_captures_another(backend: str, kind: str) -> None:
    names = tuple(meant([*modules(backend, probe(kind, ("first_own", "second_own"))).values()]))
    forward = probe(kind, names).forward
    spelled = [o.name for o in (forward.attributes if kind == "attributes" else forward.inputs) if "_own" not in o.name]
    plain = modules(backend, probe(kind, alike(spelled)))
    other = modules(backend, probe(kind, names))
    for path, tree in plain.items():
        for own, theirs in zip(heads(tree), heads(other[path]), strict=True):
            pairs = [*zip(places(within(own)), places(within(theirs)), strict=True)]
            captured = {b[0] for a, b in pairs if a[1:] != b[1:]}
            assert not captured, f"{path}: {sorted(captured)}"
