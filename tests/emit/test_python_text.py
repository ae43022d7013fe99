"""Text of a spec put into generated Python stays text, and is laid out as a formatter would."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opc.emit.python.layout import laid_out
from opc.emit.python.text import WIDTH, Bracket, comment, docstring, literal, quoted, tuple_of
from tests import ruff


@given(st.text(max_size=200), st.sampled_from([0, 4]))
@example('ends in a quote"', 0)
@example('"', 0)
@example('"""', 4)
@example("a\\", 0)
@example('a\\"""', 4)
@example("a\\\n", 0)
@example("\x00\r\x0c\u2028", 0)
@example("word " * 60, 4)
def test_docstring_holds_any_text(text: str, indent: int) -> None:
    body = docstring(text, indent)
    tree = ast.parse(f"def f():\n{body}\n" if indent else f"{body}\n")
    node = tree.body[0] if indent else tree
    assert isinstance(node, ast.FunctionDef | ast.Module)
    assert len(node.body) == 1
    found = ast.get_docstring(node, clean=True) or ""
    if text.isprintable():
        assert found.split() == text.split()


@given(st.text(max_size=300))
def test_comment_holds_any_text(text: str) -> None:
    lines = comment(text, 4).split("\n")
    assert all(line.startswith("    # ") for line in lines if line)
    branch = ast.parse("if 1:\n" + comment(text, 4) + "\n    pass").body[0]
    assert isinstance(branch, ast.If)
    assert len(branch.body) == 1


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


def same(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return repr(a) == repr(b) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@given(SCALARS | st.lists(SCALARS, max_size=3).map(tuple))
def test_literal_is_the_value(value: object) -> None:
    assert same(eval(literal(value), {"float": float}), value)


def test_literal_of_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="no literal for dict"):
        literal({})


@given(st.text())
def test_quoted_is_the_text(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text


LONG = Bracket("f(", [f"argument_{i}" for i in range(12)], ")")


@pytest.mark.parametrize(
    "code",
    [
        Bracket("x = f(", ["a", "b"], ")"),
        Bracket("x = (", ["a"], ")", single=True),
        Bracket("x = f(", [], ")"),
        Bracket("x = ", [], "1"),
        Bracket("x = f(", [LONG, "b", tuple_of(["c"])], ")"),
        Bracket("x = (", [LONG], ")", single=True),
        Bracket("def f(", ["a: int", "*", *(f"keyword_{i}: float = 0.0" for i in range(6))], ") -> None: ..."),
    ],
    ids=str,
)
def test_brackets_are_laid_out_as_ruff_does(code: Bracket) -> None:
    text = code.render() + "\n"
    assert all(len(line) <= WIDTH for line in text.splitlines())
    ast.parse(text)
    assert ruff.accepts("format", f"--line-length={WIDTH}", "-", text=text) == text


@pytest.mark.parametrize("items", [7, 8])
@pytest.mark.parametrize("word", ["name", "d_name", "d_names", "d_long_names"])
@pytest.mark.parametrize("given", [2, 9])
def test_lists_are_laid_out_as_ruff_does(word: str, items: int, given: int) -> None:
    names = ", ".join(f"{word}_{i}" for i in range(items))
    arguments = ", ".join(f"argument{i}" for i in range(given))
    lines = [f"        [{names}] = body.scan({arguments})", f"        steps.results_of_all = [{names}]"]
    text = "\n".join(["def f():", "    if x:", *map(laid_out, lines), ""])
    assert ruff.accepts("format", "-", text=text) == text
