"""How deep an expression may nest, so that all that comes after the parser may recurse over it.

A sum of many terms is as deep as it is long in Python's tree, and flat to its reader: it is one level, and so is a product.
"""

from __future__ import annotations

import ast

MAX_DEPTH = 100
MAX_TERMS = 200

_FLAT: tuple[tuple[type[ast.operator], ...], ...] = ((ast.Add, ast.Sub), (ast.Mult,))
"""The operators that make one sum, or one product, of what they join."""


def _below(node: ast.AST) -> list[tuple[ast.AST, int]]:
    """Return the expressions that a node is made of, each with how far below it they stand: of a sum, all its terms."""
    flat = next((ops for ops in _FLAT if isinstance(node, ast.BinOp) and isinstance(node.op, ops)), ())
    found: list[tuple[ast.AST, int]] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, flat):
        found.append((node.right, len(found) + 1))
        node = node.left
    return [*found, (node, len(found))] if found else [(c, 1) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]


def too_deep(node: ast.AST) -> str | None:
    """Return in which way a tree is too deep for later stages to recurse over it safely; a sum or product is one level."""
    level = [(node, 0)]
    for _ in range(MAX_DEPTH):
        below = [(child, above, step) for parent, above in level for child, step in _below(parent)]
        if any(step >= MAX_TERMS for _, _, step in below):
            return f"a sum or product has more than {MAX_TERMS} terms"
        level = [(child, above + step) for child, above, step in below]
        if not level:
            return None
        if any(depth > MAX_TERMS + MAX_DEPTH for _, depth in level):
            return "sums and products of too many terms stand in one another"
    return f"nested more than {MAX_DEPTH} deep"
