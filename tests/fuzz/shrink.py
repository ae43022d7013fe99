"""Makes a spec that something is wrong with smaller, as long as the same is wrong with it."""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator

SECONDS = 90.0
"""How long a finding may be shrunk."""


def shrunk(text: str, found: list[str], check: Callable[[str], list[str]]) -> tuple[str, list[str]]:
    """Return the smallest spec that was found to be wrong in the same way, and what is wrong with it."""
    kind, deadline = _kind(found), time.monotonic() + SECONDS
    changed = True
    while changed and time.monotonic() < deadline:
        changed = False
        for smaller in candidates(text):
            if time.monotonic() > deadline:
                break
            other = check(smaller)
            if other and _kind(other) == kind:
                text, found, changed = smaller, other, True
                break
    return text, found


def _kind(messages: list[str]) -> str:
    """Return the first words of what is wrong: what was run, or what the message begins with."""
    first = messages[0]
    message = re.sub(r"[\d.]+|'.*?'|\S*\[.*?\]", "#", first.splitlines()[0].split(": ", 1)[-1])
    return first.split(" ")[0] + (message[:30] if first.startswith("refused") else "")


def candidates(text: str) -> Iterator[str]:
    """Yield specs a step smaller than one: without a statement, a key, an operand, or with a smaller expression."""
    head, _, rest = text.partition("kernel: |\n")
    body = [line for line in rest.splitlines() if line.startswith("  ") and " = " in line]
    if "gradient:\n" in rest:
        return
    tail = "".join(f"{line}\n" for line in rest.splitlines() if not line.startswith("  "))

    def whole(lines: list[str], further: str = tail) -> str:
        return _tidy(head, lines) + "kernel: |\n" + "".join(f"{line}\n" for line in lines) + further

    for k in range(len(body)):
        target = re.match(r"\s*(\w+)", body[k])
        others = body[:k] + body[k + 1 :]
        if target and others and not any(re.search(rf"\b{target[1]}\b", line) for line in others):
            yield whole(others)
    if tail:
        yield whole(body, "")
    for k, line in enumerate(body):
        for smaller in _smaller(line.strip()):
            yield whole([*body[:k], f"  {smaller}", *body[k + 1 :]])
    for optional in re.findall(r"^  '?(\w+)\??'?: .*\n", head, re.M):
        if not re.search(rf"\b{optional}\b", rest) and len(re.findall(rf"\b{optional}\b", head)) == 1:
            yield re.sub(rf"^  '?{optional}\??'?: .*\n", "", text, flags=re.M)


def _tidy(head: str, lines: list[str]) -> str:
    """Return the head of a spec without the outputs that no statement writes."""
    written = {m[1] for line in lines if (m := re.match(r"\s*(\w+)", line))}
    before, mark, outputs = head.partition("outputs:\n")
    kept = [line for line in outputs.splitlines() if (m := re.match(r"\s*'?(\w+)", line)) and m[1] in written]
    return before + mark + "".join(f"{line}\n" for line in kept)


def _smaller(line: str) -> Iterator[str]:
    """Yield a statement with one of its expressions replaced by a part of it, the largest first."""
    statement = ast.parse(line).body[0]
    assert isinstance(statement, ast.Assign)
    nodes = [n for n in ast.walk(statement.value) if isinstance(n, ast.expr)]
    for number, node in enumerate(nodes):
        for part in _parts(node):
            other = copy.deepcopy(statement)
            twin = [n for n in ast.walk(other.value) if isinstance(n, ast.expr)][number]
            text = ast.unparse(_Replaced(twin, copy.deepcopy(part)).visit(other))
            yield text.replace("[()]", "[()]")


class _Replaced(ast.NodeTransformer):
    """Puts an expression in the place of another."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.Call(func=ast.Name(id="pad")):
            return []
        case ast.Call(func=ast.Name(id="cast"), args=[_, ast.Call(func=ast.Name(id="cast"), args=[_, inner])]):
            return [ast.Call(func=node.func, args=[node.args[0], inner], keywords=[])]
        case ast.Call(func=ast.Name(), args=args) if args:
            return [a for a in args if not isinstance(a, ast.Name)]
        case ast.Call(func=ast.Subscript(), args=[body]):
            return [body]
        case ast.BoolOp():
            return list(node.values)
        case ast.UnaryOp():
            return [node.operand]
        case ast.Subscript() if isinstance(node.slice, ast.Tuple) and any(not isinstance(e, ast.Name) for e in node.slice.elts):
            return []
    return []
