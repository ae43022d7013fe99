"""Texts know where their characters stand, whatever YAML style they were written in; names and comments are safe."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.diagnostics import Diagnostics, Source
from opc.spec.text import SourceText, domain_problem, name_problem, op_name_problem
from opc.spec.yaml_tree import MappingNode, Scalar, parse_yaml
from tests.amounts import examples

WORDS = st.text(alphabet="ab+[]*'\"\\é ()=\n", min_size=1, max_size=40)


def scalar(text: str) -> SourceText:
    """Return the text of the only value in a YAML mapping."""
    found = Diagnostics()
    root = parse_yaml(Source("t.yaml", text), found)
    assert not found.items, [d.render() for d in found.items]
    assert isinstance(root, MappingNode)
    value = root.entries[0][1]
    assert isinstance(value, Scalar)
    return value.text


@settings(max_examples=examples(100, 300), deadline=None)
@given(WORDS, st.sampled_from(["'", '"', "|", ">"]), st.integers(10, 80), st.booleans())
def test_each_character_stands_where_its_position_says(value: str, style: str, width: int, unicode: bool) -> None:
    text = yaml.dump({"k": value}, default_style=style, width=width, allow_unicode=unicode)
    got = scalar(text)
    assert got.value == value
    assert list(got.positions) == sorted(got.positions)
    for character, position in zip(got.value, got.positions):
        if not character.isspace():
            assert text[position] == character or text[position] == "\\"


@pytest.mark.parametrize(
    ("text", "needle", "place"),
    [
        ("k: abc", "abc", (1, 4, 7)),
        ("k: 'a''b c'", "b c", (1, 8, 11)),
        ('k: "a\\tb \\u00e9c"', "c", (1, 16, 17)),
        ("k: |\n  one\n    two\n", "two", (3, 5, 8)),
        ("k: |2-  # a comment\n   one\n", "one", (2, 4, 7)),
        ("k: >\n  one\n  two\n", "two", (3, 3, 6)),
        ("k: one\n  two\n", "two", (2, 3, 6)),
        ('k: "one\\\n  two"\n', "two", (2, 3, 6)),
        ("k: |\r\n  one\r\n  two\r\n", "two", (3, 3, 6)),
        ("k: |\n\n\n  one\n\n  two\n", "two", (6, 3, 6)),
    ],
)
def test_spans(text: str, needle: str, place: tuple[int, int, int]) -> None:
    got = scalar(text)
    start = got.value.index(needle)
    span = got.span(start, start + len(needle))
    assert (span.line, span.column, span.end_column) == place


def test_cut_and_replace_keep_positions() -> None:
    text = SourceText.of("y = x[] + 1", "t")
    replaced = text.replace(5, 7, "[()]")
    assert replaced.value == "y = x[()] + 1"
    assert replaced.span(10, 11).column == 9
    assert replaced.cut(4, 9).span(0, 5).column == 5


@pytest.mark.parametrize("name", ["x", "T", "x2", "a_b", "OH", "row_sum", "a" * 64, "x_", "int_", "lambda_", "self__"])
def test_good_names(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "2x",
        "_x",
        "a__b",
        "a__",
        "a b",
        "a-b",
        "a;b",
        "x\n",
        "é",
        "a" * 65,
        "lambda",
        "None",
        "bool",
        "d_x",
        "t_x",
        "opc_x",
    ],
)
def test_bad_names(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "A", "x.y", "con fig", "relu_backward", "relu_jvp", "x_infer", "in", "_a", "a_", "while__"]
)
def test_bad_op_names(name: str) -> None:
    assert op_name_problem(name) is not None


@pytest.mark.parametrize("name", ["", ".", "a..b", "a.", "A.b", "a/b", "..", "a.for", "a b", "x" * 65])
def test_bad_domains(name: str) -> None:
    assert domain_problem(name) is not None
