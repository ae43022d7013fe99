"""The parser: what a text is taken for, and where its parts stand."""

from __future__ import annotations

import pytest

from opc.diagnostics import Diagnostics
from opc.lang.parse import parse_body, parse_expression
from opc.lang.tree import (
    Apply,
    AxisRange,
    Conditional,
    Dots,
    Item,
    Literal,
    Name,
    Operation,
    ReductionCall,
    Star,
    Subscript,
    parts,
)
from opc.spec.text import SourceText


def shown(node: Item) -> str:
    """Return a tree as an s-expression."""
    match node:
        case Name():
            return node.id
        case Literal():
            return repr(node.value)
        case Dots():
            return "..."
        case Star():
            return f"*{node.name}"
        case AxisRange():
            return f"{node.name.id}:{shown(node.extent)}"
        case Subscript():
            return f"{shown(node.base)}[{', '.join(map(shown, node.items))}]"
        case Apply():
            return f"{node.fn.id}({', '.join(map(shown, node.args))})"
        case ReductionCall():
            return f"{node.kind.id}[{', '.join(map(shown, node.axes))}]({shown(node.body)})"
        case Operation():
            return f"({node.op} {' '.join(map(shown, node.args))})"
        case Conditional():
            return f"(if {shown(node.cond)} {shown(node.then)} {shown(node.other)})"


def expression(text: str) -> Item:
    found = Diagnostics()
    tree = parse_expression(SourceText.of(text, "t"), found)
    assert tree is not None, [d.render() for d in found.items]
    return tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c - d", "(sub (add a (mul b c)) d)"),
        ("-x ** 2", "(neg (pow x 2))"),
        ("-1 + -0.5", "(add -1 -0.5)"),
        ("a // b % c", "(mod (floordiv a b) c)"),
        ("~a | b ^ c & d << e + f", "(bit_or (bit_not a) (bit_xor b (bit_and c (shift_left d (add e f)))))"),
        ("a >> b >> c == d & e", "(eq (shift_right (shift_right a b) c) (bit_and d e))"),
        ("0 <= x < 1", "(and (le 0 x) (lt x 1))"),
        ("not a and b or c", "(or (and (not a) b) c)"),
        ("a and b and c", "(and (and a b) c)"),
        ("a if c else b if d else e", "(if c a (if d b e))"),
        ("x[..., i + 1, *A]", "x[..., (add i 1), *A]"),
        ("x[]", "x[]"),
        ("x[ ]", "x[]"),
        ("x[()]", "x[]"),
        ("acc(T)[]", "acc(T)[]"),
        ("sum[j, p:2*k, ..., *A](x[j])", "sum[j, p:(mul 2 k), ..., *A](x[j])"),
        ("size(*A) + size(...)", "(add size(*A) size(...))"),
        ("m == '[]'", "(eq m '[]')"),
        ("+x", "x"),
        ("(\n  a\n  + b\n)", "(add a b)"),
    ],
)
def test_trees(text: str, tree: str) -> None:
    assert shown(expression(text)) == tree


def spans(node: Item, text: str) -> list[str]:
    lines = text.split("\n")
    s = node.span
    own = lines[s.line - 1][s.column - 1 : s.end_column - 1] if s.line == s.end_line else "<lines>"
    return [own, *(x for part in parts(node) for x in spans(part, text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ab + c[i]", ["ab + c[i]", "ab", "c[i]", "c", "i"]),
        ("x[] + 'é' + y", ["x[] + 'é' + y", "x[] + 'é'", "x[]", "x", "'é'", "y"]),
        ("sum[k](x[k])", ["sum[k](x[k])", "k", "x[k]", "x", "k"]),
        ("a < b < c", ["a < b < c", "a < b", "a", "b", "b < c", "b", "c"]),
    ],
)
def test_parts_stand_where_they_were_written(text: str, expected: list[str]) -> None:
    assert spans(expression(text), text) == expected


def test_statements_over_several_lines() -> None:
    found = Diagnostics()
    text = "# a comment\nt = x + (\n    1\n)\n\ny[..., i] = t  # another\n"
    statements = parse_body(SourceText.of(text, "t"), found)
    assert not found.items
    assert [(s.target.id, s.span.line, s.items is None) for s in statements] == [("t", 2, True), ("y", 6, False)]


def test_a_broken_statement_does_not_hide_the_others() -> None:
    found = Diagnostics()
    statements = parse_body(SourceText.of("a = (1 +\nb = 2\nc = @\nd = 3 +\ne = 4\n", "t"), found)
    assert [s.target.id for s in statements if s.value is not None] == ["b", "e"]
    assert [s.target.id for s in statements if s.value is None] == ["a", "c", "d"]
    assert [d.span.line for d in found.items] == [1, 3, 4]


def test_nothing_is_executed() -> None:
    found = Diagnostics()
    parse_body(SourceText.of("y = __import__('os').system('touch /tmp/opc-was-executed')", "t"), found)
    assert found.has_errors
